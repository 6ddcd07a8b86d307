//! [`BuildMismatch`]: why a part of a bulk build does not fit.

use std::fmt;

use crate::error::Error;

/// Why a part of a bulk build does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildMismatch {
    /// The file or directory that does not fit.
    pub file: String,
    /// In which respect.
    pub part: BuildPart,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
}

/// In which respect a part of a bulk build does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildPart {
    /// The file `BUILD` or `SHARD` is missing, or is there too early.
    Manifest,
    /// The identifier of the job.
    Job,
    /// The name of the keyspace.
    Keyspace,
    /// The order of the items.
    Order,
    /// The hash key. It is secret, so what was expected and found are fingerprints.
    HashKey,
    /// The number of shards.
    ShardCount,
    /// The number of a shard.
    Shard,
    /// The plan.
    Plan,
    /// The hashes of a table.
    Range,
    /// The set of files.
    Files,
    /// The length of a file.
    Size,
    /// The checksum of a file.
    Checksum,
    /// The shard of a key.
    Key,
}

impl fmt::Display for BuildMismatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, part, expected, found } = self;
        write!(out, "{file}: {part}: expected {expected}, found {found}")
    }
}

impl fmt::Display for BuildPart {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Manifest => "file that completes it",
            Self::Job => "identifier of the job",
            Self::Keyspace => "keyspace",
            Self::Order => "order",
            Self::HashKey => "fingerprint of the hash key",
            Self::ShardCount => "number of shards",
            Self::Shard => "shard",
            Self::Plan => "plan",
            Self::Range => "range of hashes",
            Self::Files => "files",
            Self::Size => "length",
            Self::Checksum => "checksum",
            Self::Key => "shard of a key",
        })
    }
}

impl BuildPart {
    /// The error that `file` does not fit in this respect.
    pub(crate) fn mismatch(
        self,
        file: impl Into<String>,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Error {
        let (expected, found) = (expected.to_string(), found.to_string());
        Error::Build(Box::new(BuildMismatch { file: file.into(), part: self, expected, found }))
    }

    /// Refuses `file` if what was found is not what was expected.
    pub(crate) fn check<T: PartialEq + fmt::Display>(
        self,
        file: &str,
        expected: T,
        found: T,
    ) -> Result<(), Error> {
        if expected == found { Ok(()) } else { Err(self.mismatch(file, expected, found)) }
    }
}
