//! [`Reference`]: where a blob file holds an item.

use alluvium_base::{Corruption, varint};

use super::frame::{BLOCK_BYTES, RECORD_HEADER_BYTES, body_bytes};
use crate::db::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::item::Item;

/// No blob file reaches this offset; keeps sums of offsets and lengths from overflowing.
const OFFSET_MAX: u64 = 1 << 56;

/// Where a blob file holds an item's key and value. Stored as the value of an item of kind reference:
///
/// ```text
/// file          varint   number of the blob file
/// body          varint   offset of the record's first chunk in the file
/// key length    varint
/// value length  varint
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub file: u64,
    pub body: u64,
    pub key_len: u32,
    pub value_len: u32,
}

impl Reference {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16);
        for number in [self.file, self.body, self.key_len.into(), self.value_len.into()] {
            varint::write(number, &mut out);
        }
        out
    }

    /// `None` when the bytes are no reference that this program could have written.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut position = 0;
        let mut next = || {
            let (number, taken) = varint::read(bytes.get(position..)?)?;
            position += taken;
            Some(number)
        };
        let (file, body, key_len, value_len) = (next()?, next()?, next()?, next()?);
        let is_sound = position == bytes.len()
            && body < OFFSET_MAX
            && key_len <= KEY_BYTES_MAX as u64
            && value_len <= VALUE_BYTES_MAX as u64
            && key_len + value_len > 0;
        is_sound.then_some(Self { file, body, key_len: key_len as u32, value_len: value_len as u32 })
    }

    /// The reference that an item carries; `None` for an item of another kind, or when its bytes are none.
    #[inline]
    pub fn of(item: &Item<'_>) -> Option<Self> {
        if item.is_reference() { Self::decode(item.value) } else { None }
    }

    /// The reference of an item of that kind.
    pub fn required(item: &Item<'_>) -> Result<Self, Corruption> {
        Self::decode(item.value).ok_or_else(|| {
            Corruption::new("an item", 0, "a reference to a blob file", format!("{:02x?}", item.value))
        })
    }

    /// Key and value together.
    pub fn content_len(&self) -> u64 {
        u64::from(self.key_len) + u64::from(self.value_len)
    }

    /// Where the record ends, at most.
    pub fn record_end(&self) -> u64 {
        let end = self.body + body_bytes(self.content_len());
        if self.body.is_multiple_of(BLOCK_BYTES) { end.next_multiple_of(BLOCK_BYTES) } else { end }
    }

    /// Bytes of the file that the record takes: what is live while the reference is.
    ///
    /// A body at the start of a block is taken for an aligned one, whose header and end take up to a block each.
    /// Counting that as live keeps files of little else from being emptied for nothing.
    pub fn stored_bytes(&self) -> u64 {
        let body = body_bytes(self.content_len());
        match self.body.is_multiple_of(BLOCK_BYTES) {
            true => BLOCK_BYTES + body.next_multiple_of(BLOCK_BYTES),
            false => RECORD_HEADER_BYTES as u64 + body,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            file: u64,
            body in 0..OFFSET_MAX,
            key_len in 0u32..=65_536,
            value_len in 1u32..=67_108_864,
        ) {
            let reference = Reference { file, body, key_len, value_len };
            let bytes = reference.encode();
            prop_assert_eq!(Reference::decode(&bytes), Some(reference));
            for cut in 0..bytes.len() {
                prop_assert_eq!(Reference::decode(&bytes[..cut]), None);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let _ = Reference::decode(&bytes);
        }
    }
}
