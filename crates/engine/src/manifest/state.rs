//! The database's structure: the result of all edits.

use std::collections::{BTreeMap, BTreeSet};

use alluvium_base::{BlobId, HashRange, KeyspaceId, SegmentId, TableId};

use super::edit::Edit;
use super::keyspace_state::{ChainedSegment, KeyspaceState, SavedDirectory};
use super::levels_state::{LevelsState, PlacedTableState, RunState};
use super::plan_state::PlanState;
use crate::level::{Container, pushed, replaced};

/// The whole structure.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DatabaseState {
    pub seed: u64,
    pub next_file: u64,
    pub next_segment: SegmentId,
    pub next_keyspace: KeyspaceId,
    pub log_start: SegmentId,
    /// Ends of segments that recovery found, by segment.
    pub log_ends: BTreeMap<SegmentId, u64>,
    pub keyspaces: BTreeMap<KeyspaceId, KeyspaceState>,
    /// Blob files with their lengths; `None` for one that is being written.
    pub blobs: BTreeMap<BlobId, Option<u64>>,
    /// The durable length of blob files that are being written, if tables refer to them.
    pub durable_blobs: BTreeMap<BlobId, u64>,
    /// Items in table files, if known; includes some files that are gone.
    pub table_items: BTreeMap<TableId, u64>,
    /// The id of the second directory, if there is one.
    pub young_directory: Option<u64>,
    /// Tables stored there; includes some that are gone.
    pub young_tables: BTreeSet<TableId>,
    /// Which database this was copied from, and when (milliseconds since 1970).
    pub origin: Option<(u64, u64)>,
}

