//! What only iterators still keep.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::snapshot_stats::{Held, Present};
use crate::core::{KeyspaceShared, Shared};

/// What iterators ([`crate::Keyspace::iter`], [`crate::Keyspace::scan_prefix`], [`crate::Keyspace::prefixes`] and those
/// of snapshots) keep in memory and on disk although neither the database itself nor snapshots need it any more. It is
/// freed with the last iterator that needs it. Iterators of dropped keyspaces are not counted. Scans by cursor keep
/// nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct IteratorStats {
    /// Number of iterators that have not been dropped.
    pub iterators: usize,
    /// Milliseconds since the oldest of them began.
    pub oldest_ms: u64,
    /// Bytes of memory: indexes and filters of tables, and log that was converted meanwhile.
    pub memory: u64,
    /// Bytes of `memory` that are log.
    pub log_memory: u64,
    /// Bytes of tables and blob files.
    pub disk: u64,
}

impl IteratorStats {
    pub(super) fn of(shared: &Shared, keyspaces: &[Arc<KeyspaceShared>]) -> Self {
        let mut held = Held::default();
        let mut iterators = 0;
        let mut since_ms = None;
        for keyspace in keyspaces {
            let pins = keyspace.pins.held();
            if pins.is_empty() {
                continue;
            }
            iterators += pins.len();
            let oldest = pins.iter().map(|pin| pin.since_ms).min();
            since_ms = since_ms.into_iter().chain(oldest).min();
            let snapshots = keyspace.pinned.in_use();
            let snapshots = snapshots.iter().map(|pinned| pinned.load());
            let present = Present::of([keyspace.version.load_full()].into_iter().chain(snapshots));
            pins.iter().for_each(|pin| held.add(&pin.version(), &present, shared));
        }
        let oldest_ms = since_ms.map_or(0, |since_ms| shared.now_ms().saturating_sub(since_ms));
        let (memory, log_memory, disk) = held.totals();
        Self { iterators, oldest_ms, memory, log_memory, disk }
    }
}
