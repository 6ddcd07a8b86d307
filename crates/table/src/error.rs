//! Errors of table files.

use std::{fmt, io};

use alluvium_base::Corruption;

/// Why a table could not be written, opened or read. Each variant tells what the caller can do.
#[derive(Debug)]
pub enum Error {
    /// The storage failed. Reading may be retried; after a failed write or sync the file must be abandoned.
    Io {
        /// The failed operation, with the file's name.
        action: String,
        /// The error of the storage.
        source: io::Error,
    },
    /// The bytes are not what a table writer wrote. Retrying does not help unless the medium is at fault.
    Corruption(Corruption),
    /// The file was written by a later major version of the format: only a newer build can read it.
    NewerFormat {
        /// Name of the file.
        file: String,
        /// Major version in the file.
        found_major: u16,
        /// Highest major version that this build reads.
        supported_major: u16,
    },
    /// The file was written by an earlier major version of the format, which this build does not read.
    OlderFormat {
        /// Name of the file.
        file: String,
        /// Major version in the file.
        found_major: u16,
        /// Lowest major version that this build reads.
        supported_major: u16,
    },
    /// The file's sections find prefixes by a function that was not given.
    PrefixFunction {
        /// Name of the file.
        file: String,
        /// Name of the function.
        function: String,
    },
    /// The item does not fit in half a page: it must be stored in a blob file.
    ItemTooLarge {
        /// Encoded length of the item in bytes.
        encoded_bytes: usize,
        /// Maximum bytes of an encoded item.
        encoded_bytes_max: usize,
    },
    /// The section would have more pages or slots than a `u32` can number: split it.
    SectionTooLarge {
        /// Pages already in the section.
        pages: u64,
    },
}

/// The result of every operation on tables.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Makes an [`Error::Io`] that names the action and the file, for `map_err`.
    pub fn io<'a>(action: &'a str, file: &'a str) -> impl FnOnce(io::Error) -> Self + 'a {
        move |source| Self::Io { action: format!("{action} table {file}"), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { action, source } => write!(out, "failed to {action}: {source}"),
            Self::Corruption(corruption) => corruption.fmt(out),
            Self::NewerFormat { file, found_major, supported_major } => write!(
                out,
                "{file} has table format {found_major}, this build reads up to {supported_major}: use a newer build"
            ),
            Self::OlderFormat { file, found_major, supported_major } => write!(
                out,
                "{file} has table format {found_major}, this build reads from {supported_major} on: use an older build"
            ),
            Self::PrefixFunction { file, function } => {
                write!(out, "{file} finds prefixes by the function {function:?}, which was not given")
            }
            Self::ItemTooLarge { encoded_bytes, encoded_bytes_max } => write!(
                out,
                "an item of {encoded_bytes} encoded bytes exceeds the {encoded_bytes_max} that a table page takes"
            ),
            Self::SectionTooLarge { pages } => {
                write!(out, "a table section cannot grow beyond its {pages} pages: split it")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Corruption(corruption) => Some(corruption),
            _ => None,
        }
    }
}

impl From<Corruption> for Error {
    fn from(corruption: Corruption) -> Self {
        Self::Corruption(corruption)
    }
}

impl From<io::Error> for Error {
    fn from(source: io::Error) -> Self {
        Self::Io { action: "access a table".to_owned(), source }
    }
}
