//! The public face: [`Db`], [`Keyspace`], [`Batch`] and what they return.

mod accumulate;
mod backup;
mod batch;
mod change_plan;
mod checkpoint;
mod clear;
mod condition;
mod counters;
mod database;
mod delete_prefix;
mod disk_quota;
mod drop_keyspace;
mod get_each;
mod health;
mod ingest;
mod keyspace;
mod large;
mod memory_budget;
mod memory_limit;
mod merged_items;
mod metadata;
mod order;
mod plan_change_stats;
mod prefixes;
mod read;
mod replan;
mod scan;
mod scan_cache;
mod shared;
mod snapshot;
mod snapshot_stats;
mod stats;
mod transaction;
mod update;
mod update_barriers;
mod verify;
mod write;

pub use backup::{Backup, backups, remove_old_backups, restore};
pub use batch::Batch;
pub use checkpoint::Checkpoint;
pub use condition::{Condition, FailedCondition, ItemVersion, Versioned};
pub use database::Db;
pub use health::Health;
pub use ingest::{Ingest, Ingested};
pub use keyspace::Keyspace;
pub use large::ValueReader;
pub use memory_limit::MemoryLimitStats;
pub use metadata::Metadata;
pub use order::{KeyspaceOptions, Order};
pub use plan_change_stats::{LeftStats, PlanChangeStats};
pub use prefixes::Prefixes;
pub use replan::PlanDecision;
pub use scan::{Iter, KeyValue};
pub use snapshot::{KeyspaceSnapshot, Snapshot};
pub use snapshot_stats::SnapshotStats;
pub use stats::{BlobStats, GarbageStats, LevelStats, MemoryStats, Stats, TrafficStats, YoungDirectoryStats};
pub use transaction::Transaction;
pub use update::Update;
pub use verify::VerifyReport;

pub(crate) use counters::Counters;
pub(crate) use disk_quota::DiskQuota;
pub(crate) use keyspace::{KeyspaceShared, items_for_shard_bits, new_log_store};
pub(crate) use memory_limit::{HeldMemory, MemoryControl};
pub(crate) use metadata::Moment;
pub(crate) use order::{check_plan, complete_hasher};
pub(crate) use read::{find, find_by, find_in_tables};
pub(crate) use replan::replan;
pub(crate) use shared::Shared;
pub(crate) use update_barriers::UpdateBarrier;
pub(crate) use write::{Witness, write_item};

/// Most bytes of a key.
pub const KEY_BYTES_MAX: usize = 64 << 10;
/// Most bytes of a value.
pub const VALUE_BYTES_MAX: usize = 64 << 20;
