//! Why a file could not be read.

use std::fmt;
use std::io;

/// The result of reading.
pub type Result<T> = std::result::Result<T, ReadError>;

/// A position in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of text, counted from 1.
    Line(u64),
    /// A byte, counted from 0.
    Offset(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(out, "line {line}"),
            Self::Offset(offset) => write!(out, "offset {offset}"),
        }
    }
}

/// Why a file could not be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system refused to read.
    Io {
        /// The file.
        file: String,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The file does not hold what its format requires. Correct it there, or export it again.
    Malformed {
        /// The file.
        file: String,
        /// Where the record starts, or the part of it that is wrong.
        place: Place,
        /// What the format requires there.
        expected: String,
        /// What is there instead.
        found: String,
    },
    /// The file was written by a newer major version. Use that version.
    NewerFormat {
        /// The file.
        file: String,
        /// Its major version.
        found: u16,
        /// The newest major version this program reads.
        supported: u16,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { file, source } => write!(out, "reading {file}: {source}"),
            Self::Malformed { file, place, expected, found } => {
                write!(out, "{file}, {place}: expected {expected}, found {found}")
            }
            Self::NewerFormat { file, found, supported } => write!(
                out,
                "{file} has format version {found}, this program reads up to {supported}; use a newer program"
            ),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// What is wrong with the bytes of a record, before the position is added.
#[derive(Debug)]
pub(crate) struct Mismatch {
    pub expected: String,
    pub found: String,
}

impl Mismatch {
    pub fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { expected: expected.into(), found: found.into() }
    }

    pub fn at(self, file: &str, place: Place) -> ReadError {
        ReadError::Malformed { file: file.to_owned(), place, expected: self.expected, found: self.found }
    }
}
