//! Tags of 4 to 15 bits, four to a bucket, packed without gaps and compared four at once.
//!
//! A bucket takes `4 * width` bits, so it begins at a multiple of four bits and, with at most 60 bits, is always
//! inside one unaligned 64-bit load. Seven bytes of padding keep the last load inside the allocation.

use alluvium_base::Corruption;

use crate::cuckoo::envelope::{HEADER_LEN, Header, Kind, word};
use crate::prefetch::prefetch_element;

const WORD_LEN: usize = 8;
const PADDING_LEN: usize = WORD_LEN - 1;

/// The tags of all buckets. A tag of 0 is an empty slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PackedTags {
    bytes: Box<[u8]>,
    /// One in each lane.
    ones: u64,
    width: u32,
    buckets: u32,
}

/// Bytes of `buckets` buckets without padding: `width / 2` each.
pub(crate) fn packed_len(buckets: u32, width: u32) -> usize {
    (buckets as usize * width as usize).div_ceil(2)
}

impl PackedTags {
    /// From the packed bytes.
    ///
    /// # Panics
    /// When `packed` is not [`packed_len`] long.
    pub fn from_packed(packed: &[u8], buckets: u32, width: u32) -> Self {
        assert_eq!(packed.len(), packed_len(buckets, width));
        let mut bytes = Vec::with_capacity(packed.len() + PADDING_LEN);
        bytes.extend_from_slice(packed);
        bytes.resize(packed.len() + PADDING_LEN, 0);
        Self { bytes: bytes.into(), ones: ones(width), width, buckets }
    }

    /// From the payload of a stored structure.
    ///
    /// # Errors
    /// A corruption when the bits that fill up the last byte are not 0.
    pub fn from_stored(kind: &Kind, header: &Header, payload: &[u8]) -> Result<Self, Corruption> {
        let fills_last_byte = header.buckets.is_multiple_of(2) || header.tag_bits.is_multiple_of(2);
        if let Some(&last) = payload.last()
            && !fills_last_byte
            && last >> 4 != 0
        {
            let offset = HEADER_LEN + payload.len() - 1;
            return Err(kind.corruption(offset, "four zero bits at the end", format!("{last:02x}")));
        }
        Ok(Self::from_packed(payload, header.buckets, header.tag_bits))
    }

    /// Packs the buckets that `words` yields, each with its four tags in its low `4 * width` bits.
    pub fn pack(words: impl ExactSizeIterator<Item = u64>, width: u32) -> Self {
        let buckets = words.len() as u32;
        let mut bytes = vec![0u8; packed_len(buckets, width) + PADDING_LEN];
        for (bucket, packed) in (0..).zip(words) {
            let (byte, shift) = position(bucket, width);
            let target = &mut bytes[byte..byte + WORD_LEN];
            let merged = word(target) | packed << shift;
            target.copy_from_slice(&merged.to_le_bytes());
        }
        Self { bytes: bytes.into(), ones: ones(width), width, buckets }
    }

    /// The bytes without padding.
    pub fn packed(&self) -> &[u8] {
        &self.bytes[..packed_len(self.buckets, self.width)]
    }

    #[inline(always)]
    pub fn buckets(&self) -> u32 {
        self.buckets
    }

    #[inline(always)]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The four tags of `bucket` in the low `4 * width` bits; the bits above belong to other buckets.
    #[inline(always)]
    fn load(&self, bucket: u32) -> u64 {
        let (byte, shift) = position(bucket, self.width);
        word(&self.bytes[byte..byte + WORD_LEN]) >> shift
    }

    /// The ways of `bucket` that hold `tag`, as the top bits of their lanes.
    #[inline(always)]
    pub fn matches(&self, bucket: u32, tag: u16) -> u64 {
        self.zero_lanes(self.load(bucket) ^ (u64::from(tag) * self.ones))
    }

    /// The ways of `bucket` whose tag agrees with `tag` in all but its `ignored_bits` low bits, fewer than the width.
    #[inline(always)]
    pub fn matches_above(&self, bucket: u32, tag: u16, ignored_bits: u32) -> u64 {
        let compared = self.ones * u64::from(u16::MAX << ignored_bits & ((1 << self.width) - 1));
        self.zero_lanes((self.load(bucket) ^ (u64::from(tag) * self.ones)) & compared)
    }

    /// The lanes that are 0, as their top bits.
    ///
    /// Exact: adding all ones but the top bit carries into the top bit unless the low bits are all zero, and never
    /// out of the lane.
    #[inline(always)]
    fn zero_lanes(&self, word: u64) -> u64 {
        let tops = self.ones << (self.width - 1);
        let lows = tops - self.ones;
        !(((word & lows) + lows) | word) & tops
    }

    /// A set of lanes as a set of ways: bit `way`.
    #[inline(always)]
    pub fn ways(&self, lanes: u64) -> u8 {
        let gap = self.width - 1;
        let first = lanes >> gap;
        (first & 1 | first >> gap & 2 | first >> (2 * gap) & 4 | first >> (3 * gap) & 8) as u8
    }

    /// The tag in `way` of `bucket`, 0 if empty.
    #[inline]
    pub fn tag(&self, bucket: u32, way: u32) -> u16 {
        (self.load(bucket) >> (way * self.width) & ((1 << self.width) - 1)) as u16
    }

    #[inline(always)]
    pub fn prefetch(&self, bucket: u32) {
        prefetch_element(&self.bytes, position(bucket, self.width).0);
    }
}

/// The byte in which `bucket` begins, and the bit within it.
#[inline(always)]
fn position(bucket: u32, width: u32) -> (usize, u32) {
    let nibble = bucket as usize * width as usize;
    (nibble / 2, (nibble % 2) as u32 * 4)
}

fn ones(width: u32) -> u64 {
    1 | 1 << width | 1 << (2 * width) | 1 << (3 * width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn packed_tags_read_and_compare_as_an_array_does(
            width in 4u32..=15,
            tags in prop::collection::vec(any::<[u16; 4]>(), 1..40),
            other: u16,
        ) {
            let mask = (1u16 << width) - 1;
            let tags: Vec<[u16; 4]> = tags.iter().map(|ways| ways.map(|tag| tag & mask)).collect();
            let words: Vec<u64> = tags
                .iter()
                .map(|ways| (0..4).map(|way| u64::from(ways[way]) << (way as u32 * width)).sum())
                .collect();
            let packed = PackedTags::pack(words.into_iter(), width);
            prop_assert_eq!(&PackedTags::from_packed(packed.packed(), packed.buckets(), width), &packed);
            for (bucket, ways) in (0u32..).zip(&tags) {
                for sought in ways.iter().copied().chain([other & mask, 0, 1, mask]) {
                    let expected: u8 = (0..4).map(|way| u8::from(ways[way] == sought) << way).sum();
                    prop_assert_eq!(packed.ways(packed.matches(bucket, sought)), expected);
                    let high = |tag: u16| tag >> 3;
                    let expected: u8 = (0..4).map(|way| u8::from(high(ways[way]) == high(sought)) << way).sum();
                    prop_assert_eq!(packed.ways(packed.matches_above(bucket, sought, 3)), expected);
                }
                for way in 0..4 {
                    prop_assert_eq!(packed.tag(bucket, way), ways[way as usize]);
                }
            }
        }
    }
}
