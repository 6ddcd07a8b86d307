//! What can go wrong, each kind telling the caller what to do.

use std::fmt;
use std::io;

use alluvium_base::{Corruption, PrefixRule};
use alluvium_io::StorageClosed;
use alluvium_model::PlanError;

use crate::db::{FailedCondition, Order};

/// The result of every operation of the store.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused an operation on a file. Fix the cause (space, permissions, limits) and retry, or
    /// reopen when it was a write.
    Io {
        /// What was being done.
        context: String,
        /// The operating system's answer.
        source: io::Error,
    },
    /// Stored bytes fail their check. Run `alluvium verify`; restore the file from a backup.
    Corruption(Corruption),
    /// The database is damaged where it must be whole to take writes, so it was not opened and nothing was changed. Run
    /// `alluvium repair`, which keeps everything outside the damage, or restore a backup;
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
        /// Most bytes a key may have.
        max: usize,
    },
    /// The value is longer than the limit. Split it.
    ValueTooLarge {
        /// Bytes of the value.
        len: usize,
        /// Most bytes a value may have.
        max: usize,
    },
    /// A batch is larger than a log segment. Split it, or raise `segment_bytes_max` of the plan's log.
    BatchTooLarge {
        /// Bytes of the encoded batch.
        len: usize,
        /// Most bytes a batch may have.
        max: usize,
    },
    /// The parts of the plan don't fit together, or the engine can't execute it. Correct the plan.
    Plan(PlanError),
    /// Another process, or another handle in this one, has the database open. Close that one first.
    Locked {
        /// The database directory or lock file.
        path: String,
        /// Who holds it, as far as that is known.
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
    /// A file was written by an older major version that is not read any more. Export with that version, and import.
    OlderFormat {
        /// The file.
        file: String,
        /// Its major version.
        found: u16,
        /// The oldest major version this program reads.
        supported: u16,
    },
    /// The directory holds files, but no database. Open another directory.
    NotADatabase {
        /// What is wrong with it.
        reason: String,
    },
    /// Tables lie in a second directory ([`crate::Builder::young_levels_dir`]), and it was not given, or another one
    /// was. Give the right one.
    YoungDirectory {
        /// What is wrong.
        reason: String,
    },
    /// A file that the manifest names is gone. Restore it from a backup.
    MissingFile {
        /// The file.
        file: String,
    },
    /// A keyspace name is empty, longer than 255 bytes, or contains control characters.
    KeyspaceName {
        /// The name.
        name: String,
    },
    /// The keyspace keeps items of one prefix together, and the key has no prefix. Store another key.
    KeyWithoutPrefix {
        /// Bytes of the key.
        len: usize,
        /// Where prefixes end.
        rule: PrefixRule,
    },
    /// The keyspace exists in another order than was asked for. Ask for that one, or use another name.
    KeyspaceOrder {
        /// The name.
        name: String,
        /// The order that it was created with.
        found: Order,
    },
    /// The keyspace finds prefixes by a function that was not given. Give it with
    /// [`crate::Builder::prefix_function`], under this name.
    PrefixFunction {
        /// The keyspace, or a table file of it.
        keyspace: String,
        /// The name of the function.
        function: String,
    },
    /// The keyspace keeps no items of one prefix together. Iterate, or create it as
    /// [`crate::Order::SemiSorted`].
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
    /// An earlier write or sync of the log, the manifest or large items failed, so what is on the device is unknown:
    /// the database takes no more writes. Reads go on. Fix the cause, then reopen; everything acknowledged as durable
    /// is recovered.
    Failed {
        /// The first failure.
        reason: String,
    },
    /// The disk is full. Reads and removals go on, and so do [`crate::Keyspace::clear`] and
    /// [`crate::Db::drop_keyspace`]. Make room, by them or otherwise: writes are taken again by themselves shortly
    /// after ([`crate::Db::resume`] does it at once). A write that was under way when the space ran out may take
    /// effect; later ones, refused, do not.
    DiskFull {
        /// What had no room.
        reason: String,
    },
    /// The log is full, and the background work that makes room in it fails for a reason that may pass. It is tried
    /// again by itself; fix the cause (descriptors, memory, permissions) and write again later.
    Stalled {
        /// The latest failure.
        reason: String,
    },
    /// The database was opened for reading only. Open it with [`crate::Db::open`] to write.
    ReadOnly,
    /// The write would take more of the disk than [`crate::Builder::disk_bytes_max`] allows. Remove items, which is
    /// still possible, and compact; or raise the limit.
    DiskQuota {
        /// Bytes that the database takes, and needs to put its log in order.
        used: u64,
        /// Most bytes that it may take.
        max: u64,
    },
    /// The memory limit is too small to work with. Raise [`crate::Builder::memory_bytes_max`].
    MemoryLimit {
        /// Bytes that were allowed.
        limit: u64,
        /// The smallest limit.
        min: u64,
    },
    /// Under the memory limit there is no room for another iterator. Drop iterators that are open, or raise
    /// [`crate::Builder::memory_bytes_max`]; then call again.
    MemoryBusy {
        /// Bytes that open iterators hold.
        held: u64,
        /// Most bytes that they may hold together.
        max: u64,
    },
    /// The keyspace was dropped. Get it by its name again to create a new one.
    KeyspaceDropped {
        /// The name that it had.
        name: String,
    },
    /// A condition of a batch does not hold, so nothing of the batch was written. Read the key and decide anew.
    ConditionFailed(Box<FailedCondition>),
    /// A value that was to be incremented is no number of 8 bytes. Store it with `i64::to_le_bytes`.
    NotANumber {
        /// Bytes of the value.
        len: usize,
    },
    /// A sum would not fit in 64 bits; the number stays as it was.
    NumberOverflow {
        /// The number.
        value: i64,
        /// What was to be added.
        by: i64,
    },
    /// The directory of backups does not fit what was asked for. Choose another one.
    Backup {
        /// What does not fit.
        reason: String,
    },
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
                write!(out, "keyspace {name:?} exists in another order: {found:?}")
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
                    "the database takes no writes since an earlier failure ({reason}); fix it and reopen"
                )
            }
            Self::DiskFull { reason } => {
                write!(
                    out,
                    "the disk is full ({reason}); remove items or make room otherwise, and write again then"
                )
            }
            Self::Stalled { reason } => write!(
                out,
                "the log is full, and what makes room in it fails and is tried again ({reason}); write again later"
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
            Self::NumberOverflow { value, by } => write!(out, "{value} and {by} make no number of 64 bits"),
            Self::Backup { reason } => write!(out, "backup: {reason}"),
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

/// Turns an [`io::Error`] into an [`Error`] that says what was being done.
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
            // Large items lie in blob files, so neither happens unless a bound of ours is wrong.
            error @ (TableError::SectionTooLarge { .. } | TableError::ItemTooLarge { .. }) => Self::Io {
                context: "writing a table".to_owned(),
                source: std::io::Error::other(error.to_string()),
            },
        }
    }
}
