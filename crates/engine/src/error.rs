//! Errors of the engine. Each kind says what the caller can do.

use std::fmt;
use std::io;

use alluvium_base::{Corruption, PrefixRule};
use alluvium_io::StorageClosed;
use alluvium_model::PlanError;

use crate::build::BuildMismatch;
use crate::condition::FailedCondition;
use crate::log_position::LogPosition;
use crate::order::Order;

/// The result of every operation of the store.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused an operation on a file. Fix the cause (space, permissions, limits), then retry a
    /// read, or reopen the database after a failed write.
    Io {
        /// The operation that failed.
        context: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Stored bytes fail their check. Run `alluvium verify`; restore the file from a backup.
    Corruption(Corruption),
    /// The database is damaged in a part that must be sound for writes, so it was not opened, and nothing was changed.
    /// Run `alluvium repair`, which keeps everything outside the damage, or restore a backup.
    /// [`crate::Db::open_read_only`] shows what a repair would keep.
    Damaged {
        /// The first damage found.
        corruption: Corruption,
        /// The database's directory.
        directory: String,
    },
    /// The key is longer than the limit. Hash long keys before storing them.
    KeyTooLarge {
        /// Bytes of the key.
        len: usize,
        /// Maximum bytes of a key.
        max: usize,
    },
    /// The value is longer than the limit. Split it.
    ValueTooLarge {
        /// Bytes of the value.
        len: usize,
        /// Maximum bytes of a value.
        max: usize,
    },
    /// A batch is larger than a log segment. Split it, or raise `segment_bytes_max` of the plan's log.
    BatchTooLarge {
        /// Bytes of the encoded batch.
        len: usize,
        /// Maximum bytes of a batch.
        max: usize,
    },
    /// The parts of the plan do not fit together, or the engine cannot execute it. Correct the plan.
    Plan(PlanError),
    /// Another process, or another handle in this one, has the database open. Close it there first.
    Locked {
        /// The database directory or lock file.
        path: String,
        /// The holder, as far as it is known.
        holder: String,
    },
    /// A file was written by a newer major version. Use that version.
    NewerFormat {
        /// The file.
        file: String,
        /// Its major version.
        found: u16,
        /// The newest major version this program reads.
        supported: u16,
    },
    /// A file was written by an older major version that is no longer supported. Export with that version, and import.
    OlderFormat {
        /// The file.
        file: String,
        /// Its major version.
        found: u16,
        /// The oldest major version this program reads.
        supported: u16,
    },
    /// The directory contains files, but no database. Open another directory.
    NotADatabase {
        /// The reason.
        reason: String,
    },
    /// The database has tables in a second directory ([`crate::Builder::young_levels_dir`]), and none or a different
    /// one was given. Give the right one.
    YoungDirectory {
        /// The reason.
        reason: String,
    },
    /// A file that the manifest names does not exist. Restore it from a backup.
    MissingFile {
        /// The file.
        file: String,
    },
    /// A keyspace name is empty, longer than 255 bytes, or contains control characters.
    KeyspaceName {
        /// The name.
        name: String,
    },
    /// The keyspace stores items of one prefix together, and the key has no prefix. Store another key.
    KeyWithoutPrefix {
        /// Bytes of the key.
        len: usize,
        /// The rule that says where prefixes end.
        rule: PrefixRule,
    },
    /// The keyspace exists with a different order. Open it with that order, or use another name.
    KeyspaceOrder {
        /// The name.
        name: String,
        /// The order with which it was created.
        found: Order,
    },
    /// The keyspace finds prefixes by a function that was not given. Give it by [`crate::Builder::prefix_function`],
    /// under this name.
    PrefixFunction {
        /// The keyspace, or a table file of it.
        keyspace: String,
        /// The name of the function.
        function: String,
    },
    /// The keyspace does not store items of one prefix together. Iterate, or create it as [`crate::Order::SemiSorted`].
    NotSemiSorted {
        /// The keyspace.
        keyspace: String,
    },
    /// The keyspace does not list its prefixes. Create one
    /// [`with_listed_prefixes`](crate::KeyspaceOptions::with_listed_prefixes).
    PrefixesNotListed {
        /// The keyspace.
        keyspace: String,
    },
    /// An earlier write or sync of the log, the manifest or large items failed. What is on the device is unknown, so
    /// the database refuses writes; reads still work. Fix the cause, then reopen: everything acknowledged as durable is
    /// recovered.
    Failed {
        /// The first failure.
        reason: String,
    },
    /// The disk is full. Reads, removals, [`crate::Keyspace::clear`] and [`crate::Db::drop_keyspace`] still work. Make
    /// room, with these or otherwise: the database accepts writes again shortly afterwards, or at once after
    /// [`crate::Db::resume`]. A write in progress when the space ran out may take effect; later ones, which are
    /// refused, do not.
    DiskFull {
        /// The operation that found no space.
        reason: String,
    },
    /// The log is full, and the background work that makes room in it fails for a reason that may be temporary. It is
    /// repeated automatically; fix the cause (descriptors, memory, permissions) and write again later.
    Stalled {
        /// The latest failure.
        reason: String,
    },
    /// The database was opened for reading only. Open it with [`crate::Db::open`] to write.
    ReadOnly,
    /// The write would exceed [`crate::Builder::disk_bytes_max`]. Remove items, which is still possible, and compact;
    /// or raise the limit.
    DiskQuota {
        /// Bytes that the database takes, including what it needs to convert and merge its log.
        used: u64,
        /// Maximum bytes that it may take.
        max: u64,
    },
    /// The memory limit is too small. Raise [`crate::Builder::memory_bytes_max`].
    MemoryLimit {
        /// The limit given, in bytes.
        limit: u64,
        /// The minimum limit, in bytes.
        min: u64,
    },
    /// The memory limit leaves no room for another iterator. Drop open iterators, or raise
    /// [`crate::Builder::memory_bytes_max`]; then call again.
    MemoryBusy {
        /// Bytes that open iterators hold.
        held: u64,
        /// Maximum bytes that all of them may hold together.
        max: u64,
    },
    /// The keyspace was dropped. Open it by its name to create a new one.
    KeyspaceDropped {
        /// Its name.
        name: String,
    },
    /// A condition of a batch does not hold, so nothing of the batch was written. Read the key again and decide anew.
    ConditionFailed(Box<FailedCondition>),
    /// A value to be incremented is not a number of 8 bytes. Store it with `i64::to_le_bytes`.
    NotANumber {
        /// Bytes of the value.
        len: usize,
    },
    /// A sum does not fit in 64 bits; the number is unchanged.
    NumberOverflow {
        /// The number.
        value: i64,
        /// The number to be added.
        by: i64,
    },
    /// The keyspace exists with another hash key than the one that was given.
    KeyspaceHashKey {
        /// Its name.
        name: String,
    },
    /// Records of the log that were asked for are gone.
    LogPositionGone {
        /// The position of the oldest record that is still there, if there is one.
        oldest: LogPosition,
    },
    /// The directory of backups does not fit the request. Choose another one.
    Backup {
        /// The reason.
        reason: String,
    },
    /// A part of a bulk build does not fit: build it again, or give what it was built with.
    Build(Box<BuildMismatch>),
    /// The database was closed.
    Closed,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { context, source } => write!(out, "{context}: {source}"),
            Self::Corruption(corruption) => corruption.fmt(out),
            Self::Damaged { corruption, directory } => write!(
                out,
                "{corruption}; nothing was changed: run `alluvium repair {directory}`, which keeps what is sound, or \
                 open the database for reading only"
            ),
            Self::KeyTooLarge { len, max } => {
                write!(out, "key of {len} bytes: at most {max} are allowed; hash long keys first")
            }
            Self::ValueTooLarge { len, max } => {
                write!(out, "value of {len} bytes: at most {max} are allowed; split it")
            }
            Self::BatchTooLarge { len, max } => write!(
                out,
                "batch of {len} bytes: at most {max} fit in a log segment; split it or raise segment_bytes_max"
            ),
            Self::Plan(error) => error.fmt(out),
            Self::Locked { path, holder } => {
                write!(
                    out,
                    "database {path} is in use by {holder}; close it there first, or let it make a checkpoint to read"
                )
            }
            Self::NewerFormat { file, found, supported } => write!(
                out,
                "{file} has format version {found}, this program reads up to {supported}; use a newer program"
            ),
            Self::OlderFormat { file, found, supported } => write!(
                out,
                "{file} has format version {found}, this program reads from {supported} on; \
                 export with an older program and import with this one"
            ),
            Self::NotADatabase { reason } => write!(out, "not an Alluvium database: {reason}"),
            Self::YoungDirectory { reason } => write!(out, "{reason}; give the right one"),
            Self::MissingFile { file } => {
                write!(out, "file {file} is missing although the manifest names it; restore it from a backup")
            }
            Self::KeyspaceName { name } => {
                write!(out, "keyspace name {name:?}: use 1 to 255 bytes without control characters")
            }
            Self::KeyWithoutPrefix { len, rule } => {
                write!(out, "key of {len} bytes: it has no prefix, which in this keyspace is {rule}")
            }
            Self::KeyspaceOrder { name, found } => {
                write!(out, "keyspace {name:?} exists with a different order: {found:?}")
            }
            Self::PrefixFunction { keyspace, function } => write!(
                out,
                "keyspace {keyspace:?} finds prefixes by the function {function:?}; give it when opening the database"
            ),
            Self::NotSemiSorted { keyspace } => {
                write!(out, "keyspace {keyspace:?} is in the order of whole keys' hashes: it has no prefixes")
            }
            Self::PrefixesNotListed { keyspace } => {
                write!(out, "keyspace {keyspace:?} does not list its prefixes: create one that does")
            }
            Self::Failed { reason } => {
                write!(
                    out,
                    "the database refuses writes since an earlier failure ({reason}); fix it and reopen"
                )
            }
            Self::DiskFull { reason } => {
                write!(
                    out,
                    "the disk is full ({reason}); remove items or make room otherwise, then write again"
                )
            }
            Self::Stalled { reason } => write!(
                out,
                "the log is full, and the work that makes room in it fails and is retried ({reason}); write again later"
            ),
            Self::ReadOnly => write!(out, "the database is open for reading only; open it for writing"),
            Self::DiskQuota { used, max } => write!(
                out,
                "the database takes {used} of at most {max} bytes of disk; remove items and compact, or raise the limit"
            ),
            Self::MemoryLimit { limit, min } => {
                write!(out, "a memory limit of {limit} bytes is too small: allow at least {min}")
            }
            Self::MemoryBusy { held, max } => write!(
                out,
                "open iterators hold {held} of at most {max} bytes of memory; drop some, or raise the memory limit"
            ),
            Self::KeyspaceDropped { name } => write!(out, "keyspace {name:?} was dropped"),
            Self::ConditionFailed(failed) => failed.fmt(out),
            Self::NotANumber { len } => {
                write!(out, "a value of {len} bytes can't be incremented: a number has 8, lowest first")
            }
            Self::NumberOverflow { value, by } => write!(out, "{value} plus {by} does not fit in 64 bits"),
            Self::KeyspaceHashKey { name } => {
                write!(
                    out,
                    "keyspace {name:?} exists with another hash key; give the key that it was created with, or none"
                )
            }
            Self::LogPositionGone { oldest } => write!(
                out,
                "the log before {oldest} is gone; copy a snapshot and read on from its position, or retain more log"
            ),
            Self::Backup { reason } => write!(out, "backup: {reason}"),
            Self::Build(mismatch) => mismatch.fmt(out),
            Self::Closed => write!(out, "the database was closed"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Corruption(corruption) | Self::Damaged { corruption, .. } => Some(corruption),
            Self::Plan(error) => Some(error),
            _ => None,
        }
    }
}

