//! Alluvium: a key-value store for very many small items on very little memory.
//!
//! [`Db`] is an open database in a directory, [`Keyspace`] a named set of items in it. Writes go to a log. The log
//! freezes into hash runs with small filters in memory, and hash runs merge into one sorted run with an index of a
//! third of a bit per item. A get reads one page. The layouts and their sizes are a [`Plan`], which is data, not code.
#![forbid(unsafe_code)]

mod blob;
mod compact;
mod db;
pub mod device;
mod error;
mod failure;
#[cfg(any(test, feature = "simulation"))]
#[doc(hidden)]
pub mod fuzz;
mod item;
mod level;
mod log;
mod manifest;
mod options;
mod planted_race;
mod recovery;
mod repair;
mod settings_bounds;
#[cfg(any(test, feature = "simulation"))]
#[doc(hidden)]
pub mod simulation;
mod table;
mod young_directory;

pub use alluvium_base::{Corruption, PrefixFunction, PrefixName, PrefixRule};
pub use alluvium_io::ReadWait;
pub use alluvium_model::Plan;
pub use db::{
    Backup, BackupOptions, Batch, BlobStats, Checkpoint, CheckpointOptions, Condition, Db, FailedCondition,
    FailureStats, GarbageStats, Health, Ingest, Ingested, ItemVersion, Iter, IteratorStats, KEY_BYTES_MAX,
    KeyValue, Keyspace, KeyspaceOptions, KeyspaceSnapshot, LeftStats, LevelStats, MemoryLimitStats,
    MemoryStats, Metadata, Order, PlanChangeStats, PlanDecision, Prefixes, Snapshot, SnapshotStats, Stats,
    TrafficStats, Transaction, Update, VALUE_BYTES_MAX, ValueReader, VerifyReport, Versioned,
    YoungDirectoryStats, backups, remove_old_backups, resident_bytes_beyond_limit, restore,
};
pub use error::{Error, Result};
#[doc(hidden)]
pub use options::PlantedBugs;
pub use options::{Builder, Durability, Environment, PlanChoice};
#[doc(hidden)]
pub use planted_race::PlantedRace;
pub use repair::{ManifestRepair, RepairOptions, RepairReport, repair};
#[doc(hidden)]
pub use repair::{repair_in, repair_in_both};
