//! Errors of the engine and the cache as exceptions of `alluvium_db.errors`.

use std::io;

use alluvium::{BuildPart, Corruption, Error};
use alluvium_cache::{BuildError, IncrementError, SurviveError, TooLarge};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyModule};

/// Turns the error of a result into an exception.
pub trait OrRaise<T> {
    /// The value, or the error as an exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T, E: Raised> OrRaise<T> for Result<T, E> {
    #[inline]
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| error.raised(py))
    }
}

/// An error that has an exception.
pub trait Raised {
    /// The exception.
    fn raised(self, py: Python<'_>) -> PyErr;
}

/// An exception of the class `class` with a message and attributes.
fn exception(
    py: Python<'_>,
    class: &str,
    message: &str,
    attributes: impl FnOnce(&Bound<'_, PyDict>) -> PyResult<()>,
) -> PyErr {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let make = || {
        let errors =
            ERRORS.get_or_try_init(py, || py.import("alluvium_db.errors").map(Bound::unbind))?.bind(py);
        let given = PyDict::new(py);
        attributes(&given)?;
        errors.getattr(class)?.call((message,), Some(&given))
    };
    make().map_or_else(|error: PyErr| error, PyErr::from_value)
}

fn plain(py: Python<'_>, class: &str, message: &str) -> PyErr {
    exception(py, class, message, |_| Ok(()))
}

/// A handle is used in a forked process.
pub fn forked(py: Python<'_>) -> PyErr {
    let message = "the process was forked after this was opened, and threads and locks do not survive that: \
                   open it in one process only, after the fork";
    plain(py, "ForkedError", message)
}

/// Something was closed by the program.
pub fn closed(py: Python<'_>, what: &str) -> PyErr {
    plain(py, "ClosedError", &format!("{what} was closed"))
}

/// Settings that cannot be used.
pub fn settings(py: Python<'_>, message: &str) -> PyErr {
    plain(py, "SettingsError", message)
}

/// Refuses pickling.
pub fn pickled(what: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "cannot pickle {what}: it is open in this process alone. Pass the path, and open it where it is used"
    ))
}

fn corrupt(py: Python<'_>, class: &str, message: &str, what: &Corruption, directory: Option<&str>) -> PyErr {
    exception(py, class, message, |given| {
        given.set_item("file", &what.file)?;
        given.set_item("offset", what.offset)?;
        given.set_item("expected", &what.expected)?;
        given.set_item("found", &what.found)?;
        directory.map_or(Ok(()), |directory| given.set_item("directory", directory))
    })
}

fn too_large(py: Python<'_>, message: &str, what: &str, bytes: usize, bytes_max: usize) -> PyErr {
    exception(py, "TooLargeError", message, |given| {
        given.set_item("what", what)?;
        given.set_item("bytes", bytes)?;
        given.set_item("bytes_max", bytes_max)
    })
}

/// The number of the system's error, which may be inside others.
fn errno(error: &io::Error) -> Option<i32> {
    let mut inner: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = inner {
        if let Some(errno) = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) {
            return Some(errno);
        }
        inner = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(within) => Some(within),
            None => error.source(),
        };
    }
    None
}

fn refused_by_system(py: Python<'_>, message: &str, context: &str, errno: Option<i32>) -> PyErr {
    exception(py, "IoError", message, |given| {
        given.set_item("context", context)?;
        given.set_item("errno", errno)
    })
}

/// The name of a part, as `hash_key`.
fn snake_case(part: BuildPart) -> String {
    let mut name = String::new();
    for letter in format!("{part:?}").chars() {
        if letter.is_ascii_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_lowercase());
    }
    name
}

