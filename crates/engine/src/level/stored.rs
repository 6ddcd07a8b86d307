//! [`Levels`] from what the manifest says, and back.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alluvium_base::{Corruption, KeyspaceId, TableId};

use super::container::Container;
use super::levels::Levels;
use super::placed_level::Level;
use super::placed_table::PlacedTable;
use super::reclaimer::Reclaimer;
use super::run::Run;
use super::table_file::TableFile;
use crate::error::Result;
use crate::file_names::table_file_name;
use crate::manifest::{LevelsState, PlacedTableState, PlanState, RunState};

impl Levels {
    /// Opens the tables of a keyspace: its runs, young to old, and the levels below.
    ///
    /// # Errors
    /// If a table is missing, damaged or cannot be opened now. Then nothing stays open, and the call may be repeated.
    pub fn open(reclaimer: &Arc<Reclaimer>, id: KeyspaceId, state: &LevelsState) -> Result<Self> {
        let levels = open_levels(reclaimer, id, state)?;
        let mut runs = Vec::new();
        let mut merged = Vec::new();
        for run_state in state.runs.iter().rev() {
            let file = TableFile::open(reclaimer, run_state.file)?;
            let sections = file.sections_of(id)?;
            let run = Run::of_sections(&file, &sections, run_state.shard_bits, run_state.repeats);
            let dropped: Vec<u32> = run_state.dropped.iter().copied().collect();
            let present = run.without(&dropped);
            let expected = (1usize << run_state.shard_bits) - dropped.len();
            check_sections(&present, expected)?;
            merged.extend(dropped.iter().filter_map(|&shard| run.sections[shard as usize].clone()));
            runs.push(Arc::new(present));
        }
        // Gives back the space that a crash prevented from being given back.
        merged.iter().for_each(|section| section.set_merged());
        Ok(Self { plan: Arc::new(state.plan.clone()), runs, levels })
    }

    /// The levels as the manifest names them.
    pub fn state(&self) -> LevelsState {
        let runs = self.runs.iter().rev().filter(|run| !run.is_empty());
        LevelsState {
            plan: PlanState::clone(&self.plan),
            runs: runs.map(|run| run_state(run)).collect(),
            levels: self.levels.iter().map(level_state).collect(),
        }
    }
}

/// The levels below the youngest.
fn open_levels(reclaimer: &Arc<Reclaimer>, id: KeyspaceId, state: &LevelsState) -> Result<Vec<Level>> {
    // A table over several containers is opened once.
    let mut tables: BTreeMap<TableId, PlacedTable> = BTreeMap::new();
    let mut open_table = |table: &PlacedTableState| -> Result<PlacedTable> {
        let open = match tables.entry(table.file) {
            Entry::Occupied(open) => open.get().clone(),
            Entry::Vacant(vacant) => {
                let file = TableFile::open(reclaimer, table.file)?;
                let section = file.sections_of(id)?.into_iter().next().ok_or_else(|| {
                    let name = table_file_name(table.file);
                    Corruption::new(name, 0, "one sorted section", "none")
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
    Err(Corruption::new(name, 0, format!("{expected} sections"), found.to_string()).into())
}

fn level_state(level: &Level) -> Vec<Container<PlacedTableState>> {
    let state = |table: &PlacedTable| PlacedTableState { file: table.file.id, repeats: table.repeats };
    let container = |container: &Container<PlacedTable>| Container {
        range: container.range,
        tables: container.tables.iter().map(state).collect(),
    };
    level.containers().iter().map(container).collect()
}

fn run_state(run: &Run) -> RunState {
    let shards = run.sections.iter().enumerate();
    let dropped: BTreeSet<u32> =
        shards.filter(|(_, section)| section.is_none()).map(|(shard, _)| shard as u32).collect();
    RunState { file: run.file.id, shard_bits: run.shard_bits, repeats: run.repeats, dropped }
}
