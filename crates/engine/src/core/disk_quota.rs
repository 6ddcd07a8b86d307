//! The limit of disk space: writes are refused before it is exceeded, and background work keeps what it needs to
//! finish.

use std::sync::{Arc, Weak};

use alluvium_io::OpenMode;
use alluvium_io::sync::Mutex;
use alluvium_io::sync::atomic::{AtomicU64, Ordering};

use super::JobThread;
use super::keyspace::KeyspaceShared;
use super::shared::Shared;
use crate::error::{Error, Result};
use crate::table::Section;

/// Number of tables that a merge writes before it removes those that they replace.
const TABLES_IN_FLIGHT: u64 = 2;
/// Maximum space that the log prepares in advance.
const PREPARED_BYTES_MAX: u64 = 4 << 20;

/// Share of the limit, one in this many, that is kept free by dropping the oldest items.
const MARGIN_SHARE: u64 = 32;
/// Maximum number of times that a write waits for items to be dropped, of up to 5 ms each.
const DROP_WAITS_MAX: usize = 4_000;
/// Maximum number of times that it waits only for readers of dropped items.
const PINNED_WAITS_MAX: usize = 200;

/// The limit, and the usage when it was last measured.
#[derive(Debug, Default)]
pub(crate) struct DiskQuota {
    /// 0 means no limit.
    pub bytes_max: AtomicU64,
    used: AtomicU64,
    /// Bytes, at that time, of the largest stack of tables that is freed only when a merge of all of it is done.
    pile: AtomicU64,
    /// Bytes written to blob files up to that time.
    blob_bytes_written: AtomicU64,
    /// Sections that were dropped to make room and that readers still use.
    pinned: Mutex<Vec<Weak<Section>>>,
}

impl DiskQuota {
    pub fn new(bytes_max: Option<u64>) -> Self {
        Self { bytes_max: AtomicU64::new(bytes_max.unwrap_or(0)), ..Self::default() }
    }

    /// Notes that the section was dropped to make room: its space follows when nobody reads it any more.
    pub fn note_dropped(&self, section: &Arc<Section>) {
        self.pinned.lock().expect("no panic while held").push(Arc::downgrade(section));
    }

    /// Bytes of dropped sections that readers, snapshots and iterators still use.
    fn pinned_bytes(&self) -> u64 {
        let mut pinned = self.pinned.lock().expect("no panic while held");
        pinned.retain(|section| section.strong_count() > 0);
        pinned.iter().filter_map(Weak::upgrade).map(|section| section.extent_bytes()).sum()
    }
}

impl Shared {
    /// Refuses to add to the log if the limit would be exceeded, including what the log's conversion and a merge need.
    #[inline]
    pub fn check_room(&self) -> Result<()> {
        self.check_room_for(0)
    }

    /// Like [`Shared::check_room`], before `bytes` bytes are added to a blob file.
    #[inline]
    pub fn check_room_for(&self, bytes: u64) -> Result<()> {
        match self.disk_quota.bytes_max.load(Ordering::Relaxed) {
            0 => Ok(()),
            max => self.check_room_within(max, bytes),
        }
    }

    #[cold]
    fn check_room_within(&self, max: u64, more: u64) -> Result<()> {
        if self.disk_needed() + more <= max {
            return Ok(());
        }
        for wait in 0..DROP_WAITS_MAX {
            // Space may have been freed since the last measurement.
            self.measure_disk();
            if self.disk_needed() + more <= max {
                return Ok(());
            }
            // Most readers end soon, but a snapshot may not.
            let is_pinned = wait < PINNED_WAITS_MAX && self.disk_quota.pinned_bytes() > 0;
            if !is_pinned && !self.can_drop_oldest() {
                break;
            }
            self.check_failure()?;
            self.check_progress_of(JobThread::Merge.name())?;
            if self.settings.background {
                self.scheduler.wake();
                self.scheduler.wait_for_progress();
            } else if !JobThread::Merge.run(self)? {
                break;
            }
        }
        Err(Error::DiskQuota { used: self.disk_needed() + more, max })
    }

    /// Whether the oldest items have to be dropped, so that no write is refused at the limit, and there are some.
    pub fn can_drop_oldest(&self) -> bool {
        let has_some = |keyspace: Arc<KeyspaceShared>| {
            keyspace.is_dormant() || keyspace.version.load().body.oldest().is_some()
        };
        self.dropping_pressure() > 1.0 && self.all_keyspaces().into_iter().any(has_some)
    }

    /// How near the database is to refusing writes, if it drops its oldest items instead: above 1 it drops some, at 2
    /// it would refuse. What readers hold of dropped items does not count, since dropping more would not free it.
    pub fn dropping_pressure(&self) -> f64 {
        let max = self.disk_quota.bytes_max.load(Ordering::Relaxed);
        if max == 0 || !self.settings.drops_oldest || self.settings.read_only {
            return 0.0;
        }
        let margin = (max / MARGIN_SHARE).max(1) as f64;
        let needed = self.disk_needed().saturating_sub(self.disk_quota.pinned_bytes()) as f64;
        (needed - (max as f64 - margin)) / margin + 1.0
    }

    /// The space that the database takes, plus what it needs until its log is converted and merged.
    fn disk_needed(&self) -> u64 {
        let used = self.disk_quota.used.load(Ordering::Relaxed);
        let active = self.log.active_segment().published();
        let frozen: u64 =
            self.frozen.lock().expect("no panic while held").iter().map(|segment| segment.published()).sum();
        let prepared = PREPARED_BYTES_MAX.min(self.log.active_segment().capacity());
        let pile = self.disk_quota.pile.load(Ordering::Relaxed);
        let table = self.settings.table_sizes.of_merge(used as f64) as u64;
        let measured = self.disk_quota.blob_bytes_written.load(Ordering::Relaxed);
        let blobs = self.blobs.bytes_written().saturating_sub(measured) + self.blobs.memory_bytes();
        // The live records of a blob file are rewritten before its space is freed.
        let emptied = self.blobs.files().values().map(|file| file.live_estimate()).max().unwrap_or(0);
        // The log itself grows, and becomes runs while it is still there. Merges leave space to it.
        let left_to_log = self.reserve.bytes();
        used + left_to_log
            + active
            + prepared
            + (active + frozen)
            + TABLES_IN_FLIGHT * table
            + pile
            + blobs
            + emptied
    }

    /// Measures the space that the database takes, if there is a limit: one call per file.
    pub fn measure_disk(&self) {
        if self.disk_quota.bytes_max.load(Ordering::Relaxed) == 0 {
            return;
        }
        let blob_bytes_written = self.blobs.bytes_written();
        let Ok(names) = self.storage.list() else { return };
        let bytes = |name: &String| self.storage.open(name, OpenMode::Read)?.allocated_bytes();
        // A file that is gone by now takes no space.
        let used = names.iter().map(|name| bytes(name).unwrap_or(0)).sum();
        self.disk_quota.used.store(used, Ordering::Relaxed);
        let versions = self.all_keyspaces().into_iter().map(|keyspace| keyspace.version.load_full());
        let piles = versions.map(|version| version.body.largest_pile());
        self.disk_quota.pile.store(piles.max().unwrap_or(0), Ordering::Relaxed);
        self.disk_quota.blob_bytes_written.store(blob_bytes_written, Ordering::Relaxed);
    }
}