impl DatabaseState {
    /// Applies one edit. `Err` says why it does not fit the state.
    pub fn apply(&mut self, edit: &Edit) -> Result<(), String> {
        match edit {
            Edit::Database { seed } => self.seed = *seed,
            Edit::Counters { next_file, next_segment, next_keyspace } => {
                self.next_file = self.next_file.max(*next_file);
                self.next_segment = self.next_segment.max(*next_segment);
                self.next_keyspace = self.next_keyspace.max(*next_keyspace);
            }
            Edit::LogStart { segment } => {
                self.log_start = *segment;
                self.log_ends = self.log_ends.split_off(segment);
            }
            Edit::LogEnd { segment, offset } => {
                self.log_ends.insert(*segment, *offset);
            }
            Edit::CreateKeyspace { keyspace, name, hasher, plan, source } => {
                let plan = PlanState::first(plan.clone(), *source);
                let state = KeyspaceState {
                    name: name.clone(),
                    hasher: *hasher,
                    log_start: SegmentId(0),
                    body: LevelsState::new(plan),
                    chained: BTreeMap::new(),
                    directory: None,
                    blob_references: BTreeMap::new(),
                };
                if self.keyspaces.insert(*keyspace, state).is_some() {
                    return Err(format!("keyspace {keyspace} is created twice"));
                }
                self.next_keyspace = self.next_keyspace.max(keyspace.next());
            }
            Edit::SetPlan { keyspace, plan } => {
                let state = self.keyspace(*keyspace)?;
                if plan.levels() == 0 {
                    return Err(format!("the new plan of keyspace {keyspace} has no levels"));
                }
                state.body.set_plan(plan.clone());
            }
            Edit::DropKeyspace { keyspace } => {
                self.keyspace(*keyspace)?;
                self.keyspaces.remove(keyspace);
            }
            Edit::Origin { database, taken_at_ms } => self.origin = Some((*database, *taken_at_ms)),
            Edit::YoungDirectory { id } => self.young_directory = Some(*id),
            Edit::YoungTable { file } => {
                if self.young_directory.is_none() {
                    return Err(format!("table {file} is in a second directory, which does not exist"));
                }
                self.young_tables.insert(*file);
            }
            Edit::ClearKeyspace { keyspace, log_start } => {
                let state = self.keyspace(*keyspace)?;
                state.log_start = *log_start;
                state.body = LevelsState::new(state.body.plan.clone());
                state.chained.clear();
                state.directory = None;
                state.blob_references.clear();
            }
            Edit::AddRun { keyspace, file, shard_bits, repeats, items } => {
                let (file, shard_bits, repeats) = (*file, *shard_bits, *repeats);
                let run = RunState { file, shard_bits, repeats, dropped: BTreeSet::new() };
                self.keyspace(*keyspace)?.body.runs.push(run);
                // A file has runs of several keyspaces.
                self.note_items(file, self.table_items.get(&file).map_or(*items, |known| known + items));
                self.next_file = self.next_file.max(file.0 + 1);
            }
            Edit::DropShards { keyspace, file, shards } => {
                let state = self.keyspace(*keyspace)?;
                let run = state
                    .body
                    .runs
                    .iter_mut()
                    .find(|run| run.file == *file)
                    .ok_or_else(|| format!("shards of run {file}, which does not exist, are dropped"))?;
                run.dropped.extend(shards);
                let bits = run.shard_bits;
                state.body.runs.retain(|run| run.file != *file || run.dropped.len() < 1 << bits);
            }
            Edit::AddSorted { keyspace, file, range, level, over, repeats, items } => {
                let table = PlacedTableState { file: *file, repeats: *repeats };
                let level = self.level(*keyspace, *level, *range)?;
                *level = match over {
                    true => pushed(level, *range, &table),
                    false => replaced(level, *range, Some(table)),
                };
                self.next_file = self.next_file.max(file.0 + 1);
                self.note_items(*file, *items);
            }
            Edit::DropSorted { keyspace, level, range } => {
                let level = self.level(*keyspace, *level, *range)?;
                *level = replaced(level, *range, None);
            }
            Edit::AddBlob { file } => {
                if self.blobs.insert(*file, None).is_some() {
                    return Err(format!("blob file {file} is added twice"));
                }
                self.next_file = self.next_file.max(file.0.saturating_add(1));
            }
            Edit::SealBlob { file, bytes } => match self.blobs.get_mut(file) {
                Some(length) => {
                    *length = Some(*bytes);
                    self.durable_blobs.remove(file);
                }
                None => return Err(format!("blob file {file}, which does not exist, is sealed")),
            },
            Edit::DropBlob { file } => {
                self.blobs.remove(file);
                self.durable_blobs.remove(file);
                for state in self.keyspaces.values_mut() {
                    state.blob_references.remove(file);
                }
            }
            Edit::AddChained { keyspace, segment, seed, bytes } => {
                let state = self.keyspace(*keyspace)?;
                state.chained.insert(*segment, ChainedSegment { seed: *seed, bytes: *bytes });
            }
            Edit::DropChained { keyspace, segment } => {
                let state = self.keyspace(*keyspace)?;
                if state.chained.remove(segment).is_none() {
                    return Err(format!(
                        "segment {segment}, which keyspace {keyspace} does not need, is dropped"
                    ));
                }
                if state.chained.is_empty() {
                    state.directory = None;
                }
            }
            Edit::SaveDirectory { keyspace, file, from, segment, offset } => {
                let state = self.keyspace(*keyspace)?;
                if state.chained.is_empty() {
                    return Err(format!("keyspace {keyspace} has a directory, but no chains"));
                }
                let synced = (*segment, *offset);
                state.directory = Some(SavedDirectory { file: *file, from: *from, synced });
                self.next_file = self.next_file.max(file.saturating_add(1));
            }
            Edit::BlobReferences { keyspace, file, delta, durable } => {
                if let Some(sealed) = self.blobs.get(file).copied() {
                    self.keyspace(*keyspace)?.count_references(*file, *delta)?;
                    if sealed.is_none() && *durable > 0 {
                        let known = self.durable_blobs.entry(*file).or_default();
                        *known = (*known).max(*durable);
                    }
                }
            }
        }
        Ok(())
    }

    fn keyspace(&mut self, id: KeyspaceId) -> Result<&mut KeyspaceState, String> {
        self.keyspaces.get_mut(&id).ok_or_else(|| format!("keyspace {id} does not exist"))
    }

