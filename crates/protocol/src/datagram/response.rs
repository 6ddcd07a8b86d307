//! [`Response`]: what came of one request.

use super::content::Element;
use super::{padded, u16_at, u32_at};

/// Bytes of a response before its value.
pub const RESPONSE_HEAD_BYTES: usize = 8;

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// It was done; a get has found the value.
    Done = 0,
    /// There is no item.
    Absent = 1,
    /// There is an item already.
    Exists = 2,
    /// The value is larger than a datagram, or than the store takes: it can only be had over a connection.
    TooLarge = 3,
    /// The value had no room beside those of the other requests of the datagram: ask for it in another one.
    NoRoom = 4,
    /// The store has failed, or the item is not a string.
    Failed = 5,
}

impl Status {
    fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            0 => Self::Done,
            1 => Self::Absent,
            2 => Self::Exists,
            3 => Self::TooLarge,
            4 => Self::NoRoom,
            5 => Self::Failed,
            _ => return None,
        })
    }
}

/// What came of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    /// What came of it.
    pub status: Status,
    /// That of the request.
    pub opaque: u32,
    /// The value of a get that was done; otherwise empty.
    pub value: &'a [u8],
}

impl<'a> Response<'a> {
    /// A response without a value.
    pub fn bare(status: Status, opaque: u32) -> Self {
        Self { status, opaque, value: &[] }
    }

    /// Bytes that it takes in a datagram.
    #[inline]
    pub fn bytes(&self) -> usize {
        RESPONSE_HEAD_BYTES + padded(self.value.len())
    }

    /// Writes it to `out`, which has exactly [`Response::bytes`].
    #[inline]
    pub(super) fn encode(&self, out: &mut [u8]) {
        let (head, body) = out.split_at_mut(RESPONSE_HEAD_BYTES);
        head[0] = self.status as u8;
        head[1] = 0;
        head[2..4].copy_from_slice(&(self.value.len() as u16).to_le_bytes());
        head[4..8].copy_from_slice(&self.opaque.to_le_bytes());
        let (value, padding) = body.split_at_mut(self.value.len());
        value.copy_from_slice(self.value);
        padding.fill(0);
    }
}

impl<'a> Element<'a> for Response<'a> {
    #[inline]
    fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, body) = bytes.split_at_checked(RESPONSE_HEAD_BYTES)?;
        let status = Status::of(head[0])?;
        let value_len = usize::from(u16_at(head, 2));
        let is_in_order = head[1] == 0 && (value_len == 0 || status == Status::Done);
        let (body, rest) = body.split_at_checked(padded(value_len))?;
        let response = Self { status, opaque: u32_at(head, 4), value: body.get(..value_len)? };
        is_in_order.then_some((response, rest))
    }
}
