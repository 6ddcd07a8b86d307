//! Figures about keyspaces whose log is the store.

use alluvium_io::sync::atomic::Ordering;
use serde::{Deserialize, Serialize};

use crate::chained::ReplayReason;
use crate::core::Shared;

/// Keyspaces whose log is the store: those with a plan of chains ([`crate::ChainedSpec`]).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChainStats {
    /// Number of keyspaces with chains.
    pub keyspaces: usize,
    /// Number of log segments that stay for them. A segment with records of several keyspaces counts for each.
    pub segments: usize,
    /// Bytes of these segments.
    pub segment_bytes: u64,
    /// Bytes of memory of the directories. Included in [`crate::MemoryStats::log_index`]; a memory limit takes them
    /// from the share of filters and indexes. What snapshots keep of earlier directories is not included.
    pub directory_memory: u64,
    /// Number of times that a directory was saved to a file, since the opening.
    pub directories_saved: u64,
    /// Bytes written for that.
    pub directory_bytes_written: u64,
    /// Number of segments that the opening read because the saved directories lacked them.
    pub segments_replayed: u64,
    /// Keyspaces of which the opening read all segments, and why.
    pub replays: Vec<DirectoryReplay>,
    /// Number of segments that were collected since the opening, their live items written to the log again.
    pub segments_collected: u64,
    /// Bytes of these items.
    pub bytes_moved: u64,
}

/// A keyspace of which an opening read all segments, because there was no usable directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryReplay {
    /// The keyspace's name.
    pub keyspace: String,
    /// Why.
    pub reason: ReplayReason,
}

impl ChainStats {
    pub(super) fn of(shared: &Shared) -> Self {
        let get = |counter: &alluvium_io::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let counters = &shared.counters;
        let mut stats = Self {
            directories_saved: get(&counters.directories_saved),
            directory_bytes_written: get(&counters.directory_bytes_written),
            segments_collected: get(&counters.chained_segments_collected),
            bytes_moved: get(&counters.chained_bytes_moved),
            ..Self::default()
        };
        for keyspace in shared.all_keyspaces() {
            let version = keyspace.version.load();
            let Some(chain) = &version.chain else { continue };
            stats.keyspaces += 1;
            stats.segments += chain.files.len();
            stats.segment_bytes += chain.bytes();
            stats.directory_memory += chain.directory.memory_bytes();
            let opened = chain.directory.opened;
            stats.segments_replayed += opened.segments_replayed;
            let keyspace = keyspace.name.clone();
            stats.replays.extend(opened.reason.map(|reason| DirectoryReplay { keyspace, reason }));
        }
        stats
    }
}