    /// The containers of a level, by its number in the plan, to change something in `range`.
    fn level(
        &mut self,
        keyspace: KeyspaceId,
        number: usize,
        range: HashRange,
    ) -> Result<&mut Vec<Container<PlacedTableState>>, String> {
        if range.low > range.high {
            return Err(format!("a table covers {range}, which is nothing"));
        }
        let levels = &mut self.keyspace(keyspace)?.body.levels;
        let last = levels.len();
        let number = if number == 0 { last } else { number };
        let level = number.checked_sub(1).and_then(|index| levels.get_mut(index));
        level.ok_or_else(|| format!("level {number} of keyspace {keyspace}, which has {last} of tables"))
    }
}

#[cfg(test)]
mod tests {
    use alluvium_base::KeyHasher;
    use alluvium_model::LevelsPlan;
    use proptest::prelude::*;

    use super::super::plan_state::PlanSource;
    use super::*;

    fn created() -> DatabaseState {
        let mut state = DatabaseState::default();
        let create = Edit::CreateKeyspace {
            keyspace: KeyspaceId(0),
            name: "default".to_owned(),
            hasher: KeyHasher::Xxh3 { seed: 1 },
            plan: LevelsPlan::silt(),
            source: PlanSource::Database,
        };
        state.apply(&create).unwrap();
        state
    }

    /// A keyspace of four levels.
    fn created_deep() -> DatabaseState {
        let LevelsPlan { sharding, log, mut levels } = LevelsPlan::silt();
        levels.extend([levels[1]; 2]);
        let mut state = created();
        state.apply(&Edit::DropKeyspace { keyspace: KeyspaceId(0) }).unwrap();
        let plan = LevelsPlan { sharding, log, levels };
        let hasher = KeyHasher::Xxh3 { seed: 1 };
        let (name, source) = ("deep".to_owned(), PlanSource::Own);
        state.apply(&Edit::CreateKeyspace { keyspace: KeyspaceId(0), name, hasher, plan, source }).unwrap();
        state
    }

    proptest! {
        /// The reference is a map from each small hash to the stack of files over it in each level, young to old.
        #[test]
        fn tables_come_and_go_where_edits_say(
            edits in prop::collection::vec((0u128..40, 0u128..40, 0usize..=3, 0u8..4), 0..20),
        ) {
            let mut state = created_deep();
            let mut model = vec![vec![Vec::new(); 40]; 3];
            for (file, &(a, b, level, change)) in edits.iter().enumerate() {
                let (low, high) = (a.min(b), a.max(b));
                let (file, range) = (TableId(file as u64), HashRange::new(low, high));
                let over = &mut model[if level == 0 { 2 } else { level - 1 }][low as usize..=high as usize];
                let edit = match change {
                    0 if level > 0 => {
                        over.fill(Vec::new());
                        Edit::DropSorted { keyspace: KeyspaceId(0), level, range }
                    }
                    0 | 1 => {
                        over.fill(vec![file]);
                        let keyspace = KeyspaceId(0);
                        Edit::AddSorted { keyspace, file, range, level, over: false, repeats: 0.0, items: 0 }
                    }
                    _ => {
                        over.iter_mut().for_each(|stack| stack.insert(0, file));
                        let keyspace = KeyspaceId(0);
                        Edit::AddSorted { keyspace, file, range, level, over: true, repeats: 0.25, items: 0 }
                    }
                };
                state.apply(&edit).unwrap();
            }
            for (level, expected) in state.keyspaces[&KeyspaceId(0)].body.levels.iter().zip(&model) {
                prop_assert!(level.windows(2).all(|pair| pair[0].range.high < pair[1].range.low));
                for (hash, expected) in (0u128..).zip(expected) {
                    let found = level.iter().find(|one| one.range.contains(hash));
                    let found = found.map(|one| one.tables.iter().map(|table| table.file).collect());
                    prop_assert_eq!(&found.unwrap_or_else(Vec::new), expected);
                }
            }
            let mut rebuilt = DatabaseState::default();
            for edit in state.to_edits() {
                rebuilt.apply(&edit).unwrap();
            }
            prop_assert_eq!(rebuilt.keyspaces, state.keyspaces);
        }
    }

