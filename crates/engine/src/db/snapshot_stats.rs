//! What only snapshots still keep.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_base::{BlobId, SegmentId};

use serde::{Deserialize, Serialize};

use crate::core::{KeyspaceShared, Shared};
use crate::level::Version;
use crate::log::LogStore;

/// What snapshots keep in memory and on disk although the database itself no longer needs it. It is freed with the last
/// snapshot that needs it. Snapshots of dropped keyspaces are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SnapshotStats {
    /// Number of snapshots, clones not counted.
    pub snapshots: usize,
    /// Bytes of memory: indexes and filters of tables, and log that was converted meanwhile.
    pub memory: u64,
    /// Bytes of `memory` that are log.
    pub log_memory: u64,
    /// Bytes of tables and blob files.
    pub disk: u64,
}

impl SnapshotStats {
    pub(super) fn of(shared: &Shared, keyspaces: &[Arc<KeyspaceShared>]) -> Self {
        let mut held = Held::default();
        let mut snapshots = 0;
        for keyspace in keyspaces {
            let pinned = keyspace.pinned.in_use();
            snapshots = snapshots.max(pinned.len());
            if !pinned.is_empty() {
                let present = Present::of([keyspace.version.load_full()]);
                pinned.iter().for_each(|pinned| held.add(&pinned.load(), &present, shared));
            }
        }
        let (memory, log_memory, disk) = held.totals();
        Self { snapshots, memory, log_memory, disk }
    }
}

/// Addresses of the parts of a keyspace that exist anyway.
pub(super) struct Present {
    versions: Vec<Arc<Version>>,
    sections: Vec<usize>,
}

impl Present {
    /// The parts of these versions: the current one, and others in use for other reasons.
    pub fn of(versions: impl IntoIterator<Item = Arc<Version>>) -> Self {
        let versions: Vec<_> = versions.into_iter().collect();
        let addresses = versions.iter().flat_map(|version| sections(version).map(|(address, ..)| address));
        let mut sections: Vec<usize> = addresses.collect();
        sections.sort_unstable();
        Self { versions, sections }
    }

    fn has_section(&self, address: usize) -> bool {
        self.sections.binary_search(&address).is_ok()
    }

    fn has_log(&self, store: &Arc<LogStore>) -> bool {
        let mut present = self.versions.iter().flat_map(|version| &version.log_stores);
        present.any(|present| Arc::ptr_eq(present, store))
    }
}

/// What is kept, each part counted once no matter how many snapshots need it.
#[derive(Default)]
pub(super) struct Held {
    /// Memory and disk bytes by address of the section.
    sections: BTreeMap<usize, (u64, u64)>,
    /// Memory of indexes by address of the log store.
    logs: BTreeMap<usize, u64>,
    /// Memory of converted log by number of the segment.
    segments: BTreeMap<SegmentId, u64>,
    /// Bytes of blob files by number.
    blob_files: BTreeMap<BlobId, u64>,
}

impl Held {
    /// Bytes of memory, bytes of log in that, and bytes on disk.
    pub fn totals(&self) -> (u64, u64, u64) {
        let sections = self.sections.values();
        let (memory, disk) = sections.fold((0, 0), |sum, section| (sum.0 + section.0, sum.1 + section.1));
        let logs: u64 = self.logs.values().chain(self.segments.values()).sum();
        (memory + logs, logs, disk + self.blob_files.values().sum::<u64>())
    }

    pub fn add(&mut self, version: &Version, present: &Present, shared: &Shared) {
        for (address, memory, disk) in sections(version) {
            if !present.has_section(address) {
                self.sections.insert(address, (memory, disk));
            }
        }
        for store in version.log_stores.iter().filter(|store| !present.has_log(store)) {
            self.logs.insert(Arc::as_ptr(store) as usize, store.memory_bytes());
        }
        let waiting = shared.frozen.lock().expect("no panic while held").clone();
        let active = shared.log.active_segment();
        for segment in version.log_stores.iter().map(|store| &store.segment) {
            let is_needed = segment.id == active.id || waiting.iter().any(|other| other.id == segment.id);
            if !is_needed {
                self.segments.insert(segment.id, segment.memory_bytes());
            }
        }
        let files = shared.blobs.files();
        let gone = version.blobs.files.iter().filter(|(number, _)| !files.contains_key(number));
        self.blob_files.extend(gone.map(|(&number, file)| (number, file.size())));
    }
}

/// Address, memory and disk of every section of a version.
fn sections(version: &Version) -> impl Iterator<Item = (usize, u64, u64)> {
    version.body.sections().map(|section| {
        let memory = section.memory_bytes();
        (Arc::as_ptr(section) as usize, memory.filter + memory.index, section.pages_bytes())
    })
}
