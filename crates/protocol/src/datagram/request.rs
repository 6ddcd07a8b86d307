//! [`Request`]: one operation on a key.

use super::content::Element;
use super::{padded, u16_at, u32_at};

/// Bytes of a request before its key.
pub const REQUEST_HEAD_BYTES: usize = 16;

/// What to do with a key. Each can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Operation {
    /// Returns the value.
    Get = 1,
    /// Sets the value, with an expiry or without.
    Set = 2,
    /// Sets the value if there is none. If it is repeated, the second response may say that there is one.
    Add = 3,
    /// Removes the item. If it is repeated, the second response may say that there is none.
    Delete = 4,
    /// Changes the expiry.
    Touch = 5,
    /// Says whether there is an item.
    Probe = 6,
}

impl Operation {
    fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Get,
            2 => Self::Set,
            3 => Self::Add,
            4 => Self::Delete,
            5 => Self::Touch,
            6 => Self::Probe,
            _ => return None,
        })
    }

    /// Whether it has a value.
    pub fn has_value(self) -> bool {
        matches!(self, Self::Set | Self::Add)
    }

    /// Whether it changes an item.
    pub fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::Probe)
    }
}

/// One operation on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// What to do.
    pub operation: Operation,
    /// The key.
    pub key: &'a [u8],
    /// The value of [`Operation::Set`] and [`Operation::Add`]; empty for others.
    pub value: &'a [u8],
    /// Chosen by the client; the response has the same.
    pub opaque: u32,
    /// Seconds until the item expires; 0 for never.
    pub expiry_s: u32,
}

impl Request<'_> {
    /// Bytes that it takes in a datagram.
    #[inline]
    pub fn bytes(&self) -> usize {
        REQUEST_HEAD_BYTES + padded(self.key.len() + self.value.len())
    }

    /// Writes it to `out`, which has exactly [`Request::bytes`].
    #[inline]
    pub(super) fn encode(&self, out: &mut [u8]) {
        let (head, body) = out.split_at_mut(REQUEST_HEAD_BYTES);
        head[0] = self.operation as u8;
        head[1] = 0;
        head[2..4].copy_from_slice(&(self.key.len() as u16).to_le_bytes());
        head[4..6].copy_from_slice(&(self.value.len() as u16).to_le_bytes());
        head[6..8].fill(0);
        head[8..12].copy_from_slice(&self.opaque.to_le_bytes());
        head[12..16].copy_from_slice(&self.expiry_s.to_le_bytes());
        let (key, rest) = body.split_at_mut(self.key.len());
        key.copy_from_slice(self.key);
        let (value, padding) = rest.split_at_mut(self.value.len());
        value.copy_from_slice(self.value);
        padding.fill(0);
    }
}

impl<'a> Element<'a> for Request<'a> {
    #[inline]
    fn read(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, body) = bytes.split_at_checked(REQUEST_HEAD_BYTES)?;
        let operation = Operation::of(head[0])?;
        let (key_len, value_len) = (usize::from(u16_at(head, 2)), usize::from(u16_at(head, 4)));
        let is_in_order = head[1] == 0 && u16_at(head, 6) == 0 && (value_len == 0 || operation.has_value());
        let (body, rest) = body.split_at_checked(padded(key_len + value_len))?;
        let (key, value) = body.split_at_checked(key_len)?;
        let request = Self {
            operation,
            key,
            value: value.get(..value_len)?,
            opaque: u32_at(head, 8),
            expiry_s: u32_at(head, 12),
        };
        is_in_order.then_some((request, rest))
    }
}
