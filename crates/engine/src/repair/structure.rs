//! The structure of the database: from its manifest, or from what the manifest and the tables still tell.

use std::collections::{BTreeMap, BTreeSet};

use alluvium_base::{BlobId, KeyHasher, KeyspaceId, SegmentId, TableId};
use alluvium_model::LevelsPlan;

use super::Repair;
use super::chained::YoungestInTables;
use super::placing::{place_in_gaps, place_runs, place_sorted, plan_with_levels};
use super::report::ManifestRepair;
use crate::core::check_plan;
use crate::error::{Error, IoContext, Result};
use crate::file_names::{parse_blob_file_name, parse_table_file_name, table_file_name};
use crate::manifest::{
    CURRENT, Current, DatabaseState, Edit, KeyspaceState, LevelsState, PlanSource, PlanState, RunState,
    Scraps, manifest_file_name, parse, parse_current, parse_manifest_file_name, read_all, salvage,
};
use crate::table::{Error as TableError, Layout, Section, Table, is_of_other_version, salvage_file};

/// The structure and its source.
pub(super) struct Structure {
    pub state: DatabaseState,
    pub report: ManifestRepair,
    /// The highest number of a manifest so far.
    pub manifest_number: u64,
    /// Files without a meaning once a new manifest counts.
    pub stale_files: Vec<String>,
    /// What the tables say about older segments, if the structure was assembled from them.
    pub in_tables: Option<YoungestInTables>,
}

impl Repair {
    /// Determines the structure: from the manifest in use if that can be read completely, otherwise from everything
    /// that exists.
    pub fn find_structure(&mut self, plan: &LevelsPlan) -> Result<Structure> {
        let names = self.storage.list().context(|| "listing the database directory".to_owned())?;
        let mut manifests: Vec<u64> =
            names.iter().filter_map(|name| parse_manifest_file_name(name)).collect();
        manifests.sort_unstable();
        let manifest_number = manifests.last().copied().unwrap_or_default();
        let current = self.current(&names);
        let sealed_len = current.and_then(|current| current.sealed_len);
        let current = current.map(|current| current.number);
        let used = current.or(manifests.last().copied());
        let mut scraps = Vec::new();
        if let Some(number) = used
            && let Some((state, whole)) = self.read_manifest(number, sealed_len, &mut scraps)?
        {
            let report =
                if whole && current.is_some() { ManifestRepair::Sound } else { ManifestRepair::Restored };
            let stale = manifests.iter().map(|&number| manifest_file_name(number));
            let stale_files = if report == ManifestRepair::Sound { Vec::new() } else { stale.collect() };
            return Ok(Structure { state, report, manifest_number, stale_files, in_tables: None });
        }
        // Older manifests contain less, but may contain names of keyspaces that the last one has lost.
        let mut edits = Vec::new();
        for &number in manifests.iter().filter(|&&number| Some(number) != used) {
            self.read_manifest(number, None, &mut edits)?;
        }
        edits.append(&mut scraps);
        let (state, in_tables) = self.rebuild(&names, &edits, plan)?;
        let tables = names.iter().filter(|name| parse_table_file_name(name).is_some());
        let unnamed =
            tables.filter(|name| !state.names_file(parse_table_file_name(name).unwrap_or_default()));
        let mut stale_files: Vec<String> = unnamed.cloned().collect();
        stale_files.extend(manifests.iter().map(|&number| manifest_file_name(number)));
        let in_tables = Some(in_tables);
        Ok(Structure { state, report: ManifestRepair::Rebuilt, manifest_number, stale_files, in_tables })
    }

    /// The content of `CURRENT`, if it can be read.
    fn current(&mut self, names: &[String]) -> Option<Current> {
        if !names.iter().any(|name| name == CURRENT) {
            self.report.problem(format!("{CURRENT} is missing"));
            return None;
        }
        let current = read_all(&*self.storage, CURRENT).and_then(|content| parse_current(&content));
        current.inspect_err(|error| self.report.problem(error)).ok()
    }

