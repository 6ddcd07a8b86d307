//! Reads the log: the changes since a position, in their order, as they happen.

use std::sync::Arc;

use alluvium_base::KeyspaceId;

use super::close::Handle;
use super::database::Db;
use super::log_source::{LogSource, Read, oldest};
use super::read::View;
use crate::blob::{LargeValue, stand_in_digest};
use crate::core::{KeyspaceShared, Moment};
use crate::error::{Error, Result};
use crate::item::Item;
use crate::log::HeldLog;
use crate::log::record::Record;
use crate::log_position::LogPosition;
use crate::metadata::Metadata;

/// A record of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// The position behind it: reading continues there.
    pub next: LogPosition,
    /// Its changes, which took effect together.
    pub changes: Vec<LogChange>,
}

/// A change in a keyspace, which it names.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogChange {
    /// An item was stored.
    Put {
        /// The keyspace's name.
        keyspace: String,
        /// The key.
        key: Vec<u8>,
        /// The value.
        value: Vec<u8>,
        /// Flags and expiry. An item may have expired since.
        metadata: Metadata,
    },
    /// A key was removed.
    Remove {
        /// The keyspace's name.
        keyspace: String,
        /// The key.
        key: Vec<u8>,
    },
    /// A key of more than 1 KiB was removed. The log has only its digest.
    RemoveLong {
        /// The keyspace's name.
        keyspace: String,
        /// The SHA-256 of the key.
        key_sha256: [u8; 32],
    },
    /// Items changed, or were about to when the database crashed, without a change for each: the keyspace was cleared,
    /// a prefix was removed, or items were ingested. Returned when the change is complete; until then the log seems to
    /// end before it. Copy a snapshot of it, call [`Db::persist`], and leave out the keyspace's records up to
    /// [`KeyspaceSnapshot::log_position`](crate::KeyspaceSnapshot::log_position). Until all that is done, the position
    /// to continue from after a crash is the one before this record.
    Unlogged {
        /// The keyspace's name.
        keyspace: String,
    },
}

/// Reads the log from a position on; made by [`Db::log_records`].
///
/// As an iterator it ends where the log ends; a later call of `next` returns what was written since. Until it is
/// dropped, the log behind it stays on the device, within
/// [`Builder::log_hold_bytes_max`](crate::Builder::log_hold_bytes_max).
#[derive(Debug)]
pub struct LogRecords {
    handle: Arc<Handle>,
    hold: HeldLog,
    next: LogPosition,
    source: Option<LogSource>,
}

impl Db {
    /// The position of the log's end: records written from now on are behind it.
    pub fn log_position(&self) -> LogPosition {
        self.shared().log.end_position()
    }

    /// The changes from the record at `from` on, which is a position from [`Db::log_position`],
    /// [`Snapshot::log_position`](crate::Snapshot::log_position) or a [`LogRecord`].
    ///
    /// A record is returned once it is as durable as the database's [`crate::Durability`] demands. The log has no
    /// record of keyspaces that were created or dropped; changes in keyspaces that no longer exist are left out, and so
    /// are large values that were collected since, whose keys have later records. Takes memory for one record, and for
    /// a mebibyte of the file for log that was converted.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// use alluvium::{Db, LogChange};
    /// let db = Db::open(directory.path())?;
    /// let items = db.keyspace("items")?;
    /// let from = db.log_position();
    /// items.insert("key", "value")?;
    /// let record = db.log_records(from)?.next().expect("a record")?;
    /// assert!(matches!(&record.changes[..], [LogChange::Put { key, .. }] if key == b"key"));
    /// assert_eq!(db.log_records(record.next)?.count(), 0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::LogPositionGone`] if the log no longer goes back that far; see
    /// [`Builder::log_retention_bytes`](crate::Builder::log_retention_bytes).
    pub fn log_records(&self, from: LogPosition) -> Result<LogRecords> {
        let shared = self.shared();
        shared.check_open()?;
        // Held first: nothing is given back between the search and the first read.
        let gone = || Error::LogPositionGone { oldest: oldest(shared) };
        let hold = shared.log.retained.hold(from).ok_or_else(gone)?;
        let source = Some(LogSource::at(shared, from, None)?);
        Ok(LogRecords { handle: self.handle().clone(), hold, next: from, source })
    }
}

