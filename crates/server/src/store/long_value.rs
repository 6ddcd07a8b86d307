//! [`LongValue`]: a value that is read piece by piece.

use std::io::{self, Read};

use crate::store::{Found, Mark};

/// An item, or the value of a long string as a stream.
pub enum FoundOrLong<'a> {
    /// The item.
    Found(Found<'a>),
    /// A string whose value is not in memory.
    Long(LongValue),
}

/// The value of a string as it was when it was looked up, also if the key is written meanwhile.
pub struct LongValue {
    /// Set by memcached clients, and only returned to them.
    pub flags: u32,
    /// Milliseconds since 1970 from which on the item is absent; `None` if it does not expire.
    pub expires_at_ms: Option<u64>,
    /// What memcached's meta protocol has noted of it.
    pub mark: Mark,
    /// Number of its bytes.
    pub len: usize,
    /// Its bytes.
    pub bytes: Box<dyn Read>,
}

/// Bytes that a stream of a value holds: the store's buffer, and the piece that is sent.
pub(crate) const STREAM_BYTES: usize = 320 << 10;

impl LongValue {
    /// Appends all bytes to `out`.
    pub(crate) fn read_into(self, out: &mut Vec<u8>) -> io::Result<()> {
        let read = self.bytes.take(self.len as u64).read_to_end(out)?;
        if read == self.len { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}
