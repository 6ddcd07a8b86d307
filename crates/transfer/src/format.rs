//! [`Format`]: how items are written down.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// How items are written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line.
    #[default]
    JsonLines,
    /// Comma-separated values (RFC 4180) under a header.
    Csv,
    /// Frames with checksums: the smallest and fastest format, and the only one that detects damage.
    Binary,
}

/// A name that no format has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownFormat(String);

impl fmt::Display for UnknownFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "no format is named {:?}: use jsonl, csv or binary", self.0)
    }
}

impl std::error::Error for UnknownFormat {}

impl Format {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::JsonLines, Self::Csv, Self::Binary];

    /// Its name: `jsonl`, `csv` or `binary`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::JsonLines => "jsonl",
            Self::Csv => "csv",
            Self::Binary => "binary",
        }
    }

    /// Whether files describe keyspaces ([`crate::KeyspaceHead`]).
    pub const fn carries_keyspaces(self) -> bool {
        !matches!(self, Self::Csv)
    }

    /// The format for the extension of a file's name: `.jsonl`, `.ndjson`, `.csv` or `.bin`.
    pub fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            "csv" => Some(Self::Csv),
            "bin" => Some(Self::Binary),
            _ => None,
        }
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let named = Self::ALL.into_iter().find(|format| format.name() == name);
        named.ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
