//! [`Header`]: the beginning of each datagram.

use super::{Malformed, u16_at, u32_at};

/// Bytes of a header.
pub const HEADER_BYTES: usize = 16;

const MAGIC: u8 = 0xa1;
const VERSION: u8 = 1;

/// What a datagram has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Requests of a client.
    Requests = 0,
    /// Responses to all requests of a datagram, by their order.
    Responses = 1,
    /// A client asks for the directory.
    AskDirectory = 2,
    /// The directory; the cookie of the header is the client's.
    Directory = 3,
    /// Nothing was executed: the epoch of the header is another one. The client asks for the directory.
    Moved = 4,
    /// Nothing was executed: the cookie is not the client's. The client asks for the directory.
    NoCookie = 5,
}

impl Kind {
    fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Requests,
            1 => Self::Responses,
            2 => Self::AskDirectory,
            3 => Self::Directory,
            4 => Self::Moved,
            5 => Self::NoCookie,
            _ => return None,
        })
    }
}

/// The beginning of a datagram, without its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What follows.
    pub kind: Kind,
    /// The number of the directory by which the client has chosen the port; in replies, that of the server.
    pub epoch: u16,
    /// Proves that the client receives what is sent to its address.
    pub cookie: u32,
    /// Chosen by the client; the reply has the same.
    pub sequence: u32,
    /// Number of requests or responses.
    pub count: u8,
}

impl Header {
    /// The bytes of a header of a datagram of `length` bytes, those of the header included.
    pub fn encode(&self, length: u16) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = MAGIC;
        bytes[1] = VERSION;
        bytes[2..4].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.cookie.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[12] = self.count;
        bytes[13] = self.kind as u8;
        bytes[14..16].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    /// The header of a datagram, and what follows it up to its length.
    ///
    /// # Errors
    /// [`Malformed::Short`] and [`Malformed::Foreign`].
    #[inline]
    pub fn decode(datagram: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        if datagram.len() < HEADER_BYTES {
            return Err(Malformed::Short);
        }
        if datagram[0] != MAGIC || datagram[1] != VERSION {
            return Err(Malformed::Foreign);
        }
        let kind = Kind::of(datagram[13]).ok_or(Malformed::Foreign)?;
        let length = usize::from(u16_at(datagram, 14));
        let content = datagram.get(HEADER_BYTES..length).ok_or(Malformed::Short)?;
        let header = Self {
            kind,
            epoch: u16_at(datagram, 2),
            cookie: u32_at(datagram, 4),
            sequence: u32_at(datagram, 8),
            count: datagram[12],
        };
        Ok((header, content))
    }
}
