//! The edits that make up a state.

use alluvium_base::SegmentId;

use super::edit::Edit;
use super::keyspace_state::{ChainedSegment, SavedDirectory};
use super::levels_state::{PlacedTableState, RunState};
use super::plan_state::PlanState;
use super::state::DatabaseState;
use crate::level::Container;

impl DatabaseState {
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
        let mut items = self.table_items.clone();
        let ends = self.log_ends.iter();
        edits.extend(ends.map(|(&segment, &offset)| Edit::LogEnd { segment, offset }));
        for (&file, &length) in &self.blobs {
            edits.push(Edit::AddBlob { file });
            edits.extend(length.map(|bytes| Edit::SealBlob { file, bytes }));
        }
        let origin = self.origin.iter();
        edits.extend(origin.map(|&(database, taken_at_ms)| Edit::Origin { database, taken_at_ms }));
        edits.extend(self.young_directory.map(|id| Edit::YoungDirectory { id }));
        edits.extend(self.young_tables().map(|file| Edit::YoungTable { file }));
        for (&keyspace, state) in &self.keyspaces {
            edits.push(Edit::CreateKeyspace {
                keyspace,
                name: state.name.clone(),
                hasher: state.hasher,
                plan: state.body.plan.plan.clone(),
                source: state.body.plan.source,
            });
            if state.body.plan != PlanState::first(state.body.plan.plan.clone(), state.body.plan.source) {
                edits.push(Edit::SetPlan { keyspace, plan: state.body.plan.clone() });
            }
            if state.log_start > SegmentId(0) {
                edits.push(Edit::ClearKeyspace { keyspace, log_start: state.log_start });
            }
            for (&segment, &ChainedSegment { seed, bytes }) in &state.chained {
                edits.push(Edit::AddChained { keyspace, segment, seed, bytes });
            }
            edits.extend(state.directory.map(|SavedDirectory { file, from, synced: (segment, offset) }| {
                Edit::SaveDirectory { keyspace, file, from, segment, offset }
            }));
            for run in &state.body.runs {
                let RunState { file, shard_bits, repeats, .. } = *run;
                let items = items.remove(&file).unwrap_or(0);
                edits.push(Edit::AddRun { keyspace, file, shard_bits, repeats, items });
                if !run.dropped.is_empty() {
                    let shards = run.dropped.iter().copied().collect();
                    edits.push(Edit::DropShards { keyspace, file: run.file, shards });
                }
            }
            for (level, containers) in (1..).zip(&state.body.levels) {
                for &Container { range, ref tables } in containers {
                    for (number, &PlacedTableState { file, repeats }) in tables.iter().rev().enumerate() {
                        let over = number > 0;
                        let items = items.get(&file).copied().unwrap_or(0);
                        edits.push(Edit::AddSorted { keyspace, file, range, level, over, repeats, items });
                    }
                }
            }
            let references = state.blob_references.iter();
            edits.extend(references.map(|(&file, &bytes)| {
                let delta = i64::try_from(bytes).unwrap_or(i64::MAX);
                let durable = self.durable_blobs.get(&file).copied().unwrap_or(0);
                Edit::BlobReferences { keyspace, file, delta, durable }
            }));
        }
        edits
    }
}

#[cfg(test)]
mod tests {
    use alluvium_base::{KeyHasher, KeyspaceId};
    use alluvium_model::LevelsPlan;

    use super::super::plan_state::PlanSource;
    use super::*;

    #[test]
    fn a_saved_directory_is_there_as_long_as_segments_stay() {
        let keyspace = KeyspaceId(0);
        let add = |segment| Edit::AddChained { keyspace, segment: SegmentId(segment), seed: 9, bytes: 5000 };
        let drop = |segment| Edit::DropChained { keyspace, segment: SegmentId(segment) };
        let save = |file| {
            let (from, segment, offset) = (SegmentId(4), SegmentId(5), 4100);
            Edit::SaveDirectory { keyspace, file, from, segment, offset }
        };
        let mut state = DatabaseState::default();
        let create = Edit::CreateKeyspace {
            keyspace,
            name: "k".to_owned(),
            hasher: KeyHasher::Xxh3 { seed: 1 },
            plan: LevelsPlan::silt(),
            source: PlanSource::Own,
        };
        state.apply(&create).unwrap();
        assert!(state.apply(&save(3)).unwrap_err().contains("no chains"));
        for edit in [add(2), add(3), save(3), save(6)] {
            state.apply(&edit).unwrap();
        }
        assert!(state.names_directory(6) && !state.names_directory(3) && state.next_file == 7);
        assert_eq!(state.synced(), (SegmentId(5), 4100));
        let mut rebuilt = DatabaseState::default();
        state.to_edits().iter().for_each(|edit| rebuilt.apply(edit).unwrap());
        assert_eq!(rebuilt, state);
        let mut cleared = state.clone();
        cleared.apply(&Edit::ClearKeyspace { keyspace, log_start: SegmentId(6) }).unwrap();
        assert!(!cleared.names_directory(6));
        state.apply(&drop(2)).unwrap();
        assert!(state.names_directory(6));
        state.apply(&drop(3)).unwrap();
        assert!(!state.names_directory(6) && state.synced() == (SegmentId(0), 0));
        assert!(state.apply(&drop(3)).is_err());
    }
}