    #[test]
    fn a_table_of_no_level_or_no_range_is_refused() {
        let mut state = created();
        let add = |level, low, high| Edit::AddSorted {
            keyspace: KeyspaceId(0),
            file: TableId(1),
            range: HashRange::new(low, high),
            level,
            over: false,
            repeats: 0.0,
            items: 0,
        };
        assert!(state.apply(&add(2, 0, 9)).unwrap_err().contains("level 2"));
        assert!(state.apply(&add(1, 9, 8)).unwrap_err().contains("nothing"));
        state.apply(&add(1, 0, (10 << 64) - 1)).unwrap();
        let old: Edit =
            serde_json::from_str(r#"{"add_sorted":{"keyspace":0,"file":2,"low":5,"high":9}}"#).unwrap();
        state.apply(&old).unwrap();
        let files: Vec<TableId> = state.keyspaces[&KeyspaceId(0)].body.files().collect();
        assert_eq!(files, [TableId(1), TableId(2)]);
    }

    #[test]
    fn references_to_blobs_are_counted_until_the_file_is_dropped() {
        let mut state = created();
        let count =
            |delta| Edit::BlobReferences { keyspace: KeyspaceId(0), file: BlobId(9), delta, durable: 0 };
        state.apply(&count(5)).unwrap();
        assert!(state.keyspaces[&KeyspaceId(0)].blob_references.is_empty());
        state.apply(&Edit::AddBlob { file: BlobId(9) }).unwrap();
        assert!(state.apply(&Edit::AddBlob { file: BlobId(9) }).is_err());
        state.apply(&count(5)).unwrap();
        state.apply(&count(7)).unwrap();
        assert!(state.clone().apply(&count(-13)).is_err());
        state.apply(&Edit::SealBlob { file: BlobId(9), bytes: 40 }).unwrap();
        let mut rebuilt = DatabaseState::default();
        state.to_edits().iter().for_each(|edit| rebuilt.apply(edit).unwrap());
        assert_eq!(rebuilt, state);
        state.apply(&count(-12)).unwrap();
        assert!(state.keyspaces[&KeyspaceId(0)].blob_references.is_empty());
        state.apply(&count(3)).unwrap();
        state.apply(&Edit::DropBlob { file: BlobId(9) }).unwrap();
        state.apply(&count(-3)).unwrap();
        assert!(state.blobs.is_empty() && state.keyspaces[&KeyspaceId(0)].blob_references.is_empty());
        assert!(state.apply(&Edit::SealBlob { file: BlobId(9), bytes: 40 }).is_err());
    }

    #[test]
    fn a_dropped_keyspace_is_gone_and_its_number_is_not_used_again() {
        let mut state = created();
        state.apply(&Edit::Origin { database: 3, taken_at_ms: 4 }).unwrap();
        state
            .apply(&Edit::AddRun {
                keyspace: KeyspaceId(0),
                file: TableId(3),
                shard_bits: 1,
                repeats: 0.0,
                items: 0,
            })
            .unwrap();
        state.apply(&Edit::DropKeyspace { keyspace: KeyspaceId(0) }).unwrap();
        assert!(state.keyspaces.is_empty() && !state.names_file(TableId(3)));
        assert_eq!(state.next_keyspace, KeyspaceId(1));
        assert!(state.apply(&Edit::DropKeyspace { keyspace: KeyspaceId(0) }).is_err());
        let mut rebuilt = DatabaseState::default();
        state.to_edits().iter().for_each(|edit| rebuilt.apply(edit).unwrap());
        assert_eq!(rebuilt, state);
    }

    #[test]
    fn a_run_vanishes_with_its_last_shard() {
        let mut state = created();
        state
            .apply(&Edit::AddRun {
                keyspace: KeyspaceId(0),
                file: TableId(3),
                shard_bits: 1,
                repeats: 0.0,
                items: 0,
            })
            .unwrap();
        state
            .apply(&Edit::DropShards { keyspace: KeyspaceId(0), file: TableId(3), shards: vec![1] })
            .unwrap();
        assert_eq!(state.keyspaces[&KeyspaceId(0)].body.runs.len(), 1);
        state
            .apply(&Edit::DropShards { keyspace: KeyspaceId(0), file: TableId(3), shards: vec![0] })
            .unwrap();
        assert!(state.keyspaces[&KeyspaceId(0)].body.runs.is_empty());
        assert!(
            state
                .apply(&Edit::DropShards { keyspace: KeyspaceId(0), file: TableId(3), shards: vec![0] })
                .is_err()
        );
    }
}
