//! [`LargeValue`]: the content of an item of kind reference.

use alluvium_base::{Corruption, varint};
use smallvec::SmallVec;

use super::reference::Reference;
use crate::item::Item;
use crate::limits::VALUE_BYTES_MAX;

/// Maximum records of one value.
pub(crate) const PIECES_MAX: usize = 24;
/// Maximum bytes of a value's end that are stored in the item. With a key of 1024 bytes and 24 references of 25 bytes
/// an item still fits in half a page.
pub(crate) const TAIL_BYTES_MAX: usize = 384;

/// First byte if a value is more than one record: no blob file has the number 0.
const PIECES_MARK: u8 = 0;

/// Records of a value, in order.
pub(crate) type Pieces = SmallVec<[Reference; 1]>;

/// The location of a large item's value: in consecutive records of blob files, and the last bytes in the item itself.
/// Stored as the value of an item of kind reference: as a [`Reference`] alone if the value is one record, otherwise as
///
/// ```text
/// 0              1 byte
/// records        varint    1 to 24
/// references     as many
/// end            the last bytes of the value, to the end of the item
/// ```
///
/// Each record contains the whole key, so that a collection finds the item of any record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LargeValue<'a> {
    pub pieces: Pieces,
    pub tail: &'a [u8],
}

impl<'a> LargeValue<'a> {
    pub fn encode(&self) -> Vec<u8> {
        if let ([reference], []) = (&self.pieces[..], self.tail) {
            return reference.encode();
        }
        let mut out = vec![PIECES_MARK];
        varint::write(self.pieces.len() as u64, &mut out);
        self.pieces.iter().for_each(|piece| piece.encode_to(&mut out));
        out.extend_from_slice(self.tail);
        out
    }

    /// Returns `None` if this program cannot have written the bytes.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        if bytes.first() != Some(&PIECES_MARK) {
            let pieces = SmallVec::from_buf([Reference::decode(bytes)?]);
            return Some(Self { pieces, tail: &[] });
        }
        let (count, taken) = varint::read(&bytes[1..])?;
        let mut tail = &bytes[1 + taken..];
        let mut pieces = Pieces::new();
        if count == 0 || count > PIECES_MAX as u64 {
            return None;
        }
        for _ in 0..count {
            let (piece, taken) = Reference::read(tail)?;
            pieces.push(piece);
            tail = &tail[taken..];
        }
        let large = Self { pieces, tail };
        let key_len = large.pieces[0].key_len;
        let is_sound = large.len() <= VALUE_BYTES_MAX as u64
            && large.pieces.iter().all(|piece| piece.key_len == key_len)
            && (large.pieces.len() > 1 || !large.tail.is_empty());
        is_sound.then_some(large)
    }

    /// Decodes the content of an item of kind reference.
    pub fn required(item: &Item<'a>) -> Result<Self, Corruption> {
        Self::decode(item.value).ok_or_else(|| {
            Corruption::new("an item", 0, "references to blob files", format!("{:02x?}", item.value))
        })
    }

    /// The record of a value that is exactly one record.
    pub fn single(&self) -> Option<Reference> {
        match (&self.pieces[..], self.tail) {
            ([reference], []) => Some(*reference),
            _ => None,
        }
    }

    /// Bytes of the value.
    pub fn len(&self) -> u64 {
        self.pieces.iter().map(|piece| u64::from(piece.value_len)).sum::<u64>() + self.tail.len() as u64
    }

    /// Bytes of the key and the value.
    pub fn content_len(&self) -> u64 {
        u64::from(self.pieces[0].key_len) + self.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use alluvium_base::BlobId;

    use super::*;

    fn reference() -> impl Strategy<Value = Reference> {
        (1..u64::MAX, 0..1u64 << 56, 0u32..=1_000_000).prop_map(|(file, body, value_len)| Reference {
            file: BlobId(file),
            body,
            key_len: 7,
            value_len,
        })
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(
            pieces in vec(reference(), 1..=PIECES_MAX),
            tail in vec(any::<u8>(), 0..=TAIL_BYTES_MAX),
        ) {
            let large = LargeValue { pieces: pieces.into(), tail: &tail };
            let bytes = large.encode();
            prop_assert_eq!(LargeValue::decode(&bytes), Some(large.clone()));
            prop_assert!(bytes.len() <= 600 + 2 + TAIL_BYTES_MAX);
            // A cut first shortens the end, which has no length of its own: the length of the item determines it.
            for cut in 0..bytes.len() - tail.len() {
                let found = LargeValue::decode(&bytes[..cut]);
                prop_assert!(found.is_none(), "{cut}");
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let marked = [&[PIECES_MARK], &bytes[..]].concat();
            for bytes in [&bytes, &marked] {
                if let Some(large) = LargeValue::decode(bytes) {
                    let encoded = large.encode();
                    prop_assert_eq!(LargeValue::decode(&encoded), Some(large));
                }
            }
        }
    }

    #[test]
    fn pieces_have_one_key_and_no_more_than_a_value() {
        let piece = |key_len, value_len| Reference { file: BlobId(1), body: 64, key_len, value_len };
        for (pieces, is_sound) in [
            (vec![piece(3, 10), piece(3, 20)], true),
            (vec![piece(3, 10), piece(4, 20)], false),
            (vec![piece(3, 1 << 25); 2], true),
            (vec![piece(3, 1 << 25); 3], false),
            (vec![piece(3, 1); PIECES_MAX + 1], false),
        ] {
            let large = LargeValue { pieces: pieces.into(), tail: &[] };
            assert_eq!(LargeValue::decode(&large.encode()).is_some(), is_sound, "{large:?}");
        }
    }
}
