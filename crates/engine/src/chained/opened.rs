//! [`Opened`]: how an opening came to the directory of a keyspace's chains.

use serde::{Deserialize, Serialize};

/// Why an opening of the database made the directory of a chained keyspace from all records of its log, instead of
/// reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReplayReason {
    /// It was not saved since the first segment of the keyspace became a part of the store.
    NotSaved,
    /// Its file does not exist.
    Missing,
    /// Its file is damaged, or cannot be read, or is of a newer version.
    Damaged,
    /// The plan has chains of another kind now.
    OtherPlan,
    /// The log is damaged, and the database was opened for reading: what is left may lack records that it names.
    DamagedLog,
}

/// How an opening came to a directory.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Opened {
    /// Segments, of those that stay, that were read.
    pub segments_replayed: u64,
    /// Why all of them were read.
    pub reason: Option<ReplayReason>,
}
