//! Why a request cannot be understood.

use std::fmt;

/// A request that breaks the protocol. The stream has lost its framing: answer with `ERR ` and the text, then close.
///
/// `Display` gives the text of Redis 7.0.15, without the `ERR ` in front; variants that Redis lacks say so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The number after `*` is not a canonical integer, or above [`Limits::arguments_max`](crate::Limits).
    InvalidMultibulkLength,
    /// The number after `$` is not a canonical non-negative integer, or above
    /// [`Limits::bulk_bytes_max`](crate::Limits).
    InvalidBulkLength,
    /// The number after `*` is above [`Limits::UNTRUSTED_ARGUMENTS_MAX`](crate::Limits), and the peer is not trusted.
    UntrustedMultibulkLength,
    /// The number after `$` is above [`Limits::UNTRUSTED_BULK_BYTES_MAX`](crate::Limits), and the peer is not trusted.
    UntrustedBulkLength,
    /// An argument does not start with `$` but with this byte.
    ExpectedBulk(u8),
    /// An argument is not followed by CR LF. Redis skips the two bytes unchecked and loses its framing when they are
    /// something else.
    ExpectedLineEnd,
    /// An inline request is longer than [`Limits::inline_bytes_max`](crate::Limits).
    InlineTooLong,
    /// A quote of an inline request is not closed, or not followed by a space.
    UnbalancedQuotes,
    /// An inline request holds a NUL byte: binary data sent to a text protocol. Redis stops finding line ends there
    /// and reports a too big request once enough bytes have come.
    InlineNul,
    /// The frame is longer than [`Limits::frame_bytes_max`](crate::Limits). Redis closes the connection without a
    /// reply.
    FrameTooLong,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Protocol error: ")?;
        match self {
            Self::InvalidMultibulkLength => out.write_str("invalid multibulk length"),
            Self::InvalidBulkLength => out.write_str("invalid bulk length"),
            Self::UntrustedMultibulkLength => out.write_str("unauthenticated multibulk length"),
            Self::UntrustedBulkLength => out.write_str("unauthenticated bulk length"),
            Self::ExpectedBulk(byte) if byte.is_ascii_graphic() || *byte == b' ' => {
                write!(out, "expected '$', got '{}'", char::from(*byte))
            }
            Self::ExpectedBulk(byte) => write!(out, "expected '$', got '\\x{byte:02x}'"),
            Self::ExpectedLineEnd => out.write_str("expected CRLF after bulk data"),
            Self::InlineTooLong => out.write_str("too big inline request"),
            Self::UnbalancedQuotes => out.write_str("unbalanced quotes in request"),
            Self::InlineNul => out.write_str("NUL byte in inline request"),
            Self::FrameTooLong => out.write_str("request exceeds the frame limit"),
        }
    }
}

impl std::error::Error for ProtocolError {}
