//! The database's structure: what the edits add up to.

use std::collections::{BTreeMap, BTreeSet};

use alluvium_base::KeyHasher;
use alluvium_model::Plan;

use super::edit::Edit;

/// The whole structure.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct DatabaseState {
    pub seed: u64,
    pub next_file: u64,
    pub next_segment: u64,
    pub next_keyspace: u32,
    pub log_start: u64,
    /// Ends of segments that a crash cut short, by segment.
    pub log_ends: BTreeMap<u64, u64>,
    pub keyspaces: BTreeMap<u32, KeyspaceState>,
    /// Blob files with their lengths; `None` for one that is being written.
    pub blobs: BTreeMap<u64, Option<u64>>,
    /// Which database this was copied from, and when (milliseconds since 1970).
    pub origin: Option<(u64, u64)>,
}

/// The structure of one keyspace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeyspaceState {
    pub name: String,
    pub hasher: KeyHasher,
    pub plan: Plan,
    /// Records of earlier segments don't count.
    pub log_start: u64,
    /// Old to young.
    pub runs: Vec<RunState>,
    /// Ascending and disjoint.
    pub sorted: Vec<SortedTableState>,
    /// Bytes of blob files that the tables refer to, by file.
    pub blob_references: BTreeMap<u64, u64>,
}

/// A run of hash sections.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunState {
    pub file: u64,
    pub shard_bits: u32,
    pub dropped: BTreeSet<u32>,
}

/// The part of a sorted table that counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SortedTableState {
    pub file: u64,
    pub low: u64,
    pub high: u64,
}

