//! How much one peer may make the parser hold.

/// Bounds on one request frame. A frame that crosses one is refused with a [`ProtocolError`](crate::ProtocolError) as
/// soon as the crossing can be seen, before memory is spent on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum length of an argument, in bytes. Default 64 MiB, the largest value of the store (Redis:
    /// `proto-max-bulk-len`, 512 MiB).
    pub bulk_bytes_max: usize,
    /// Maximum number of arguments in one frame, including the command's name. Default 1,048,576, as in Redis before 7.
    pub arguments_max: usize,
    /// Maximum length of an inline request without its line end, in bytes. Default 64 KiB, as in Redis.
    pub inline_bytes_max: usize,
    /// Maximum length of a frame, in bytes, never above [`Limits::FRAME_BYTES_MAX`]. Default 256 MiB.
    pub frame_bytes_max: usize,
}

impl Limits {
    /// The longest frame that can be allowed: positions inside a frame are kept in 32 bits.
    pub const FRAME_BYTES_MAX: usize = u32::MAX as usize;
    /// Maximum number of arguments in a frame of a peer that is not trusted, as in Redis.
    pub const UNTRUSTED_ARGUMENTS_MAX: usize = 10;
    /// Maximum length of an argument of a peer that is not trusted, in bytes, as in Redis.
    pub const UNTRUSTED_BULK_BYTES_MAX: usize = 16 << 10;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bulk_bytes_max: 64 << 20,
            arguments_max: 1 << 20,
            inline_bytes_max: 64 << 10,
            frame_bytes_max: 256 << 20,
        }
    }
}
