//! [`Snapshot`]: the database as it was at one moment, while writes and merges continue.
//!
//! A snapshot is a set of versions, which are immutable once the log in them is frozen. Its cost is that freeze. The
//! rest of the store is not affected, except that files exist until the last version that names them is dropped.

use std::sync::Arc;
use std::time::Duration;

use alluvium_io::sync::thread;

use super::close::Handle;
use super::database::Db;
use super::read::View;
use super::scan::Iter;
use crate::core::{KeyspaceShared, Moment, PinnedVersion, Shared, lock_shards, versions};
use crate::error::Result;
use crate::item::Item;
use crate::level::Version;
use crate::log::segment::BLOCK;
use crate::log_position::LogPosition;
use crate::metadata::Metadata;
use crate::planted_race::PlantedRace;

/// Keyspaces, each with a version of the same moment.
type PinnedKeyspaces = Vec<(Arc<KeyspaceShared>, Arc<PinnedVersion>)>;

impl Shared {
    /// Keeps all keyspaces' versions of one moment: everything written before is frozen.
    fn freeze_for_snapshot(&self) -> Result<(PinnedKeyspaces, LogPosition)> {
        if !self.is_read_only() {
            self.wait_for_room(false)?;
        }
        self.opened_keyspaces()?;
        let mut only_one = Some(self.freeze_lock.lock().expect("no panic while held"));
        let keyspaces = self.all_keyspaces();
        let active = versions(&keyspaces);
        let mut guards = lock_shards(&active);
        // Otherwise a file to which the frozen items refer could be removed before they are pinned, after its live
        // items were moved to the next segment.
        let files_stay = self.blobs.hold_files();
        let written = active.iter().any(|version| version.active().len() > 0);
        // The heads of chains are copied before they lead to the fresh segment, which is not pinned.
        let fresh;
        let mut no_writers = Vec::new();
        // Not the log's end after a switch: nothing excludes the writers of the fresh segment, which is not pinned.
        let end = match written {
            true => {
                let (sealed, stores) = self.seal(&keyspaces, &active)?;
                fresh = stores;
                let linked = fresh.iter().filter(|store| store.linked().is_some());
                no_writers.extend(linked.flat_map(|store| store.shards().iter().map(|shard| shard.lock())));
                self.publish(&keyspaces, &active, &fresh, sealed);
                self.log.active_segment().header.position(BLOCK)
            }
            false => self.log.end_position(),
        };
        // A change that the log announces already may not be in the snapshot: its record is read after it.
        let announced = keyspaces.iter().filter_map(|keyspace| keyspace.update_barriers.oldest_announced());
        let log_position = announced.fold(end, LogPosition::min);
        let is_careless = self.planted_bugs.has(PlantedRace::SnapshotWithoutShards);
        if is_careless {
            guards.clear();
            drop(only_one.take());
        }
        let pin = |keyspace: &Arc<KeyspaceShared>| {
            if is_careless {
                // Without a pause, the mistake shows only if another freeze happens between two pins.
                thread::sleep(Duration::from_micros(100));
            }
            keyspace.pin_frozen()
        };
        let pinned: Vec<_> = keyspaces.iter().map(pin).collect();
        drop(files_stay);
        drop(no_writers);
        drop(guards);
        if written {
            self.frozen_one();
        }
        Ok((keyspaces.into_iter().zip(pinned).collect(), log_position))
    }
}

/// The database at the moment when [`Db::snapshot`] was called: every read sees the writes that were acknowledged
/// before the call, and none that began after it.
///
/// The space of items that are overwritten or removed meanwhile is freed when the snapshot is dropped. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Snapshot {
    handle: Arc<Handle>,
    pub(super) keyspaces: PinnedKeyspaces,
    log_position: LogPosition,
    taken_at_ms: u64,
}

/// A keyspace of a [`Snapshot`].
#[derive(Debug, Clone)]
pub struct KeyspaceSnapshot {
    handle: Arc<Handle>,
    keyspace: Arc<KeyspaceShared>,
    version: Arc<PinnedVersion>,
    taken_at_ms: u64,
}