impl DatabaseState {
    /// Applies one edit; `Err` says why it can't follow from the state.
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
            Edit::CreateKeyspace { keyspace, name, hasher, plan } => {
                let state = KeyspaceState {
                    name: name.clone(),
                    hasher: *hasher,
                    plan: plan.clone(),
                    log_start: 0,
                    runs: Vec::new(),
                    sorted: Vec::new(),
                    blob_references: BTreeMap::new(),
                };
                if self.keyspaces.insert(*keyspace, state).is_some() {
                    return Err(format!("keyspace {keyspace} is created twice"));
                }
                self.next_keyspace = self.next_keyspace.max(keyspace + 1);
            }
            Edit::DropKeyspace { keyspace } => {
                self.keyspace(*keyspace)?;
                self.keyspaces.remove(keyspace);
            }
            Edit::Origin { database, taken_at_ms } => self.origin = Some((*database, *taken_at_ms)),
            Edit::ClearKeyspace { keyspace, log_start } => {
                let state = self.keyspace(*keyspace)?;
                state.log_start = *log_start;
                state.runs.clear();
                state.sorted.clear();
                state.blob_references.clear();
            }
            Edit::AddRun { keyspace, file, shard_bits } => {
                let run = RunState { file: *file, shard_bits: *shard_bits, dropped: BTreeSet::new() };
                self.keyspace(*keyspace)?.runs.push(run);
                self.next_file = self.next_file.max(file + 1);
            }
            Edit::DropShards { keyspace, file, shards } => {
                let state = self.keyspace(*keyspace)?;
                let run = state
                    .runs
                    .iter_mut()
                    .find(|run| run.file == *file)
                    .ok_or_else(|| format!("shards of run {file}, which does not exist, are dropped"))?;
                run.dropped.extend(shards);
                let bits = run.shard_bits;
                state.runs.retain(|run| run.file != *file || run.dropped.len() < 1 << bits);
            }
            Edit::AddSorted { keyspace, file, low, high } => {
                let table = SortedTableState { file: *file, low: *low, high: *high };
                let state = self.keyspace(*keyspace)?;
                state.sorted = replace_range(&state.sorted, table);
                self.next_file = self.next_file.max(file + 1);
            }
            Edit::AddBlob { file } => {
                if self.blobs.insert(*file, None).is_some() {
                    return Err(format!("blob file {file} is added twice"));
                }
                self.next_file = self.next_file.max(file.saturating_add(1));
            }
            Edit::SealBlob { file, bytes } => match self.blobs.get_mut(file) {
                Some(length) => *length = Some(*bytes),
                None => return Err(format!("blob file {file}, which does not exist, is sealed")),
            },
            Edit::DropBlob { file } => {
                self.blobs.remove(file);
                for state in self.keyspaces.values_mut() {
                    state.blob_references.remove(file);
                }
            }
            Edit::BlobReferences { keyspace, file, delta } => {
                if self.blobs.contains_key(file) {
                    self.keyspace(*keyspace)?.count_references(*file, *delta)?;
                }
            }
        }
        Ok(())
    }

    fn keyspace(&mut self, id: u32) -> Result<&mut KeyspaceState, String> {
        self.keyspaces.get_mut(&id).ok_or_else(|| format!("keyspace {id} does not exist"))
    }

    /// Edits that build this state from nothing.
    pub fn to_edits(&self) -> Vec<Edit> {
        let mut edits = vec![
            Edit::Database { seed: self.seed },
            Edit::Counters {
                next_file: self.next_file,
                next_segment: self.next_segment,
                next_keyspace: self.next_keyspace,
            },
            Edit::LogStart { segment: self.log_start },
        ];
        let ends = self.log_ends.iter();
        edits.extend(ends.map(|(&segment, &offset)| Edit::LogEnd { segment, offset }));
        for (&file, &length) in &self.blobs {
            edits.push(Edit::AddBlob { file });
            edits.extend(length.map(|bytes| Edit::SealBlob { file, bytes }));
        }
        let origin = self.origin.iter();
        edits.extend(origin.map(|&(database, taken_at_ms)| Edit::Origin { database, taken_at_ms }));
        for (&keyspace, state) in &self.keyspaces {
            edits.push(Edit::CreateKeyspace {
                keyspace,
                name: state.name.clone(),
                hasher: state.hasher,
                plan: state.plan.clone(),
            });
            if state.log_start > 0 {
                edits.push(Edit::ClearKeyspace { keyspace, log_start: state.log_start });
            }
            for run in &state.runs {
                edits.push(Edit::AddRun { keyspace, file: run.file, shard_bits: run.shard_bits });
                if !run.dropped.is_empty() {
                    let shards = run.dropped.iter().copied().collect();
                    edits.push(Edit::DropShards { keyspace, file: run.file, shards });
                }
            }
            for table in &state.sorted {
                let SortedTableState { file, low, high } = *table;
                edits.push(Edit::AddSorted { keyspace, file, low, high });
            }
            let references = state.blob_references.iter();
            edits.extend(references.map(|(&file, &bytes)| {
                let delta = i64::try_from(bytes).unwrap_or(i64::MAX);
                Edit::BlobReferences { keyspace, file, delta }
            }));
        }
        edits
    }

    /// Whether some keyspace uses the table file of this number.
    pub fn names_file(&self, number: u64) -> bool {
        self.keyspaces.values().any(|state| {
            state.runs.iter().any(|run| run.file == number)
                || state.sorted.iter().any(|table| table.file == number)
        })
    }

    /// Numbers of all table files in use.
    pub fn files(&self) -> BTreeSet<u64> {
        let keyspaces = self.keyspaces.values();
        keyspaces
            .flat_map(|state| {
                let runs = state.runs.iter().map(|run| run.file);
                runs.chain(state.sorted.iter().map(|table| table.file))
            })
            .collect()
    }
}

impl KeyspaceState {
    fn count_references(&mut self, file: u64, delta: i64) -> Result<(), String> {
        let bytes = self.blob_references.entry(file).or_default();
        *bytes = bytes
            .checked_add_signed(delta)
            .ok_or_else(|| format!("{bytes} bytes of blob file {file} are referred to, and {delta} more"))?;
        self.blob_references.retain(|_, bytes| *bytes > 0);
        Ok(())
    }
}