impl From<Corruption> for Error {
    fn from(corruption: Corruption) -> Self {
        Self::Corruption(corruption)
    }
}

impl From<PlanError> for Error {
    fn from(error: PlanError) -> Self {
        Self::Plan(error)
    }
}

/// Turns an [`io::Error`] into an [`Error`] that names the failed operation.
pub(crate) trait IoContext<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn context(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|source| match StorageClosed::is(&source) {
            true => Error::Closed,
            false => Error::Io { context: what(), source },
        })
    }
}

impl From<crate::table::Error> for Error {
    fn from(error: crate::table::Error) -> Self {
        use crate::table::Error as TableError;
        match error {
            TableError::Io { source, .. } if StorageClosed::is(&source) => Self::Closed,
            TableError::Io { action, source } => Self::Io { context: action, source },
            TableError::Corruption(corruption) => Self::Corruption(corruption),
            TableError::NewerFormat { file, found_major, supported_major } => {
                Self::NewerFormat { file, found: found_major, supported: supported_major }
            }
            TableError::OlderFormat { file, found_major, supported_major } => {
                Self::OlderFormat { file, found: found_major, supported: supported_major }
            }
            TableError::PrefixFunction { file, function } => {
                Self::PrefixFunction { keyspace: file, function }
            }
            // Large items are stored in blob files, so neither happens unless one of our bounds is wrong.
            error @ (TableError::SectionTooLarge { .. } | TableError::ItemTooLarge { .. }) => Self::Io {
                context: "writing a table".to_owned(),
                source: std::io::Error::other(error.to_string()),
            },
        }
    }
}
