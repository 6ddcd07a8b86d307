//! Why a benchmark ended early.

use std::fmt;
use std::path::PathBuf;

/// What went wrong in a benchmark.
#[derive(Debug)]
pub enum BenchError {
    /// The store gave a wrong answer. The text names the operation, the item and the answer.
    WrongAnswer(String),
    /// The options contradict each other.
    Usage(String),
    /// An input file is not as expected.
    Input {
        /// The file.
        path: PathBuf,
        /// The line that cannot be read, counted from 1; 0 if there are no lines.
        line: u64,
        /// What is wrong there.
        reason: String,
    },
    /// The store reported an error.
    Store(alluvium::Error),
    /// A model cannot be evaluated.
    Model(alluvium_model::ModelError),
    /// The operating system reported an error.
    Io(std::io::Error),
}

impl fmt::Display for BenchError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongAnswer(what) => write!(out, "wrong answer: {what}"),
            Self::Usage(what) => write!(out, "{what}"),
            Self::Input { path, line: 0, reason } => write!(out, "{}: {reason}", path.display()),
            Self::Input { path, line, reason } => write!(out, "{}, line {line}: {reason}", path.display()),
            Self::Store(error) => write!(out, "the store failed: {error}"),
            Self::Model(error) => write!(out, "the model refused: {error}"),
            Self::Io(error) => write!(out, "the system failed: {error}"),
        }
    }
}

impl std::error::Error for BenchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Store(error) => Some(error),
            Self::Model(error) => Some(error),
            Self::Io(error) => Some(error),
            Self::WrongAnswer(_) | Self::Usage(_) | Self::Input { .. } => None,
        }
    }
}

impl From<alluvium::Error> for BenchError {
    fn from(error: alluvium::Error) -> Self {
        Self::Store(error)
    }
}

impl From<std::io::Error> for BenchError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<alluvium_model::ModelError> for BenchError {
    fn from(error: alluvium_model::ModelError) -> Self {
        Self::Model(error)
    }
}
