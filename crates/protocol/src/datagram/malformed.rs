//! [`Malformed`]: why a datagram is dropped.

use std::fmt;

/// Why a datagram is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It has fewer bytes than a header, or than its header says.
    Short,
    /// It is of another protocol or version.
    Foreign,
    /// A length or a number in it is wrong.
    Invalid,
}

impl fmt::Display for Malformed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Short => "a datagram is cut off",
            Self::Foreign => "a datagram is of another protocol",
            Self::Invalid => "a datagram has a wrong length or number",
        })
    }
}

impl std::error::Error for Malformed {}
