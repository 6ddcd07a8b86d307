//! The structure of one keyspace, a part of the database's.

use std::collections::BTreeMap;

use alluvium_base::{BlobId, KeyHasher, SegmentId};

use super::levels_state::LevelsState;

/// The structure of one keyspace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeyspaceState {
    pub name: String,
    pub hasher: KeyHasher,
    /// Records in earlier segments are ignored.
    pub log_start: SegmentId,
    /// Its plan and tables.
    pub body: LevelsState,
    /// Segments before the log's start with records that are linked to chains, old to young.
    pub chained: BTreeMap<SegmentId, ChainedSegment>,
    /// The file with the directory of its chains, if there is one. Only while segments stay.
    pub directory: Option<SavedDirectory>,
    /// Bytes of blob files that the tables refer to, by file.
    pub blob_references: BTreeMap<BlobId, u64>,
}

/// A log segment that stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChainedSegment {
    pub seed: u64,
    pub bytes: u64,
}

/// The file of a directory of chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SavedDirectory {
    pub file: u64,
    /// Records in segments from this one on may be missing in it.
    pub from: SegmentId,
    /// How far the log was synced when the directory was written: the segment, and the offset there.
    pub synced: (SegmentId, u64),
}

impl KeyspaceState {
    pub(super) fn count_references(&mut self, file: BlobId, delta: i64) -> Result<(), String> {
        let bytes = self.blob_references.entry(file).or_default();
        *bytes = bytes
            .checked_add_signed(delta)
            .ok_or_else(|| format!("{bytes} bytes of blob file {file} are referred to, and {delta} more"))?;
        self.blob_references.retain(|_, bytes| *bytes > 0);
        Ok(())
    }
}
