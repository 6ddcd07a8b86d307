//! Error lines, word for word those of memcached 1.6.18.

/// A line that reports an error, from the parser or from the server that carries out a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The command is unknown, or its number of words is wrong.
    Unknown,
    /// A key is longer than [`Key::BYTES_MAX`](super::Key::BYTES_MAX) or holds control characters, or a number is
    /// none.
    BadFormat,
    /// The data block does not end in CR LF where its length says.
    BadDataChunk,
    /// The value is longer than [`Limits::value_bytes_max`](super::Limits).
    TooLarge,
    /// The expiry time of `gat`, `gats`, `touch` or `flush_all` is no number.
    InvalidExpiry,
    /// The amount of `incr` or `decr` is no number.
    InvalidDelta,
    /// `delete` with other words than `0` and `noreply` after its key.
    DeleteUsage,
    /// `stats detail` without `on`, `off` or `dump`.
    DetailUsage,
    /// `stats cachedump` without its two numbers.
    BadCommandLine,
    /// `stats cachedump` of a slab class that cannot exist.
    IllegalSlab,
    /// A flag of `mg` or `ms` occurs twice, or its byte is 127 or above.
    DuplicateFlag,
    /// An unknown flag of `mg` or `ms`.
    InvalidFlag,
    /// Any flag of `md` or `ma` that is unknown, repeated or has a bad token.
    InvalidOrDuplicateFlag,
    /// The key is not base64 although flag `b` says so.
    KeyEncoding,
    /// The token of flag `C`, `E`, `N`, `R` or `T` is no number.
    BadToken,
    /// The token of flag `M` is not one byte.
    ModeLength,
    /// The mode of `ms` is none of `E`, `A`, `P`, `R`, `S`.
    StoreMode,
    /// The mode of `ma` is none of `I`, `+`, `D`, `-`.
    ArithmeticMode,
    /// The token of flag `J` is no number.
    InvalidInitial,
    /// The token of flag `D` is no number.
    InvalidMetaDelta,
    /// More than 17 flags of `mg`.
    GetFlagsTooLong,
    /// More than 17 flags of `md` or `ma`, or more than 16 of `ms`.
    FlagsTooLong,
    /// Flag `O` and its token are longer than 32 bytes.
    OpaqueTooLong,
    /// A line longer than its limit. Closes the connection without a line, as in memcached.
    LineTooLong,
    /// The line is a request of HTTP, perhaps sent by a browser that was tricked. Closes the connection without a line.
    Http,
    /// The value to count with is no number. Found by the server.
    NonNumeric,
    /// There is no memory for the value of a storage command. Found by the server.
    OutOfMemoryStoring,
    /// There is no memory for another purpose. Found by the server.
    OutOfMemory,
    /// `shutdown` is not enabled. Found by the server.
    ShutdownDisabled,
    /// `shutdown` with another word than `graceful`. Found by the server, because a disabled command wins.
    ShutdownMode,
    /// The client has not given the password. Found by the server.
    Unauthenticated,
    /// The client has given a wrong password. Found by the server.
    AuthenticationFailure,
    /// `flush_all` is not enabled. Found by the server.
    FlushDisabled,
    /// `stats cachedump` is not enabled. Found by the server.
    CacheDumpDisabled,
}

impl Error {
    /// The line without its CR LF; empty where the connection is closed in silence.
    pub fn text(self) -> &'static str {
        match self {
            Self::Unknown => "ERROR",
            Self::BadFormat => "CLIENT_ERROR bad command line format",
            Self::BadDataChunk => "CLIENT_ERROR bad data chunk",
            Self::TooLarge => "SERVER_ERROR object too large for cache",
            Self::InvalidExpiry => "CLIENT_ERROR invalid exptime argument",
            Self::InvalidDelta => "CLIENT_ERROR invalid numeric delta argument",
            Self::DeleteUsage => "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]",
            Self::DetailUsage => "CLIENT_ERROR usage: stats detail on|off|dump",
            Self::BadCommandLine => "CLIENT_ERROR bad command line",
            Self::IllegalSlab => "CLIENT_ERROR Illegal slab id",
            Self::DuplicateFlag => "CLIENT_ERROR duplicate flag",
            Self::InvalidFlag => "CLIENT_ERROR invalid flag",
            Self::InvalidOrDuplicateFlag => "CLIENT_ERROR invalid or duplicate flag",
            Self::KeyEncoding => "CLIENT_ERROR error decoding key",
            Self::BadToken => "CLIENT_ERROR bad token in command line format",
            Self::ModeLength => "CLIENT_ERROR incorrect length for M token",
            Self::StoreMode => "CLIENT_ERROR invalid mode for ms M token",
            Self::ArithmeticMode => "CLIENT_ERROR invalid mode for ma M token",
            Self::InvalidInitial => "CLIENT_ERROR invalid numeric initial value",
            Self::InvalidMetaDelta => "CLIENT_ERROR invalid numeric delta value",
            Self::GetFlagsTooLong => "CLIENT_ERROR options flags are too long",
            Self::FlagsTooLong => "CLIENT_ERROR options flags too long",
            Self::OpaqueTooLong => "CLIENT_ERROR opaque token too long",
            Self::LineTooLong | Self::Http => "",
            Self::NonNumeric => "CLIENT_ERROR cannot increment or decrement non-numeric value",
            Self::OutOfMemoryStoring => "SERVER_ERROR out of memory storing object",
            Self::OutOfMemory => "SERVER_ERROR out of memory",
            Self::ShutdownDisabled => "ERROR: shutdown not enabled",
            Self::ShutdownMode => "CLIENT_ERROR invalid shutdown mode",
            Self::Unauthenticated => "CLIENT_ERROR unauthenticated",
            Self::AuthenticationFailure => "CLIENT_ERROR authentication failure",
            Self::FlushDisabled => "CLIENT_ERROR flush_all not allowed",
            Self::CacheDumpDisabled => "CLIENT_ERROR stats cachedump not allowed",
        }
    }

    /// Whether the connection must be closed, what follows having no framing.
    pub fn closes(self) -> bool {
        matches!(self, Self::LineTooLong | Self::Http)
    }
}
