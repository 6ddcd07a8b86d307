//! The structure of one keyspace, a part of the database's.

use std::collections::{BTreeMap, BTreeSet};

use super::plan_state::PlanState;
use crate::level::Container;
use alluvium_base::{BlobId, KeyHasher, SegmentId, TableId};

/// The structure of one keyspace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeyspaceState {
    pub name: String,
    pub hasher: KeyHasher,
    pub plan: PlanState,
    /// Records in earlier segments are ignored.
    pub log_start: SegmentId,
    /// Old to young.
    pub runs: Vec<RunState>,
    /// The levels below the youngest, level 1 first: their containers, ascending and disjoint.
    pub levels: Vec<Vec<Container<PlacedTableState>>>,
    /// Bytes of blob files that the tables refer to, by file.
    pub blob_references: BTreeMap<BlobId, u64>,
}

/// A run of hash sections.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunState {
    pub file: TableId,
    pub shard_bits: u32,
    pub repeats: f64,
    pub dropped: BTreeSet<u32>,
}

/// A table over a container.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PlacedTableState {
    pub file: TableId,
    pub repeats: f64,
}

impl KeyspaceState {
    /// Empty levels, as many as the plan has below the youngest.
    pub fn empty_levels(plan: &PlanState) -> Vec<Vec<Container<PlacedTableState>>> {
        vec![Vec::new(); plan.levels()]
    }

    /// Numbers of the table files in use. Some may be listed several times.
    pub fn files(&self) -> impl Iterator<Item = TableId> {
        let placed = self.levels.iter().flatten().flat_map(|container| &container.tables);
        self.runs.iter().map(|run| run.file).chain(placed.map(|table| table.file))
    }

    pub(super) fn count_references(&mut self, file: BlobId, delta: i64) -> Result<(), String> {
        let bytes = self.blob_references.entry(file).or_default();
        *bytes = bytes
            .checked_add_signed(delta)
            .ok_or_else(|| format!("{bytes} bytes of blob file {file} are referred to, and {delta} more"))?;
        self.blob_references.retain(|_, bytes| *bytes > 0);
        Ok(())
    }
}