impl Db {
    /// A snapshot of the database as it is now, all keyspaces at the same moment.
    ///
    /// Freezes the log if something was written since the last freeze, and many snapshots in a short time make many
    /// small runs, which are merged earlier. Copies nothing.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let shared = self.shared();
        shared.check_open()?;
        if !shared.is_read_only() {
            shared.check_refusal()?;
        }
        let (keyspaces, log_position) = shared.freeze_for_snapshot()?;
        let (handle, taken_at_ms) = (self.handle().clone(), shared.now_ms());
        Ok(Snapshot { handle, keyspaces, taken_at_ms, log_position })
    }
}

impl Snapshot {
    /// The keyspace of this name; `None` if there was none.
    pub fn keyspace(&self, name: &str) -> Option<KeyspaceSnapshot> {
        let (keyspace, version) = self.keyspaces.iter().find(|(keyspace, _)| keyspace.name == name)?;
        Some(KeyspaceSnapshot {
            handle: self.handle.clone(),
            keyspace: keyspace.clone(),
            version: version.clone(),
            taken_at_ms: self.taken_at_ms,
        })
    }

    /// Names of all keyspaces, in the order of their creation.
    pub fn keyspace_names(&self) -> Vec<String> {
        self.keyspaces.iter().map(|(keyspace, _)| keyspace.name.clone()).collect()
    }

    /// The position of the log when it was taken: the snapshot shows what the records before it did, and nothing of the
    /// records from it on. If a clear, an ingest or a removal of a prefix was in progress, the position is before the
    /// record of that, and the snapshot may show records behind it. A copy of a snapshot is kept up to date by
    /// [`Db::log_records`] from there.
    ///
    /// Unlike the log, a snapshot shows changes that a power cut may still take. Call [`Db::persist`] before a copy of
    /// it replaces an older one: then neither the copy nor its position is ahead of the database.
    pub fn log_position(&self) -> LogPosition {
        self.log_position
    }

    /// The time when it was taken, in milliseconds since 1970: items that expired later are still there.
    pub fn taken_at_ms(&self) -> u64 {
        self.taken_at_ms
    }
}

impl KeyspaceSnapshot {
    /// The value that `key` had; `None` if it was absent. Costs as much as [`crate::Keyspace::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        self.with_view(|view| view.get(key.as_ref()))
    }

    /// The value that `key` had, with its metadata; `None` if the key was absent.
    pub fn get_with_metadata(&self, key: impl AsRef<[u8]>) -> Result<Option<(Vec<u8>, Metadata)>> {
        let key = key.as_ref();
        self.with_view(|view| view.read(key, |view, item| view.with_metadata(key, item)))
    }

    /// Whether `key` was present.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        let is_there = |view: &View<'_>, item: Option<&Item<'_>>| {
            item.map_or(Ok(false), |item| view.is_of_key(key, item))
        };
        self.with_view(|view| view.read(key, is_there))
    }

    /// The values that many keys had, in their order, with all page reads in flight together.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        self.with_view(|view| view.multi_get(keys))
    }

    /// All items, in the order of their key hashes.
    pub fn iter(&self) -> Iter {
        let (keyspace, version) = (self.keyspace.clone(), self.version.load());
        Iter::over(&self.handle.shared, keyspace, version, self.taken_at_ms).of_snapshot()
    }

    /// The items whose keys have this prefix, as [`crate::Keyspace::scan_prefix`] returns them.
    ///
    /// # Errors
    /// [`crate::Error::NotSemiSorted`] for a keyspace without prefixes.
    pub fn scan_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<Iter> {
        let (keyspace, version) = (self.keyspace.clone(), self.version.load());
        let iter = Iter::over_prefix(
            &self.handle.shared,
            keyspace,
            version,
            prefix.as_ref(),
            self.taken_at_ms,
            None,
        );
        iter.map(Iter::of_snapshot)
    }

    /// The parts from which a listing of prefixes is made.
    pub(super) fn parts(&self) -> (&Arc<Shared>, Arc<KeyspaceShared>, Arc<Version>, u64) {
        (&self.handle.shared, self.keyspace.clone(), self.version.load(), self.taken_at_ms)
    }

    pub(super) fn with_view<R>(&self, read: impl FnOnce(View<'_>) -> R) -> R {
        read(View {
            shared: &self.handle.shared,
            keyspace: &self.keyspace,
            version: &self.version.load(),
            moment: Moment::At(self.taken_at_ms),
            era: None,
        })
    }
}