/// `tables` with `new` in place of whatever covered its range; tables that reach out of it keep the rest.
fn replace_range(tables: &[SortedTableState], new: SortedTableState) -> Vec<SortedTableState> {
    let mut result = Vec::with_capacity(tables.len() + 2);
    let mut placed = false;
    for table in tables {
        if table.high < new.low {
            result.push(*table);
            continue;
        }
        if table.low < new.low {
            result.push(SortedTableState { high: new.low - 1, ..*table });
        }
        if !placed {
            result.push(new);
            placed = true;
        }
        if table.high > new.high {
            result.push(SortedTableState { low: table.low.max(new.high + 1), ..*table });
        }
    }
    if !placed {
        result.push(new);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn created() -> DatabaseState {
        let mut state = DatabaseState::default();
        let create = Edit::CreateKeyspace {
            keyspace: 0,
            name: "default".to_owned(),
            hasher: KeyHasher::Xxh3 { seed: 1 },
            plan: Plan::silt(),
        };
        state.apply(&create).unwrap();
        state
    }

    proptest! {
        /// The reference is a map from each small hash to the file that covers it.
        #[test]
        fn a_new_sorted_table_replaces_its_range_and_nothing_else(
            ranges in prop::collection::vec((0u64..40, 0u64..40), 0..12),
        ) {
            let mut state = created();
            let mut model = [None; 40];
            for (file, &(a, b)) in ranges.iter().enumerate() {
                let (low, high) = (a.min(b), a.max(b));
                state.apply(&Edit::AddSorted { keyspace: 0, file: file as u64, low, high }).unwrap();
                model[low as usize..=high as usize].fill(Some(file as u64));
            }
            let sorted = &state.keyspaces[&0].sorted;
            prop_assert!(sorted.windows(2).all(|pair| pair[0].high < pair[1].low));
            for (hash, expected) in model.into_iter().enumerate() {
                let hash = hash as u64;
                let found = sorted.iter().find(|table| table.low <= hash && hash <= table.high);
                prop_assert_eq!(found.map(|table| table.file), expected);
            }
            let mut rebuilt = DatabaseState::default();
            for edit in state.to_edits() {
                rebuilt.apply(&edit).unwrap();
            }
            prop_assert_eq!(rebuilt, state);
        }
    }

    #[test]
    fn references_to_blobs_are_counted_until_the_file_is_dropped() {
        let mut state = created();
        let count = |delta| Edit::BlobReferences { keyspace: 0, file: 9, delta };
        state.apply(&count(5)).unwrap();
        assert!(state.keyspaces[&0].blob_references.is_empty());
        state.apply(&Edit::AddBlob { file: 9 }).unwrap();
        assert!(state.apply(&Edit::AddBlob { file: 9 }).is_err());
        state.apply(&count(5)).unwrap();
        state.apply(&count(7)).unwrap();
        assert!(state.clone().apply(&count(-13)).is_err());
        state.apply(&Edit::SealBlob { file: 9, bytes: 40 }).unwrap();
        let mut rebuilt = DatabaseState::default();
        state.to_edits().iter().for_each(|edit| rebuilt.apply(edit).unwrap());
        assert_eq!(rebuilt, state);
        state.apply(&count(-12)).unwrap();
        assert!(state.keyspaces[&0].blob_references.is_empty());
        state.apply(&count(3)).unwrap();
        state.apply(&Edit::DropBlob { file: 9 }).unwrap();
        state.apply(&count(-3)).unwrap();
        assert!(state.blobs.is_empty() && state.keyspaces[&0].blob_references.is_empty());
        assert!(state.apply(&Edit::SealBlob { file: 9, bytes: 40 }).is_err());
    }

    #[test]
    fn a_dropped_keyspace_is_gone_and_its_number_is_not_used_again() {
        let mut state = created();
        state.apply(&Edit::Origin { database: 3, taken_at_ms: 4 }).unwrap();
        state.apply(&Edit::AddRun { keyspace: 0, file: 3, shard_bits: 1 }).unwrap();
        state.apply(&Edit::DropKeyspace { keyspace: 0 }).unwrap();
        assert!(state.keyspaces.is_empty() && !state.names_file(3));
        assert_eq!(state.next_keyspace, 1);
        assert!(state.apply(&Edit::DropKeyspace { keyspace: 0 }).is_err());
        let mut rebuilt = DatabaseState::default();
        state.to_edits().iter().for_each(|edit| rebuilt.apply(edit).unwrap());
        assert_eq!(rebuilt, state);
    }

    #[test]
    fn a_run_vanishes_with_its_last_shard() {
        let mut state = created();
        state.apply(&Edit::AddRun { keyspace: 0, file: 3, shard_bits: 1 }).unwrap();
        state.apply(&Edit::DropShards { keyspace: 0, file: 3, shards: vec![1] }).unwrap();
        assert_eq!(state.keyspaces[&0].runs.len(), 1);
        state.apply(&Edit::DropShards { keyspace: 0, file: 3, shards: vec![0] }).unwrap();
        assert!(state.keyspaces[&0].runs.is_empty());
        assert!(state.apply(&Edit::DropShards { keyspace: 0, file: 3, shards: vec![0] }).is_err());
    }
}