impl Raised for Error {
    fn raised(self, py: Python<'_>) -> PyErr {
        let message = self.to_string();
        let with = |class: &str, name: &str, value: &str| {
            exception(py, class, &message, |given| given.set_item(name, value))
        };
        match &self {
            Self::Io { context, source } => refused_by_system(py, &message, context, errno(source)),
            Self::Corruption(what) => corrupt(py, "CorruptionError", &message, what, None),
            Self::Damaged { corruption, directory } => {
                let message = format!(
                    "{corruption}; nothing was changed: call alluvium_db.repair({directory:?}), which keeps what is \
                     sound, or open the database with read_only=True"
                );
                corrupt(py, "DamagedError", &message, corruption, Some(directory))
            }
            Self::KeyTooLarge { len, max } => too_large(py, &message, "key", *len, *max),
            Self::ValueTooLarge { len, max } => too_large(py, &message, "value", *len, *max),
            Self::BatchTooLarge { len, max } => too_large(py, &message, "batch", *len, *max),
            Self::Plan(_)
            | Self::MemoryLimit { .. }
            | Self::KeyspaceName { .. }
            | Self::YoungDirectory { .. } => plain(py, "SettingsError", &message),
            Self::Locked { path, holder } => exception(py, "LockedError", &message, |given| {
                given.set_item("path", path)?;
                given.set_item("holder", holder)
            }),
            Self::NewerFormat { file, found, supported } | Self::OlderFormat { file, found, supported } => {
                exception(py, "FormatError", &message, |given| {
                    given.set_item("file", file)?;
                    given.set_item("found", found)?;
                    given.set_item("supported", supported)
                })
            }
            Self::NotADatabase { .. } => plain(py, "NotADatabaseError", &message),
            Self::MissingFile { file } => with("MissingFileError", "file", file),
            Self::KeyWithoutPrefix { .. } => plain(py, "KeyWithoutPrefixError", &message),
            Self::KeyspaceOrder { name, .. }
            | Self::KeyspaceHashKey { name }
            | Self::KeyspaceDropped { name } => with("KeyspaceError", "keyspace", name),
            Self::PrefixFunction { keyspace, .. }
            | Self::NotSemiSorted { keyspace }
            | Self::PrefixesNotListed { keyspace } => with("KeyspaceError", "keyspace", keyspace),
            Self::Failed { .. } => plain(py, "FailedError", &message),
            Self::DiskFull { .. } => plain(py, "DiskFullError", &message),
            Self::Stalled { .. } => plain(py, "StalledError", &message),
            Self::ReadOnly => plain(py, "ReadOnlyError", &message),
            Self::DiskQuota { used, max } => exception(py, "DiskQuotaError", &message, |given| {
                given.set_item("used", used)?;
                given.set_item("bytes_max", max)
            }),
            Self::MemoryBusy { held, max } => exception(py, "MemoryBusyError", &message, |given| {
                given.set_item("held", held)?;
                given.set_item("bytes_max", max)
            }),
            Self::ConditionFailed(failed) => exception(py, "ConditionFailedError", &message, |given| {
                given.set_item("number", failed.number)?;
                given.set_item("keyspace", &failed.keyspace)?;
                given.set_item("key", PyBytes::new(py, &failed.key))
            }),
            Self::NotANumber { .. } => plain(py, "NotANumberError", &message),
            Self::NumberOverflow { .. } => plain(py, "NumberOverflowError", &message),
            Self::Backup { .. } => plain(py, "BackupError", &message),
            Self::Closed => plain(py, "ClosedError", &message),
            Self::Build(what) => exception(py, "BuildError", &message, |given| {
                given.set_item("file", &what.file)?;
                given.set_item("part", snake_case(what.part))?;
                given.set_item("expected", &what.expected)?;
                given.set_item("found", &what.found)
            }),
            _ => plain(py, "AlluviumError", &message),
        }
    }
}

impl Raised for TooLarge {
    fn raised(self, py: Python<'_>) -> PyErr {
        exception(py, "TooLargeError", &self.to_string(), |given| {
            given.set_item("what", "item")?;
            given.set_item("bytes_max", self.item_bytes_max)
        })
    }
}

impl Raised for IncrementError {
    fn raised(self, py: Python<'_>) -> PyErr {
        let message = self.to_string();
        match self {
            Self::NotANumber => plain(py, "NotANumberError", &message),
            Self::Overflow => plain(py, "NumberOverflowError", &message),
            Self::TooLarge(error) => error.raised(py),
        }
    }
}

impl Raised for BuildError {
    fn raised(self, py: Python<'_>) -> PyErr {
        plain(py, "SettingsError", &self.to_string())
    }
}

impl Raised for SurviveError {
    fn raised(self, py: Python<'_>) -> PyErr {
        let message = self.to_string();
        match &self {
            Self::InUse { path, holder } => exception(py, "LockedError", &message, |given| {
                given.set_item("path", path.display().to_string())?;
                given.set_item("holder", holder)
            }),
            Self::Foreign(what) | Self::Damaged(what) => corrupt(py, "CorruptionError", &message, what, None),
            Self::System { action, error, .. } => refused_by_system(py, &message, action, errno(error)),
            _ => plain(py, "SettingsError", &message),
        }
    }
}
