//! One change of the database's structure.
//!
//! Written as JSON, so that a newer minor version can add fields and a reader of the file understands the edits.

use alluvium_base::{BlobId, HashRange, KeyHasher, KeyspaceId, SegmentId, TableId};
use alluvium_model::LevelsPlan;
use serde::{Deserialize, Serialize};

use super::plan_state::{PlanSource, PlanState};

/// One change. On disk: fields may be added with a default, names never change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Edit {
    /// A new database. The first edit of every manifest.
    Database {
        /// Secret from which file and segment seeds derive.
        seed: u64,
    },
    /// All file, segment and keyspace numbers below these are in use or were used.
    Counters { next_file: u64, next_segment: SegmentId, next_keyspace: KeyspaceId },
    /// Log segments below this are no longer needed.
    LogStart { segment: SegmentId },
    /// Recovery found the end of this segment: nothing behind `offset` is valid, and the log continues in the next
    /// segment.
    LogEnd { segment: SegmentId, offset: u64 },
    /// A new keyspace.
    CreateKeyspace {
        keyspace: KeyspaceId,
        name: String,
        hasher: KeyHasher,
        plan: LevelsPlan,
        /// Who chose the plan.
        #[serde(default)]
        source: PlanSource,
    },
    /// The keyspace has this plan from now on, and the tables of its levels are now in the levels of this plan, those
    /// of the last in the last. Also written when all data have been moved: then `before` is absent.
    SetPlan {
        keyspace: KeyspaceId,
        #[serde(flatten)]
        plan: PlanState,
    },
    /// The keyspace is gone with all its items. Its number is never used again.
    DropKeyspace { keyspace: KeyspaceId },
    /// This is a backup of another database, as it was at this time (milliseconds since 1970).
    Origin { database: u64, taken_at_ms: u64 },
    /// All items of the keyspace are gone; its records in segments before this one are ignored.
    ClearKeyspace { keyspace: KeyspaceId, log_start: SegmentId },
    /// The database has taken a second directory, which has this id, for tables of young levels.
    YoungDirectory { id: u64 },
    /// The table of this number, which later edits add to a level, is stored in the second directory.
    YoungTable { file: TableId },
    /// A run of hash sections for this keyspace, the youngest so far.
    AddRun {
        keyspace: KeyspaceId,
        file: TableId,
        shard_bits: u32,
        /// Estimated share of its items that have obsolete versions in tables; 0 if that was not determined.
        #[serde(default)]
        repeats: f64,
        /// Items of the keyspace in the file, tombstones included; 0 if unknown.
        #[serde(default, skip_serializing_if = "is_none")]
        items: u64,
    },
    /// These shards of a run, numbered by the run's own shard count, are merged and gone.
    DropShards { keyspace: KeyspaceId, file: TableId, shards: Vec<u32> },
    /// A sorted table in a part of the hash space.
    AddSorted {
        keyspace: KeyspaceId,
        file: TableId,
        #[serde(flatten)]
        range: HashRange,
        /// The number of its level in the plan; 0, as in manifests of major version 1, means the last one.
        #[serde(default)]
        level: usize,
        /// Whether it is put on top of the level's tables there, instead of replacing them.
        #[serde(default, skip_serializing_if = "is_false")]
        over: bool,
        /// Estimated share of its items that replace older versions in deeper levels, or below it in its own level if
        /// `over`; 0 if that was not asked.
        #[serde(default, skip_serializing_if = "is_zero")]
        repeats: f64,
        /// Items in the file, tombstones included; 0 if unknown.
        #[serde(default, skip_serializing_if = "is_none")]
        items: u64,
    },
    /// The level has no tables in this part of the hash space any more.
    DropSorted {
        keyspace: KeyspaceId,
        level: usize,
        #[serde(flatten)]
        range: HashRange,
    },
    /// A blob file, to which records are appended from now on.
    AddBlob { file: BlobId },
    /// Nothing is appended to the blob file any more; its first `bytes` bytes are durable.
    SealBlob { file: BlobId, bytes: u64 },
    /// No table of any keyspace, and no log record in use, needs the blob file any more.
    DropBlob { file: BlobId },
    /// Records of the keyspace in this log segment stay there, linked to chains. The segment, which has this seed and
    /// this number of bytes, is needed, although it is before the log's start.
    AddChained { keyspace: KeyspaceId, segment: SegmentId, seed: u64, bytes: u64 },
    /// No record of the keyspace in this log segment is needed any more. It is the oldest of those that were.
    DropChained { keyspace: KeyspaceId, segment: SegmentId },
    /// This file has the directory of the keyspace's chains. It may lack records in segments from `from` on. All
    /// records that it has were durable: the log was synced up to `offset` of `segment`.
    SaveDirectory { keyspace: KeyspaceId, file: u64, from: SegmentId, segment: SegmentId, offset: u64 },
    /// The keyspace's tables refer to `delta` more bytes (fewer if negative) of the blob file. Has no effect for a file
    /// that was dropped: items that still refer to it are obsolete versions.
    BlobReferences {
        keyspace: KeyspaceId,
        file: BlobId,
        delta: i64,
        /// The length of the file's durable start, headers and their records; 0 if the file is finished, or if the
        /// length is unknown.
        #[serde(default, skip_serializing_if = "is_none")]
        durable: u64,
    },
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(number: &u64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &f64) -> bool {
    *number == 0.0
}
