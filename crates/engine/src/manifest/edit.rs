//! One change of the database's structure.
//!
//! Written as JSON, so that a newer minor version can add fields and edits' meaning is plain to see in the file.

use alluvium_base::{HashRange, KeyHasher};
use alluvium_model::Plan;
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
    /// File and segment numbers below these are taken.
    Counters { next_file: u64, next_segment: u64, next_keyspace: u32 },
    /// Log segments below this are no longer needed.
    LogStart { segment: u64 },
    /// Recovery found the end of this segment: nothing after it counts, and the log goes on in the next one.
    LogEnd { segment: u64, offset: u64 },
    /// A new keyspace.
    CreateKeyspace {
        keyspace: u32,
        name: String,
        hasher: KeyHasher,
        plan: Plan,
        /// Who chose the plan.
        #[serde(default)]
        source: PlanSource,
    },
    /// The keyspace has this plan from now on, and the tables of its levels lie in those of this plan, the last in the
    /// last. Also when everything has moved: then there is no plan before.
    SetPlan {
        keyspace: u32,
        plan: Plan,
        /// How many plans the keyspace had before.
        number: u16,
        source: PlanSource,
        /// What tables are to leave, while some are to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<Plan>,
        /// How many items the plan was made for, if it was made for what is there.
        #[serde(default)]
        items_planned: u64,
    },
    /// The keyspace is gone with all its items. Its number is never used again.
    DropKeyspace { keyspace: u32 },
    /// This is a backup of another database, as it was at this time (milliseconds since 1970).
    Origin { database: u64, taken_at_ms: u64 },
    /// All items of the keyspace are gone; its records in segments below this one don't count.
    ClearKeyspace { keyspace: u32, log_start: u64 },
    /// The database has taken a second directory, which has this id, for tables of young levels.
    YoungDirectory { id: u64 },
    /// The table of this number, which later edits place, lies in the second directory.
    YoungTable { file: u64 },
    /// A run of hash sections for this keyspace, the youngest so far.
    AddRun {
        keyspace: u32,
        file: u64,
        shard_bits: u32,
        /// Share of its items that have older values in tables, estimated; 0 where that was not asked.
        #[serde(default)]
        repeats: f64,
        /// Items of the keyspace in the file, tombstones included; 0 where nobody noted it.
        #[serde(default, skip_serializing_if = "is_none")]
        items: u64,
    },
    /// These shards of a run, counted at its own number of shards, are merged and gone.
    DropShards { keyspace: u32, file: u64, shards: Vec<u32> },
    /// A sorted table in a part of the hash space.
    AddSorted {
        keyspace: u32,
        file: u64,
        #[serde(flatten)]
        range: HashRange,
        /// The number of its level in the plan; 0, as manifests of major version 1 have it, is the last one.
        #[serde(default)]
        level: usize,
        /// Whether it lies over what the level has there, rather than in its place.
        #[serde(default, skip_serializing_if = "is_false")]
        over: bool,
        /// Estimated share of its items that replace older versions in deeper levels, or below it in its own level if
        /// `over`; 0 if that was not asked.
        #[serde(default, skip_serializing_if = "is_zero")]
        repeats: f64,
        /// Items in the file, tombstones included; 0 where nobody noted it.
        #[serde(default, skip_serializing_if = "is_none")]
        items: u64,
    },
    /// Nothing of the level counts any more in this part of the hash space.
    DropSorted {
        keyspace: u32,
        level: usize,
        #[serde(flatten)]
        range: HashRange,
    },
    /// A blob file, to which records are appended from now on.
    AddBlob { file: u64 },
    /// Nothing is appended to the blob file any more; its first `bytes` are durable.
    SealBlob { file: u64, bytes: u64 },
    /// No table of the keyspace, and no log record that counts, needs the blob file any more.
    DropBlob { file: u64 },
    /// The keyspace's tables refer to so many bytes more (or fewer) of the blob file. Means nothing for a file that was
    /// dropped: what still refers to it is hidden.
    BlobReferences {
        keyspace: u32,
        file: u64,
        delta: i64,
        /// The first bytes of the file that are durable, headers and what they lead to; 0 where it is finished, or
        /// where nobody noted it.
        #[serde(default, skip_serializing_if = "is_none")]
        durable: u64,
    },
}

impl Edit {
    /// The keyspace has the plan of this state, and its data have come as far.
    pub fn set_plan(keyspace: u32, state: &PlanState) -> Self {
        let PlanState { plan, number, source, before, items_planned } = state.clone();
        Self::SetPlan { keyspace, plan, number, source, before, items_planned }
    }
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
