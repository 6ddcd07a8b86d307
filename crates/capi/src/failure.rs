//! [`Failure`]: errors of the engine and the cache as errors of C.

use std::any::Any;
use std::ffi::CString;
use std::io;

use alluvium::{Corruption, Error};
use alluvium_cache::{BuildError, IncrementError, SurviveError, TooLarge};

use crate::error::{alluvium_error, alluvium_status};

/// Why a call failed.
#[derive(Debug)]
pub struct Failure(Box<alluvium_error>);

/// A text for C, which ends at the first zero.
pub fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

impl Failure {
    fn new(status: alluvium_status, message: &str) -> Self {
        Self(Box::new(alluvium_error {
            status,
            message: c_text(message),
            file: None,
            offset: 0,
            expected: None,
            found: None,
            system: 0,
            condition: None,
            key: None,
        }))
    }

    /// Its status.
    pub fn status(&self) -> alluvium_status {
        self.0.status
    }

    /// The object for C.
    pub fn into_error(self) -> Box<alluvium_error> {
        self.0
    }

    /// An argument is wrong.
    pub fn argument(message: &str) -> Self {
        Self::new(alluvium_status::ALLUVIUM_ARGUMENT, message)
    }

    /// A pointer that must not be NULL is.
    pub fn null(name: &str) -> Self {
        Self::argument(&format!("{name} is NULL"))
    }

    /// A setting cannot be used.
    pub fn settings(message: &str) -> Self {
        Self::new(alluvium_status::ALLUVIUM_SETTINGS, message)
    }

    /// Something was closed by the program.
    pub fn closed(what: &str) -> Self {
        Self::new(alluvium_status::ALLUVIUM_CLOSED, &format!("{what} was closed"))
    }

    /// A keyspace of a snapshot is to be changed.
    pub fn of_snapshot() -> Self {
        Self::new(alluvium_status::ALLUVIUM_READ_ONLY, "a keyspace of a snapshot does not change")
    }

    /// A handle is used in a forked process.
    pub fn forked() -> Self {
        let message = "the process was forked after this was opened, and threads and locks do not survive that: \
                       open it in one process only, after the fork";
        Self::new(alluvium_status::ALLUVIUM_FORKED, message)
    }

    /// The system gave no memory.
    pub fn no_memory(len: usize) -> Self {
        Self::new(alluvium_status::ALLUVIUM_MEMORY, &format!("there is no memory for {len} bytes"))
    }

    /// A panic was caught.
    pub fn panicked(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<&str>().copied();
        let text =
            text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
        let message = format!("a mistake in the library: {text}; close the database, and report this");
        Self::new(alluvium_status::ALLUVIUM_PANIC, &message)
    }

    fn of_file(mut self, file: &str) -> Self {
        self.0.file = Some(c_text(file));
        self
    }

    fn of_corruption(mut self, what: &Corruption) -> Self {
        self.0.offset = what.offset;
        self.0.expected = Some(c_text(&what.expected));
        self.0.found = Some(c_text(&what.found));
        self.of_file(&what.file)
    }

    fn of_system(mut self, error: &io::Error) -> Self {
        self.0.system = errno(error).unwrap_or(0);
        self
    }
}

/// The number of the system's error, which may be inside others.
fn errno(error: &io::Error) -> Option<i32> {
    let mut inner: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = inner {
        let system = error.downcast_ref::<io::Error>();
        if let Some(errno) = system.and_then(io::Error::raw_os_error) {
            return Some(errno);
        }
        inner = match system.and_then(io::Error::get_ref) {
            Some(within) => Some(within),
            None => error.source(),
        };
    }
    None
}

