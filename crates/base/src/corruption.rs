//! The common part of every "these bytes are not what they should be" error.

use std::fmt;

/// Bytes that failed a check: where they are, what was expected there and what was found.
///
/// Carried by the errors of every crate that reads stored bytes; a corruption is always reported, never returned as
/// data and never a panic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corruption {
    /// Name of the file, or of the structure when the bytes came from memory.
    pub file: String,
    /// Byte offset of the damaged unit (page, record, block) in the file.
    pub offset: u64,
    /// What a sound unit holds here.
    pub expected: String,
    /// What was found instead.
    pub found: String,
}

impl Corruption {
    /// A corruption of the unit at `offset` of `file`.
    pub fn new(
        file: impl Into<String>,
        offset: u64,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        Self { file: file.into(), offset, expected: expected.into(), found: found.into() }
    }

    /// The same corruption seen from a containing file: `file` named, `base` added to the offset.
    pub fn within(mut self, file: &str, base: u64) -> Self {
        self.file = file.to_owned();
        self.offset += base;
        self
    }
}

impl fmt::Display for Corruption {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "corruption in {} at offset {}: expected {}, found {}",
            self.file, self.offset, self.expected, self.found
        )
    }
}

impl std::error::Error for Corruption {}
