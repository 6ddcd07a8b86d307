//! The format of an item in a zone.
//!
//! ```text
//!  word 0    [ 1 | extras? | 0:13 | key length:17 | value length:32 ]
//!  word 1    expiry in milliseconds since 1970, 0 for never     where "extras?" is set
//!  word 2    client flags                                       where "extras?" is set
//!  then      key bytes, value bytes, zeros up to a multiple of 16
//! ```
//!
//! Numbers are little-endian.

use alluvium_base::checksum::checksum32;

use crate::item::{KEY_BYTES_MAX, Metadata};
use crate::memory::UNIT_BYTES;

use super::descriptor::{Descriptor, UNIT};

const IS_ITEM: u64 = 1 << 63;
const HAS_EXTRAS: u64 = 1 << 62;
const KEY_SHIFT: u32 = 32;
const KEY_BITS: u32 = 17;
const RESERVED: u64 = !(IS_ITEM | HAS_EXTRAS | ((1 << (KEY_SHIFT + KEY_BITS)) - 1));

/// Word of an item with its expiry, if it has extras.
pub(crate) const EXPIRY: usize = 1;
/// Maximum bytes of an item besides key and value.
pub(crate) const OVERHEAD_BYTES: usize = 3 * UNIT_BYTES;

/// The first word of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head(pub u64);

impl Head {
    /// `None` if the key is too long.
    pub fn new(key_len: usize, value_len: usize, metadata: Metadata) -> Option<Self> {
        let value_len = u32::try_from(value_len).ok()?;
        if key_len > KEY_BYTES_MAX {
            return None;
        }
        let extras = if metadata == Metadata::default() { 0 } else { HAS_EXTRAS };
        Some(Self(IS_ITEM | extras | (key_len as u64) << KEY_SHIFT | u64::from(value_len)))
    }

    /// The word, if an item can begin with it.
    pub fn parse(word: u64) -> Option<Self> {
        let head = Self(word);
        (word & IS_ITEM != 0 && word & RESERVED == 0 && head.key_len() <= KEY_BYTES_MAX).then_some(head)
    }

    pub fn key_len(self) -> usize {
        (self.0 >> KEY_SHIFT) as usize & ((1 << KEY_BITS) - 1)
    }

    pub fn value_len(self) -> usize {
        self.0 as u32 as usize
    }

    /// Whether the item has an expiry or flags.
    pub fn has_extras(self) -> bool {
        self.0 & HAS_EXTRAS != 0
    }

    /// Bytes before the key.
    pub fn key_start(self) -> usize {
        if self.has_extras() { OVERHEAD_BYTES } else { UNIT_BYTES }
    }

    /// Units of the item. Less than 2^29, so nothing overflows.
    pub fn units(self) -> usize {
        (self.key_start() + self.key_len() + self.value_len()).div_ceil(UNIT)
    }
}

/// An item, copied out of its zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredItem<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
    pub metadata: Metadata,
}

impl<'a> StoredItem<'a> {
    /// The item that `bytes` are, a number of whole units; `None` if they are none of this size.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let head = Head::parse(word(bytes, 0)?)?;
        if head.units() * UNIT != bytes.len() {
            return None;
        }
        let metadata = if head.has_extras() {
            Metadata { expires_at_ms: word(bytes, EXPIRY)?, flags: word(bytes, 2)? as u32 }
        } else {
            Metadata::default()
        };
        let (key, rest) = bytes.get(head.key_start()..)?.split_at_checked(head.key_len())?;
        Some(Self { key, value: rest.get(..head.value_len())?, metadata })
    }

    /// Replaces the contents of `bytes` by the item as it is stored.
    #[inline]
    pub fn write(self, head: Head, bytes: &mut Vec<u8>) {
        bytes.clear();
        bytes.extend_from_slice(&head.0.to_le_bytes());
        if head.has_extras() {
            bytes.extend_from_slice(&self.metadata.expires_at_ms.to_le_bytes());
            bytes.extend_from_slice(&u64::from(self.metadata.flags).to_le_bytes());
        }
        bytes.extend_from_slice(self.key);
        bytes.extend_from_slice(self.value);
        bytes.resize(bytes.len().next_multiple_of(UNIT), 0);
    }
}

#[inline]
fn word(bytes: &[u8], number: usize) -> Option<u64> {
    let bytes = bytes.get(number * UNIT_BYTES..)?.first_chunk()?;
    Some(u64::from_le_bytes(*bytes))
}

/// The checksum of an item under its descriptor.
#[inline]
pub(crate) fn checksum(bytes: &[u8], descriptor: Descriptor) -> u32 {
    checksum32(bytes, descriptor.seed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back() {
        let mut bytes = Vec::new();
        for key_len in [0, 1, 7, 8, 9, 300, KEY_BYTES_MAX] {
            for value_len in [0, 1, 15, 16, 17, 1000] {
                for metadata in [Metadata::default(), Metadata { expires_at_ms: 5, flags: 9 }] {
                    let (key, value) = (vec![1; key_len], vec![2; value_len]);
                    let item = StoredItem { key: &key, value: &value, metadata };
                    let head = Head::new(key_len, value_len, metadata).unwrap();
                    item.write(head, &mut bytes);
                    assert_eq!(bytes.len(), head.units() * UNIT);
                    assert_eq!(StoredItem::parse(&bytes), Some(item));
                    assert_eq!(StoredItem::parse(&bytes[..bytes.len() - 1]), None);
                }
            }
        }
        assert_eq!(Head::new(KEY_BYTES_MAX + 1, 0, Metadata::default()), None);
        assert_eq!(Head::parse(0), None);
        assert_eq!(StoredItem::parse(&[]), None);
    }
}