impl LogRecords {
    /// The position from which the next record is read.
    pub fn position(&self) -> LogPosition {
        self.next
    }

    fn read(&mut self) -> Result<Option<LogRecord>> {
        let shared = &self.handle.shared;
        loop {
            shared.check_open()?;
            let source = match &mut self.source {
                Some(source) => source,
                None => self.source.insert(LogSource::at(shared, self.next, None)?),
            };
            let mut changes = Vec::new();
            let mut is_in_progress = false;
            let read = source.read(shared, self.next.offset, |record| {
                is_in_progress = self.handle.is_in_progress(record);
                changes = self.handle.changes_of(record)?;
                Ok(())
            })?;
            if is_in_progress {
                return Ok(None);
            }
            match read {
                Read::Record { end } => {
                    self.next.offset = end;
                    if !changes.is_empty() {
                        return Ok(Some(LogRecord { next: self.next, changes }));
                    }
                }
                Read::NothingYet => return Ok(None),
                Read::Moved => self.source = None,
                Read::Ended { end, next } => {
                    let source = LogSource::at(shared, next.unwrap_or(end), Some(end))?;
                    self.next = source.start(next);
                    self.source = Some(source);
                    self.hold.advance(self.next);
                }
            }
        }
    }
}

impl Iterator for LogRecords {
    type Item = Result<LogRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

impl Handle {
    /// Whether the record announces a change that may not be published yet.
    fn is_in_progress(&self, record: &Record<'_>) -> bool {
        let Record::Unlogged { keyspace } = record else { return false };
        let keyspaces = self.shared.all_keyspaces();
        let found = keyspaces.iter().find(|found| found.id == *keyspace);
        found.is_some_and(|found| found.update_barriers.is_any_raised())
    }

    fn changes_of(&self, record: &Record<'_>) -> Result<Vec<LogChange>> {
        let keyspaces = self.shared.all_keyspaces();
        let find = |id: KeyspaceId| keyspaces.iter().find(|keyspace| keyspace.id == id);
        let mut changes = Vec::new();
        match record {
            Record::Item { keyspace, item, .. } => {
                if let Some(keyspace) = find(*keyspace) {
                    changes.extend(self.change_of(keyspace, item)?);
                }
            }
            Record::Batch(items) => {
                for (keyspace, item, _) in items.clone() {
                    if let Some(keyspace) = find(keyspace) {
                        changes.extend(self.change_of(keyspace, &item)?);
                    }
                }
            }
            Record::Unlogged { keyspace } => {
                changes.extend(
                    find(*keyspace).map(|found| LogChange::Unlogged { keyspace: found.name.clone() }),
                );
            }
            Record::Seal { .. } | Record::Mark(_) | Record::Slots { .. } => {}
        }
        Ok(changes)
    }

    /// `None` if the item's large value is gone.
    fn change_of(&self, keyspace: &KeyspaceShared, item: &Item<'_>) -> Result<Option<LogChange>> {
        let name = keyspace.name.clone();
        if item.is_tombstone() {
            return Ok(Some(match stand_in_digest(item.key) {
                Some(key_sha256) => LogChange::RemoveLong { keyspace: name, key_sha256 },
                None => LogChange::Remove { keyspace: name, key: item.key.to_vec() },
            }));
        }
        let metadata = Metadata::of(item);
        if !item.is_reference() {
            let (key, value) = (item.key.to_vec(), item.value.to_vec());
            return Ok(Some(LogChange::Put { keyspace: name, key, value, metadata }));
        }
        LargeValue::required(item)?;
        let version = keyspace.version.load();
        let shared = &*self.shared;
        let view = View { shared, keyspace, version: &version, moment: Moment::Now(shared), era: None };
        match view.large_item(item) {
            Ok((key, value)) => Ok(Some(LogChange::Put { keyspace: name, key, value, metadata })),
            Err(Error::MissingFile { .. } | Error::KeyspaceDropped { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
