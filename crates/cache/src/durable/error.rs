//! Why a cache that survives cannot be opened.

use std::fmt;
use std::io;
use std::path::PathBuf;

use alluvium_base::Corruption;

use crate::error::BuildError;

/// A cache that survives and cannot be opened. The file is as it was.
#[derive(Debug)]
#[non_exhaustive]
pub enum SurviveError {
    /// The settings contradict each other.
    Settings(BuildError),
    /// Another process has it open.
    InUse {
        /// The file.
        path: PathBuf,
        /// What is known of the process.
        holder: String,
    },
    /// It is no cache: something else was given by mistake.
    Foreign(Corruption),
    /// A newer program made it.
    Newer(Corruption),
    /// It is shorter or longer than its header says, or its header or table of zones is damaged.
    Damaged(Corruption),
    /// It was made with another size, number of partitions or mean size of items.
    OtherShape(Corruption),
    /// The system refuses it.
    System {
        /// The file.
        path: PathBuf,
        /// What was to be done.
        action: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

impl fmt::Display for SurviveError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(error) => error.fmt(out),
            Self::InUse { path, holder } => {
                write!(out, "{} is open in {holder}: end it, or give another file", path.display())
            }
            Self::Foreign(what) => {
                write!(out, "{what}: this is no cache. Give another file, or allow a reset to replace it")
            }
            Self::Newer(what) => {
                write!(
                    out,
                    "{what}: a newer version made it. Use that version, or allow a reset to begin empty"
                )
            }
            Self::Damaged(what) => write!(out, "{what}: allow a reset to begin with an empty cache"),
            Self::OtherShape(what) => {
                write!(
                    out,
                    "{what}: give the settings with which it was made, or allow a reset to begin empty"
                )
            }
            Self::System { path, action, error } => {
                write!(out, "cannot {action} {}: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for SurviveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Settings(error) => Some(error),
            Self::System { error, .. } => Some(error),
            Self::Foreign(what) | Self::Newer(what) | Self::Damaged(what) | Self::OtherShape(what) => {
                Some(what)
            }
            Self::InUse { .. } => None,
        }
    }
}