    /// The state that a manifest describes, and whether the manifest is sound or was merely read completely. Returns
    /// `None` if parts of it are lost; then its edits are appended to `edits`.
    fn read_manifest(
        &mut self,
        number: u64,
        sealed_len: Option<u64>,
        edits: &mut Vec<Edit>,
    ) -> Result<Option<(DatabaseState, bool)>> {
        let name = manifest_file_name(number);
        let bytes = match read_all(&*self.storage, &name) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.report.problem(error);
                return Ok(None);
            }
        };
        match parse(&name, &bytes, sealed_len) {
            Ok(state) => return Ok(Some((state, true))),
            Err(error @ Error::NewerFormat { .. }) if newer_format_is_meant(&bytes) => return Err(error),
            Err(error) => self.report.problem(error),
        }
        let Scraps { edits: readable, is_incomplete, end } = salvage(&bytes);
        let mut state = DatabaseState::default();
        let applies = readable.iter().all(|edit| state.apply(edit).is_ok());
        let is_cut = sealed_len.is_some_and(|len| end < len);
        if applies && !is_incomplete && !is_cut {
            return Ok(Some((state, false)));
        }
        edits.extend(readable);
        Ok(None)
    }

    /// Assembles the structure from the readable edits, in their order, and from the tables.
    fn rebuild(
        &mut self,
        names: &[String],
        edits: &[Edit],
        plan: &LevelsPlan,
    ) -> Result<(DatabaseState, YoungestInTables)> {
        let known = Known::from_edits(edits);
        let numbers: BTreeSet<TableId> =
            names.iter().filter_map(|name| parse_table_file_name(name)).collect();
        let mut tables = BTreeMap::new();
        let mut unreadable = Vec::new();
        for &number in &numbers {
            match Table::open(&*self.storage, &table_file_name(number), &self.prefix_functions) {
                Ok(table) => drop(tables.insert(number, table)),
                Err(error @ (TableError::NewerFormat { .. } | TableError::OlderFormat { .. }))
                    if is_of_other_version(&*self.storage, &table_file_name(number)) =>
                {
                    return Err(error.into());
                }
                Err(error @ TableError::PrefixFunction { .. }) => return Err(error.into()),
                Err(_) => unreadable.push(number),
            }
        }
        let mut state = known.state(plan);
        let sections: Vec<(TableId, &Section)> = tables
            .iter()
            .flat_map(|(&number, table)| table.sections().iter().map(move |section| (number, &**section)))
            .filter(|(_, section)| !known.is_gone(section))
            .collect();
        for (_, section) in &sections {
            let id = section.keyspace();
            let own = || sections.iter().map(|(_, section)| *section).filter(|own| own.keyspace() == id);
            let keyspace = state.keyspaces.entry(id).or_insert_with(|| {
                let plan = suited(plan, &section.hasher());
                let plan = plan_with_levels(&plan, own());
                unnamed(id, section.hasher(), PlanState::first(plan, PlanSource::Database))
            });
            // The tables' own hash key counts: their items were placed by it.
            keyspace.hasher = section.hasher();
            keyspace.body.plan.number = keyspace.body.plan.number.max(section.plan_number());
        }
        place_sorted(&mut state, &sections);
        place_runs(&mut state, &sections);
        for number in unreadable {
            self.place_unreadable(&mut state, number)?;
        }
        let mut in_tables: YoungestInTables =
            known.dropped.iter().map(|&keyspace| (keyspace, SegmentId(u64::MAX))).collect();
        for (_, section) in &sections {
            let youngest = in_tables.entry(section.keyspace()).or_default();
            *youngest = section.segments().newest.max(*youngest);
        }
        let newest = sections.iter().map(|(_, section)| section.segments().newest).max().unwrap_or_default();
        state.log_start = state.log_start.max(newest.next());
        state.next_segment = state.next_segment.max(state.log_start);
        state.next_file = state.next_file.max(numbers.last().map_or(1, |last| last.0 + 1));
        // A number is used once, for a table or a blob file.
        let blobs = names.iter().filter_map(|name| parse_blob_file_name(name));
        state.next_file = blobs.fold(state.next_file, |next, number| next.max(number.0.saturating_add(1)));
        state.next_keyspace = state
            .next_keyspace
            .max(state.keyspaces.keys().next_back().map_or(KeyspaceId(0), |last| last.next()));
        Ok((state, in_tables))
    }

    /// Adds a table whose directory is lost: its items tell the keyspace, its number tells the age.
    fn place_unreadable(&mut self, state: &mut DatabaseState, number: TableId) -> Result<()> {
        let hashers: Vec<(KeyspaceId, KeyHasher)> =
            state.keyspaces.iter().map(|(&id, keyspace)| (id, keyspace.hasher)).collect();
        let mut found = BTreeSet::new();
        let name = table_file_name(number);
        salvage_file(&*self.storage, &name, number, &hashers, |item| {
            found.insert((item.keyspace, item.layout as u8));
        })?;
        for (id, layout) in found {
            let Some(keyspace) = state.keyspaces.get_mut(&id) else { continue };
            if layout == Layout::Hash as u8 {
                let place = keyspace.body.runs.partition_point(|run| run.file < number);
                keyspace.body.runs.insert(
                    place,
                    RunState { file: number, shard_bits: 0, repeats: 0.0, dropped: BTreeSet::new() },
                );
            } else {
                let Some(last) = keyspace.body.levels.last_mut() else { continue };
                place_in_gaps(last, number);
            }
        }
        Ok(())
    }
}

/// Whether a manifest that names a newer version really has it, or its version bytes are damaged.
fn newer_format_is_meant(bytes: &[u8]) -> bool {
    let (checked, stored) = bytes.split_at(16);
    stored
        .get(..8)
        .is_some_and(|stored| stored == alluvium_base::checksum::checksum64(checked, 0).to_le_bytes())
}

