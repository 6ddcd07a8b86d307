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

/// A keyspace with its version of a snapshot's moment.
#[derive(Debug, Clone)]
pub(super) struct PinnedKeyspace {
    pub keyspace: Arc<KeyspaceShared>,
    pub version: Arc<PinnedVersion>,
    /// The version has what the keyspace's records before this position did.
    log_position: LogPosition,
}

impl Shared {
    /// Keeps all keyspaces' versions of one moment: everything written before is frozen.
    fn freeze_for_snapshot(&self) -> Result<(Vec<PinnedKeyspace>, LogPosition)> {
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
        let position_of = |keyspace: &KeyspaceShared| {
            keyspace.update_barriers.oldest_announced().map_or(end, |announced| announced.min(end))
        };
        let positions: Vec<_> = keyspaces.iter().map(|keyspace| position_of(keyspace)).collect();
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
        let pinned = keyspaces.into_iter().zip(pinned).zip(positions);
        let pinned = pinned.map(|((keyspace, version), log_position)| PinnedKeyspace {
            keyspace,
            version,
            log_position,
        });
        Ok((pinned.collect(), end))
    }
}

/// The database at the moment when [`Db::snapshot`] was called: every read sees the writes that were acknowledged
/// before the call, and none that began after it.
///
/// The space of items that are overwritten or removed meanwhile is freed when the snapshot is dropped. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Snapshot {
    handle: Arc<Handle>,
    pub(super) keyspaces: Vec<PinnedKeyspace>,
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
    log_position: LogPosition,
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
        let (keyspaces, end) = shared.freeze_for_snapshot()?;
        let log_position = keyspaces.iter().fold(end, |position, pinned| position.min(pinned.log_position));
        let (handle, taken_at_ms) = (self.handle().clone(), shared.now_ms());
        Ok(Snapshot { handle, keyspaces, taken_at_ms, log_position })
    }
}

impl Snapshot {
    /// The keyspace of this name; `None` if there was none.
    pub fn keyspace(&self, name: &str) -> Option<KeyspaceSnapshot> {
        let pinned = self.keyspaces.iter().find(|pinned| pinned.keyspace.name == name)?;
        let PinnedKeyspace { keyspace, version, log_position } = pinned.clone();
        let (handle, taken_at_ms) = (self.handle.clone(), self.taken_at_ms);
        Some(KeyspaceSnapshot { handle, keyspace, version, taken_at_ms, log_position })
    }

    /// Names of all keyspaces, in the order of their creation.
    pub fn keyspace_names(&self) -> Vec<String> {
        self.keyspaces.iter().map(|pinned| pinned.keyspace.name.clone()).collect()
    }

    /// From where [`Db::log_records`] keeps a copy of the snapshot up to date: everything before is in it.
    ///
    /// A keyspace may have what later records did, too, up to its [`KeyspaceSnapshot::log_position`]; the copy must
    /// leave these out. They differ while a clear, an ingest or a removal of a prefix is in progress in any keyspace.
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
    /// The position of the log up to which the snapshot has the keyspace's records: a copy of it leaves out those whose
    /// [`LogRecord::next`](crate::LogRecord::next) is not behind it. An ingest puts its items under those of the log
    /// when it ends, so a record from before that must not be repeated over them.
    ///
    /// While a clear, an ingest or a removal of a prefix is in progress in the keyspace, this is the position before
    /// the record of it, on which the keyspace is copied again.
    pub fn log_position(&self) -> LogPosition {
        self.log_position
    }

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

#[cfg(test)]
mod tests {
    use alluvium_base::HashRange;

    use crate::{Db, LogChange};

    /// Seed 2080220 of the threaded simulation: a clear of another keyspace was announced before a removal, and the
    /// ingest after that ended before the snapshot. The removal must not be repeated over the ingested item.
    #[test]
    fn another_keyspace_s_change_does_not_set_a_keyspace_s_position_back() {
        let directory = tempfile::tempdir().unwrap();
        let db = Db::builder(directory.path()).log_retention_bytes(1 << 30).background(false).open().unwrap();
        let (items, others) = (db.keyspace("items").unwrap(), db.keyspace("others").unwrap());
        let barrier = others.shared.hold_back_updates(HashRange::ALL);
        db.shared().log_unlogged(&others.shared, &barrier).unwrap();
        items.remove("key").unwrap();
        let mut ingest = items.ingest().unwrap();
        ingest.insert("key", "value").unwrap();
        assert!(!ingest.finish().unwrap().logged);
        let snapshot = db.snapshot().unwrap();
        let copy = snapshot.keyspace("items").unwrap();
        assert!(copy.get("key").unwrap().is_some());
        assert!(snapshot.log_position() < copy.log_position());
        assert_eq!(snapshot.keyspace("others").unwrap().log_position(), snapshot.log_position());
        drop(barrier);
        let records = db.log_records(snapshot.log_position()).unwrap().map(Result::unwrap);
        let mut later = records.filter(|record| record.next > copy.log_position());
        let is_of_items = |change: &LogChange| match change {
            LogChange::Put { keyspace, .. } | LogChange::Remove { keyspace, .. } => keyspace == "items",
            _ => false,
        };
        assert!(!later.any(|record| record.changes.iter().any(is_of_items)));
    }
}
