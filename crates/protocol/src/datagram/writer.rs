//! [`Writer`]: a datagram in a buffer of the caller.

use super::{HEADER_BYTES, Header, Request, Response};

/// How long a datagram becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// As long as its content.
    None,
    /// As long as others of about the same length, so that they form a train: a multiple of 64 bytes, or of 256 bytes
    /// where it has more than 256.
    Train,
    /// At least as long as this.
    To(usize),
}

impl Padding {
    /// The bytes of a datagram with `len` bytes of content, whatever the room.
    #[inline]
    pub fn end(self, len: usize) -> usize {
        match self {
            Self::None => len,
            Self::Train if len <= 256 => len.next_multiple_of(64),
            Self::Train => len.next_multiple_of(256),
            Self::To(bytes) => bytes,
        }
    }
}

/// Writes one datagram. What has no room is refused, and nothing is written of it.
#[derive(Debug)]
pub struct Writer<'b> {
    buffer: &'b mut [u8],
    len: usize,
    count: u8,
}

impl<'b> Writer<'b> {
    /// A datagram without content, in a buffer that has room for a header at least.
    ///
    /// # Panics
    /// When the buffer has not.
    pub fn new(buffer: &'b mut [u8]) -> Self {
        assert!(buffer.len() >= HEADER_BYTES, "room for a header");
        Self { buffer, len: HEADER_BYTES, count: 0 }
    }

    /// Goes on with a datagram of which `len` bytes and `count` elements were written, as [`Writer::state`] says.
    ///
    /// # Panics
    /// When the buffer is shorter.
    #[inline]
    pub fn resume(buffer: &'b mut [u8], (len, count): (usize, u8)) -> Self {
        assert!((HEADER_BYTES..=buffer.len()).contains(&len), "as it was left");
        Self { buffer, len, count }
    }

    /// Bytes and elements so far.
    #[inline]
    pub fn state(&self) -> (usize, u8) {
        (self.len, self.count)
    }

    /// Bytes that are left.
    #[inline]
    pub fn room(&self) -> usize {
        self.buffer.len() - self.len
    }

    /// Number of requests or responses so far.
    pub fn count(&self) -> u8 {
        self.count
    }

    /// Adds a request; returns `false` if it has no room.
    #[inline]
    pub fn push_request(&mut self, request: &Request<'_>) -> bool {
        self.push(request.bytes(), |out| request.encode(out))
    }

    /// Adds a response; returns `false` if it has no room.
    #[inline]
    pub fn push_response(&mut self, response: &Response<'_>) -> bool {
        self.push(response.bytes(), |out| response.encode(out))
    }

    /// Adds other bytes, such as a directory, that count as no element; returns `false` if they have no room.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> bool {
        let Some(out) = self.buffer[self.len..].get_mut(..bytes.len()) else { return false };
        out.copy_from_slice(bytes);
        self.len += bytes.len();
        true
    }

    #[inline]
    fn push(&mut self, bytes: usize, encode: impl FnOnce(&mut [u8])) -> bool {
        let Some(count) = self.count.checked_add(1) else { return false };
        let Some(out) = self.buffer[self.len..].get_mut(..bytes) else { return false };
        encode(out);
        self.len += bytes;
        self.count = count;
        true
    }

    /// Writes the header, whose count does not matter, and zeros as padding, as far as the buffer has room. Returns the
    /// number of bytes of the datagram.
    #[inline]
    pub fn finish(self, header: Header, padding: Padding) -> usize {
        let header = Header { count: self.count, ..header };
        self.buffer[..HEADER_BYTES].copy_from_slice(&header.encode(self.len as u16));
        let end = padding.end(self.len).clamp(self.len, self.buffer.len());
        self.buffer[self.len..end].fill(0);
        end
    }
}
