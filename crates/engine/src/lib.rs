//! Alluvium: a key-value store for very many small items on very little memory.
//!
//! [`Db`] is an open database in a directory, [`Keyspace`] a named set of items in it. Writes go to a log. The log
//! freezes into hash runs with small filters in memory, and hash runs merge into one sorted run with an index of a
//! third of a bit per item. A get reads one page. The layouts and their sizes are a [`Plan`], which is data, not code.
#![forbid(unsafe_code)]

mod blob;
mod build;
mod chained;
mod compact;
mod condition;
mod core;
mod db;
pub mod device;
mod environment;
mod error;
mod failure;
mod file_names;
#[cfg(any(test, feature = "simulation"))]
#[doc(hidden)]
pub mod fuzz;
mod hash_key;
mod level;
mod limits;
mod log;
mod log_position;
mod log_settings;
mod manifest;
mod merge;
mod metadata;
mod options;
mod order;
mod planted_race;
mod recovery;
mod repair;
mod reserve;
mod resources;
mod settings_bounds;
#[cfg(any(test, feature = "simulation"))]
#[doc(hidden)]
pub mod simulation;
mod table_sizes;
mod wait;
mod workload;
mod young_directory;

use alluvium_table::{self as table, item};

pub use crate::core::{FailureStats, MemoryLimitStats, PlanDecision, RowStats, resident_bytes_beyond_limit};
pub use alluvium_base::{Corruption, PrefixFunction, PrefixName, PrefixRule};
pub use alluvium_cache::Codec;
pub use alluvium_io::ReadWait;
pub use alluvium_model::{ChainedDirectory, ChainedSpec, LevelsPlan, Plan};
pub use build::{
    Build, BuildJob, BuildMismatch, BuildPart, CommitOptions, SHARDS_MAX, Version, VersionState, abort_build,
    build_shards, check_build, commit_build, hash_of, keep_versions, shard_directory, shard_of, versions,
};
#[doc(hidden)]
pub use build::{CandidateShard, commit_build_in};
pub use chained::ReplayReason;
pub use condition::{Condition, FailedCondition, ItemVersion};
#[doc(hidden)]
pub use db::adopt_in;
pub use db::{
    AdoptOptions, Adopted, Backup, BackupOptions, Batch, BlobStats, ChainStats, Checkpoint,
    CheckpointOptions, Db, DirectoryReplay, GarbageStats, Health, Ingest, Ingested, Iter, IteratorStats,
    KeyValue, Keyspace, KeyspaceSnapshot, LeftStats, LevelStats, LogChange, LogRecord, LogRecords,
    MemoryStats, PlanChangeStats, Prefixes, ShardOptions, ShardWriter, ShortOrLong, Snapshot, SnapshotStats,
    Stats, TrafficStats, Transaction, Update, ValueOrReader, ValueReader, VerifyReport, Versioned, Watch,
    WriteWaitStats, WrittenShard, YoungDirectoryStats, adopt, backups, remove_old_backups, restore,
};
pub use environment::Environment;
#[doc(hidden)]
pub use environment::PlantedBugs;
pub use error::{Error, Result};
pub use hash_key::HashKey;
pub use limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
pub use log_position::LogPosition;
pub use metadata::{Metadata, ValueWithMetadata};
pub use options::{Builder, Durability, PlanChoice};
pub use order::{KeyspaceOptions, Order};
#[doc(hidden)]
pub use planted_race::PlantedRace;
pub use repair::{ManifestRepair, RepairOptions, RepairReport, repair};
#[doc(hidden)]
pub use repair::{repair_in, repair_in_both};
pub use wait::WaitStats;
pub use workload::Workload;
