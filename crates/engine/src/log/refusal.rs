//! [`Refusal`]: why the log takes no writes, or only removals.

use crate::error::Error;

/// Why the log takes no more writes, or only removals.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// Something failed, so the state of the device is unknown.
    Failed { reason: String },
    /// The disk is full: what needs space is refused until there is some.
    Full { reason: String },
    /// The database was opened for reading.
    ReadOnly,
    /// The database was closed.
    Closed,
}

impl Refusal {
    /// The error that a writer gets.
    pub fn error(&self) -> Error {
        match self {
            Self::Failed { reason } => Error::Failed { reason: reason.clone() },
            Self::Full { reason } => Error::DiskFull { reason: reason.clone() },
            Self::ReadOnly => Error::ReadOnly,
            Self::Closed => Error::Closed,
        }
    }
}
