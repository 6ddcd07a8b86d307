//! [`ClientError`]: why a request has no answer.

use std::fmt;
use std::io;

/// Why a request has no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// No reply came before the deadline. A write may have been executed or not.
    Unanswered,
    /// The key and value, or the value that is stored, are larger than a datagram: use a connection.
    TooLarge,
    /// The item is not a string, or the store has failed.
    Failed,
    /// The socket has failed.
    Io(io::Error),
}

impl fmt::Display for ClientError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unanswered => out.write_str("the server did not answer before the deadline"),
            Self::TooLarge => out.write_str("the item is larger than a datagram; use a connection"),
            Self::Failed => out.write_str("the item is not a string, or the server's store has failed"),
            Self::Io(source) => write!(out, "the socket failed: {source}"),
        }
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(source) => Some(source),
            Self::Unanswered | Self::TooLarge | Self::Failed => None,
        }
    }
}

impl From<io::Error> for ClientError {
    fn from(source: io::Error) -> Self {
        Self::Io(source)
    }
}
