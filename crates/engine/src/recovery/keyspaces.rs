//! The keyspaces of an opened database: their descriptions are known at once, their tables are opened at first use.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use alluvium_base::{KeyspaceId, TableId};

use super::replay::Replayed;
use crate::blob::{Blobs, VersionBlobs};
use crate::compact::run_of;
use crate::core::{KeyspaceShared, check_plan, new_log_store};
use crate::error::Result;
use crate::file_names::table_file_name;
use crate::level::{Container, Level, PlacedTable, Reclaimer, Run, TableFile, Version};
use crate::log::{Log, LogStore};
use crate::manifest::{KeyspaceState, PlacedTableState};

/// A keyspace with its items in the log. If it has tables, it is dormant: see [`open_tables`].
pub(super) fn open(
    id: KeyspaceId,
    state: &KeyspaceState,
    log: &Log,
    blobs: &Blobs,
    replayed: &Replayed,
    (expected_items, entries_max): (u64, u64),
) -> Result<Arc<KeyspaceShared>> {
    check_plan(&state.plan.plan, &state.hasher)?;
    let blobs = Arc::new(VersionBlobs { files: blobs.files(), live: state.blob_references.clone() });
    let plan = Arc::new(state.plan.clone());
    let levels = vec![Level::default(); state.plan.levels()];
    let items = state.plan.plan.items_sharded(0, expected_items);
    let active = new_log_store(&state.plan.plan, state.hasher, log.active_segment(), items, 0, entries_max);
    let stores = replayed.stores.get(&id).map(Vec::as_slice).unwrap_or_default();
    let frozen = stores.iter().rev().cloned();
    let frozen = frozen.inspect(|store: &Arc<LogStore>| debug_assert!(store.is_closed()));
    let log_stores = std::iter::once(Arc::new(active)).chain(frozen).collect();
    let version = Version { plan, log_stores, runs: Vec::new(), levels, blobs, epoch: 0 };
    let keyspace = KeyspaceShared::new(id, state.name.clone(), state.hasher, version);
    let has_tables = !state.runs.is_empty() || state.levels.iter().any(|level| !level.is_empty());
    keyspace.set_dormant(has_tables);
    Ok(Arc::new(keyspace))
}

/// Opens the tables of a keyspace: its runs, young to old, and the levels below.
///
/// # Errors
/// If a table is missing, damaged or cannot be opened now. Then nothing stays open, and the call may be repeated.
pub(crate) fn open_tables(
    reclaimer: &Arc<Reclaimer>,
    id: KeyspaceId,
    state: &KeyspaceState,
) -> Result<(Vec<Arc<Run>>, Vec<Level>)> {
    let levels = open_levels(reclaimer, id, state)?;
    let mut runs = Vec::new();
    let mut merged = Vec::new();
    for run_state in state.runs.iter().rev() {
        let file = TableFile::open(reclaimer, run_state.file)?;
        let sections = file.sections_of(id)?;
        let run = run_of(&file, &sections, run_state.shard_bits, run_state.repeats);
        let dropped: Vec<u32> = run_state.dropped.iter().copied().collect();
        let present = run.without(&dropped);
        let expected = (1usize << run_state.shard_bits) - dropped.len();
        check_sections(&present, expected)?;
        merged.extend(dropped.iter().filter_map(|&shard| run.sections[shard as usize].clone()));
        runs.push(Arc::new(present));
    }
    // Gives back the space that a crash prevented from being given back.
    merged.iter().for_each(|section| section.set_merged());
    Ok((runs, levels))
}

/// The levels below the youngest.
fn open_levels(reclaimer: &Arc<Reclaimer>, id: KeyspaceId, state: &KeyspaceState) -> Result<Vec<Level>> {
    // A table over several containers is opened once.
    let mut tables: BTreeMap<TableId, PlacedTable> = BTreeMap::new();
    let mut open_table = |table: &PlacedTableState| -> Result<PlacedTable> {
        let open = match tables.entry(table.file) {
            Entry::Occupied(open) => open.get().clone(),
            Entry::Vacant(vacant) => {
                let file = TableFile::open(reclaimer, table.file)?;
                let section = file.sections_of(id)?.into_iter().next().ok_or_else(|| {
                    let name = table_file_name(table.file);
                    alluvium_base::Corruption::new(name, 0, "one sorted section", "none")
                })?;
                vacant.insert(PlacedTable { section, file, repeats: table.repeats }).clone()
            }
        };
        Ok(PlacedTable { repeats: table.repeats, ..open })
    };
    let mut open_container = |container: &Container<PlacedTableState>| -> Result<Container<PlacedTable>> {
        let tables = container.tables.iter().map(&mut open_table).collect::<Result<_>>()?;
        Ok(Container { range: container.range, tables })
    };
    let mut open_level = |containers: &Vec<Container<PlacedTableState>>| -> Result<Level> {
        let containers = containers.iter().map(&mut open_container).collect::<Result<_>>()?;
        Ok(Level::from_containers(containers))
    };
    state.levels.iter().map(&mut open_level).collect()
}

fn check_sections(run: &Run, expected: usize) -> Result<()> {
    let found = run.sections.iter().flatten().count();
    if found == expected {
        return Ok(());
    }
    let name = table_file_name(run.file.id);
    Err(alluvium_base::Corruption::new(name, 0, format!("{expected} sections"), found.to_string()).into())
}
