//! Snapshots without log: what a checkpoint copies.

use std::collections::BTreeMap;

use super::database::Db;
use super::snapshot::Snapshot;
use crate::compact::convert;
use crate::error::Result;

impl Db {
    /// A snapshot whose items are all in tables and in blob files that grow no more, durably, and the sizes of those
    /// files by their numbers.
    ///
    /// A clear or a drop between the snapshot and the conversion of its log takes that out of reach, so another
    /// snapshot is taken then.
    pub(super) fn settled_snapshot(&self) -> Result<(Snapshot, BTreeMap<u64, u64>)> {
        let shared = self.shared();
        loop {
            let snapshot = self.snapshot()?;
            // No file of the copy grows through the link to it.
            shared.blobs.end_current(None);
            let versions = snapshot.keyspaces.iter().map(|(_, version)| version.load());
            let sizes = versions
                .flat_map(|version| version.blobs.files.values().cloned().collect::<Vec<_>>())
                .map(|file| (file.number, file.size()))
                .collect();
            shared.blobs.sync().inspect_err(|error| shared.log.fail(error))?;
            if self.settle(&snapshot)? {
                return Ok((snapshot, sizes));
            }
        }
    }

    /// Converts the log that a snapshot holds; `false` when nobody can any more.
    fn settle(&self, snapshot: &Snapshot) -> Result<bool> {
        let shared = self.shared();
        loop {
            {
                let _no_conversion = shared.convert_lock.lock().expect("no panic while held");
                let next = shared.oldest_frozen().map_or(u64::MAX, |segment| segment.id);
                let versions = snapshot.keyspaces.iter().map(|(_, version)| version.load());
                let mut held = versions.flat_map(|version| version.log_stores.clone()).peekable();
                if held.peek().is_none() {
                    return Ok(true);
                }
                // Segments are converted in their order.
                if held.any(|store| store.segment.id < next) {
                    return Ok(false);
                }
            }
            convert(shared).inspect_err(|error| shared.log.fail(error))?;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Db, Durability};

    fn open() -> (tempfile::TempDir, Db) {
        let directory = tempfile::tempdir().unwrap();
        let builder = Db::builder(directory.path().join("database")).durability(Durability::Buffered);
        let db = builder.background(false).open().unwrap();
        (directory, db)
    }

    #[test]
    fn a_snapshot_of_a_keyspace_that_was_cleared_or_dropped_meanwhile_is_given_up() {
        let (directory, db) = open();
        for drops in [false, true] {
            let items = db.keyspace("items").unwrap();
            items.insert("key", "value").unwrap();
            let snapshot = db.snapshot().unwrap();
            if drops {
                db.drop_keyspace("items").unwrap();
            } else {
                items.clear().unwrap();
            }
            assert!(!db.settle(&snapshot).unwrap());
            assert_eq!(
                snapshot.keyspace("items").unwrap().get("key").unwrap().as_deref(),
                Some(&b"value"[..])
            );
            db.checkpoint(directory.path().join(format!("checkpoint-{drops}"))).unwrap();
        }
    }

    #[test]
    fn a_snapshot_of_log_is_converted() {
        let (_directory, db) = open();
        let items = db.keyspace("items").unwrap();
        items.insert("key", "value").unwrap();
        let snapshot = db.snapshot().unwrap();
        items.insert("key", "newer").unwrap();
        assert!(db.settle(&snapshot).unwrap());
        assert_eq!(snapshot.keyspace("items").unwrap().get("key").unwrap().as_deref(), Some(&b"value"[..]));
    }

    #[test]
    fn checkpoints_beside_clears_end() {
        let (directory, db) = open();
        let items = db.keyspace("items").unwrap();
        std::thread::scope(|scope| {
            let clears = scope.spawn(|| {
                for _ in 0..200 {
                    items.insert("key", "value").unwrap();
                    items.clear().unwrap();
                }
            });
            for number in 0..20 {
                db.checkpoint(directory.path().join(number.to_string())).unwrap();
            }
            clears.join().unwrap();
        });
    }
}