/// Facts that readable edits prove, whatever is missing between them.
#[derive(Default)]
struct Known {
    seed: u64,
    next_file: u64,
    next_segment: SegmentId,
    next_keyspace: KeyspaceId,
    log_start: SegmentId,
    log_ends: BTreeMap<SegmentId, u64>,
    created: BTreeMap<KeyspaceId, (String, KeyHasher, PlanState)>,
    /// Plans that keyspaces got later.
    planned: BTreeMap<KeyspaceId, PlanState>,
    dropped: BTreeSet<KeyspaceId>,
    /// Blob files with their lengths, as far as they are known.
    blobs: BTreeMap<BlobId, Option<u64>>,
    young_directory: Option<u64>,
    young_tables: BTreeSet<TableId>,
    /// Items in older segments do not count.
    cleared: BTreeMap<KeyspaceId, SegmentId>,
}

impl Known {
    fn from_edits(edits: &[Edit]) -> Self {
        let mut known = Self::default();
        for edit in edits {
            match edit {
                Edit::Database { seed } => known.seed = *seed,
                Edit::Counters { next_file, next_segment, next_keyspace } => {
                    known.next_file = known.next_file.max(*next_file);
                    known.next_segment = known.next_segment.max(*next_segment);
                    known.next_keyspace = known.next_keyspace.max(*next_keyspace);
                }
                Edit::LogStart { segment } => known.log_start = known.log_start.max(*segment),
                Edit::LogEnd { segment, offset } => drop(known.log_ends.insert(*segment, *offset)),
                Edit::CreateKeyspace { keyspace, name, hasher, plan, source } => {
                    let plan = PlanState::first(plan.clone(), *source);
                    known.created.insert(*keyspace, (name.clone(), *hasher, plan));
                }
                Edit::SetPlan { keyspace, plan } => drop(known.planned.insert(*keyspace, plan.clone())),
                Edit::ClearKeyspace { keyspace, log_start } => {
                    let cleared = known.cleared.entry(*keyspace).or_default();
                    *cleared = (*cleared).max(*log_start);
                }
                Edit::DropKeyspace { keyspace } => drop(known.dropped.insert(*keyspace)),
                Edit::Origin { .. } => {}
                Edit::YoungDirectory { id } => known.young_directory = Some(*id),
                Edit::YoungTable { file } => drop(known.young_tables.insert(*file)),
                Edit::AddBlob { file } => drop(known.blobs.entry(*file).or_default()),
                Edit::SealBlob { file, bytes } => drop(known.blobs.insert(*file, Some(*bytes))),
                Edit::DropBlob { file } => drop(known.blobs.remove(file)),
                Edit::AddRun { .. }
                | Edit::DropShards { .. }
                | Edit::AddSorted { .. }
                | Edit::DropSorted { .. }
                | Edit::AddChained { .. }
                | Edit::DropChained { .. }
                | Edit::SaveDirectory { .. }
                | Edit::BlobReferences { .. } => {}
            }
        }
        known
    }

    /// Whether the section was cleared, or dropped with its keyspace.
    fn is_gone(&self, section: &Section) -> bool {
        self.dropped.contains(&section.keyspace())
            || self.cleared.get(&section.keyspace()).is_some_and(|&start| section.segments().newest < start)
    }

    /// The state without tables. Names that two keyspaces have because of damage get a number.
    fn state(&self, plan: &LevelsPlan) -> DatabaseState {
        let mut state = DatabaseState {
            seed: self.seed,
            next_file: self.next_file,
            next_segment: self.next_segment,
            next_keyspace: self.next_keyspace,
            log_start: self.log_start,
            log_ends: self.log_ends.clone(),
            blobs: self.blobs.clone(),
            young_directory: self.young_directory,
            young_tables: self.young_tables.clone(),
            ..DatabaseState::default()
        };
        for (&id, (name, hasher, own_plan)) in
            self.created.iter().filter(|(id, _)| !self.dropped.contains(id))
        {
            let own_plan = self.planned.get(&id).unwrap_or(own_plan);
            let plan = match check_plan(&own_plan.plan, hasher) {
                Ok(()) => own_plan.clone(),
                Err(_) => PlanState { plan: suited(plan, hasher), ..own_plan.clone() },
            };
            let taken = state.keyspaces.values().any(|keyspace| keyspace.name == *name);
            let mut keyspace = unnamed(id, *hasher, plan);
            keyspace.log_start = self.cleared.get(&id).copied().unwrap_or_default();
            if !taken {
                keyspace.name.clone_from(name);
            }
            state.keyspaces.insert(id, keyspace);
        }
        state
    }
}

/// `plan`, or the default plan for the hasher's order if `plan` does not suit it.
fn suited(plan: &LevelsPlan, hasher: &KeyHasher) -> LevelsPlan {
    match check_plan(plan, hasher) {
        Ok(()) => plan.clone(),
        Err(_) if hasher.is_semi_sorted() => LevelsPlan::semi_sorted(),
        Err(_) => LevelsPlan::silt(),
    }
}

/// A keyspace whose name is lost.
pub(super) fn unnamed(id: KeyspaceId, hasher: KeyHasher, plan: PlanState) -> KeyspaceState {
    KeyspaceState {
        name: format!("keyspace-{id}"),
        hasher,
        log_start: SegmentId(0),
        body: LevelsState::new(plan),
        chained: BTreeMap::new(),
        directory: None,
        blob_references: BTreeMap::new(),
    }
}
