//! [`Reference`]: the location of an item in a blob file.

use alluvium_base::BlobId;
use alluvium_base::varint;

use super::frame::{BLOCK_BYTES, RECORD_HEADER_BYTES, body_bytes};
use super::large_value::{LargeValue, Pieces};
use crate::item::Item;
use crate::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

/// No blob file reaches this offset. It keeps sums of offsets and lengths from overflowing.
const OFFSET_MAX: u64 = 1 << 56;

/// The location in a blob file of an item's key and value. Stored as the value of an item of kind reference:
///
/// ```text
/// file          varint   number of the blob file
/// body          varint   offset of the record's first chunk in the file
/// key length    varint
/// value length  varint
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub file: BlobId,
    pub body: u64,
    pub key_len: u32,
    pub value_len: u32,
}

impl Reference {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16);
        self.encode_to(&mut out);
        out
    }

    /// Appends the reference to `out`.
    pub fn encode_to(&self, out: &mut Vec<u8>) {
        for number in [self.file.0, self.body, self.key_len.into(), self.value_len.into()] {
            varint::write(number, out);
        }
    }

    /// Returns `None` if this program cannot have written the bytes as a reference.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        Self::read(bytes).filter(|(_, taken)| *taken == bytes.len()).map(|(reference, _)| reference)
    }

    /// The reference at the front of `bytes`, and its length. Files are numbered from 1.
    pub fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut position = 0;
        let mut next = || {
            let (number, taken) = varint::read(bytes.get(position..)?)?;
            position += taken;
            Some(number)
        };
        let (file, body, key_len, value_len) = (next()?, next()?, next()?, next()?);
        let is_sound = file > 0
            && body < OFFSET_MAX
            && key_len <= KEY_BYTES_MAX as u64
            && value_len <= VALUE_BYTES_MAX as u64
            && key_len + value_len > 0;
        let reference =
            Self { file: BlobId(file), body, key_len: key_len as u32, value_len: value_len as u32 };
        is_sound.then_some((reference, position))
    }

    /// The references in an item; none for an item of another kind, or if its bytes are invalid.
    #[inline]
    pub fn all_of(item: &Item<'_>) -> Pieces {
        if item.is_reference() { Self::all_of_large(item) } else { Pieces::new() }
    }

    #[cold]
    fn all_of_large(item: &Item<'_>) -> Pieces {
        LargeValue::decode(item.value).map(|large| large.pieces).unwrap_or_default()
    }

    /// Bytes of key and value together.
    pub fn content_len(&self) -> u64 {
        u64::from(self.key_len) + u64::from(self.value_len)
    }

    /// The end of the last chunk.
    pub fn body_end(&self) -> u64 {
        self.body + body_bytes(self.content_len())
    }

    /// The maximum end of the record.
    pub fn record_end(&self) -> u64 {
        let end = self.body_end();
        if self.body.is_multiple_of(BLOCK_BYTES) { end.next_multiple_of(BLOCK_BYTES) } else { end }
    }

    /// Bytes that the record takes in the file, which are live while the reference is.
    ///
    /// A body at the start of a block is assumed to be aligned; the header and the end of such a record take up to a
    /// block each. Counting these as live keeps files with few small items from being emptied for nothing.
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
            file in 1..u64::MAX,
            body in 0..OFFSET_MAX,
            key_len in 0u32..=65_536,
            value_len in 1u32..=67_108_864,
        ) {
            let reference = Reference { file: BlobId(file), body, key_len, value_len };
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