fn status_of(error: &Error) -> alluvium_status {
    use alluvium_status::*;
    match error {
        Error::Io { .. } => ALLUVIUM_IO,
        Error::Corruption(_) => ALLUVIUM_CORRUPTION,
        Error::Damaged { .. } => ALLUVIUM_DAMAGED,
        Error::KeyTooLarge { .. } | Error::ValueTooLarge { .. } | Error::BatchTooLarge { .. } => {
            ALLUVIUM_TOO_LARGE
        }
        Error::Plan(_)
        | Error::MemoryLimit { .. }
        | Error::KeyspaceName { .. }
        | Error::YoungDirectory { .. } => ALLUVIUM_SETTINGS,
        Error::Locked { .. } => ALLUVIUM_LOCKED,
        Error::NewerFormat { .. } | Error::OlderFormat { .. } => ALLUVIUM_FORMAT,
        Error::NotADatabase { .. } => ALLUVIUM_NOT_A_DATABASE,
        Error::MissingFile { .. } => ALLUVIUM_MISSING_FILE,
        Error::KeyWithoutPrefix { .. } => ALLUVIUM_KEY_WITHOUT_PREFIX,
        Error::KeyspaceOrder { .. }
        | Error::KeyspaceHashKey { .. }
        | Error::KeyspaceDropped { .. }
        | Error::PrefixFunction { .. }
        | Error::NotSemiSorted { .. }
        | Error::PrefixesNotListed { .. } => ALLUVIUM_KEYSPACE,
        Error::Failed { .. } => ALLUVIUM_FAILED,
        Error::DiskFull { .. } => ALLUVIUM_DISK_FULL,
        Error::DiskQuota { .. } => ALLUVIUM_DISK_QUOTA,
        Error::Stalled { .. } => ALLUVIUM_STALLED,
        Error::ReadOnly => ALLUVIUM_READ_ONLY,
        Error::MemoryBusy { .. } => ALLUVIUM_MEMORY_BUSY,
        Error::ConditionFailed(_) => ALLUVIUM_CONDITION,
        Error::NotANumber { .. } => ALLUVIUM_NOT_A_NUMBER,
        Error::NumberOverflow { .. } => ALLUVIUM_NUMBER_OVERFLOW,
        Error::Backup { .. } => ALLUVIUM_BACKUP,
        Error::Closed => ALLUVIUM_CLOSED,
        _ => ALLUVIUM_OTHER,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let failure = Self::new(status_of(&error), &error.to_string());
        match &error {
            Error::Io { source, .. } => failure.of_system(source),
            Error::Corruption(what) | Error::Damaged { corruption: what, .. } => failure.of_corruption(what),
            Error::NewerFormat { file, .. }
            | Error::OlderFormat { file, .. }
            | Error::MissingFile { file } => failure.of_file(file),
            Error::ConditionFailed(failed) => {
                let Self(mut error) = failure;
                error.condition = Some(failed.number);
                error.key = Some(failed.key.clone());
                Self(error)
            }
            _ => failure,
        }
    }
}

impl From<TooLarge> for Failure {
    fn from(error: TooLarge) -> Self {
        Self::new(alluvium_status::ALLUVIUM_TOO_LARGE, &error.to_string())
    }
}

impl From<IncrementError> for Failure {
    fn from(error: IncrementError) -> Self {
        let status = match &error {
            IncrementError::NotANumber => alluvium_status::ALLUVIUM_NOT_A_NUMBER,
            IncrementError::Overflow => alluvium_status::ALLUVIUM_NUMBER_OVERFLOW,
            IncrementError::TooLarge(_) => alluvium_status::ALLUVIUM_TOO_LARGE,
        };
        Self::new(status, &error.to_string())
    }
}

impl From<BuildError> for Failure {
    fn from(error: BuildError) -> Self {
        Self::settings(&error.to_string())
    }
}

impl From<SurviveError> for Failure {
    fn from(error: SurviveError) -> Self {
        let message = error.to_string();
        match &error {
            SurviveError::InUse { .. } => Self::new(alluvium_status::ALLUVIUM_LOCKED, &message),
            SurviveError::Foreign(what) | SurviveError::Damaged(what) => {
                Self::new(alluvium_status::ALLUVIUM_CORRUPTION, &message).of_corruption(what)
            }
            SurviveError::System { error, .. } => {
                Self::new(alluvium_status::ALLUVIUM_IO, &message).of_system(error)
            }
            _ => Self::settings(&message),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::new(alluvium_status::ALLUVIUM_IO, &error.to_string()).of_system(&error)
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::new(alluvium_status::ALLUVIUM_OTHER, &error.to_string())
    }
}
