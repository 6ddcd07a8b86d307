//! The filter itself: built from a table, queried for slots.

use std::ops::Range;

use alluvium_base::KeyHash;

use crate::cuckoo::CuckooTable;
use crate::cuckoo::placement::{Placement, TAG_BITS, WAYS};
use crate::packed_tags::PackedTags;

/// The narrowest tags, in bits.
pub const TAG_BITS_MIN: u32 = 4;

/// The widest tags, in bits: those of the cuckoo table.
pub const TAG_BITS_MAX: u32 = TAG_BITS;

/// The tags of a frozen cuckoo table, in its slot order. Immutable. See the module documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashFilter {
    tags: PackedTags,
    len: u32,
}

/// The slots that may hold a key: up to eight slot numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct FilterCandidates {
    /// Bit `4 * side + way` is set for a match in `buckets[side]`.
    ways: u8,
    buckets: [u32; 2],
}

impl Iterator for FilterCandidates {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.ways == 0 {
            return None;
        }
        let bit = self.ways.trailing_zeros();
        self.ways &= self.ways - 1;
        Some(self.buckets[(bit / WAYS) as usize & 1] * WAYS + bit % WAYS)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.ways.count_ones() as usize;
        (count, Some(count))
    }
}

impl ExactSizeIterator for FilterCandidates {}

impl HashFilter {
    /// The filter of `table` with tags of `tag_bits` bits: the low bits of the table's tags, slot for slot.
    ///
    /// The table must be frozen: an entry that is moved meanwhile may be missed. Runs at memory speed, a few
    /// nanoseconds a bucket.
    ///
    /// # Panics
    /// When `tag_bits` is not in [`TAG_BITS_MIN`]`..=`[`TAG_BITS_MAX`].
    pub fn from_table(table: &CuckooTable, tag_bits: u32) -> Self {
        assert!(
            (TAG_BITS_MIN..=TAG_BITS_MAX).contains(&tag_bits),
            "a hash filter has tags of {TAG_BITS_MIN} to {TAG_BITS_MAX} bits, not {tag_bits}"
        );
        let mut len = 0;
        let words = table.tag_words().map(|word| {
            (0..WAYS).fold(0, |packed, way| {
                let tag = (word >> (16 * way)) as u16;
                len += u32::from(tag != 0);
                let stored = if tag == 0 { 0 } else { narrow(tag, tag_bits) };
                packed | u64::from(stored) << (way * tag_bits)
            })
        });
        let tags = PackedTags::pack(words, tag_bits);
        Self { tags, len }
    }

    pub(super) fn from_parts(tags: PackedTags, len: u32) -> Self {
        Self { tags, len }
    }

    pub(super) fn tags(&self) -> &PackedTags {
        &self.tags
    }

    /// The slots whose tag is that of the key with `hash`; none if the key is certainly absent.
    ///
    /// Both buckets follow from the whole hash, so narrow stored tags do not affect the placement.
    #[inline(always)]
    pub fn candidates(&self, hash: KeyHash) -> FilterCandidates {
        let placement = Placement::of(hash, self.tags.buckets());
        let tag = narrow(placement.tag, self.tags.width());
        let [primary, other] = placement.buckets;
        let first = self.tags.matches(primary, tag);
        let second = self.tags.matches(other, tag);
        if first | second == 0 {
            return FilterCandidates::default();
        }
        let second = if primary == other { 0 } else { second };
        FilterCandidates {
            ways: self.tags.ways(first) | self.tags.ways(second) << WAYS,
            buckets: placement.buckets,
        }
    }

    /// Whether the key with `hash` may be present: [`candidates`](Self::candidates) is not empty.
    #[inline(always)]
    pub fn may_contain(&self, hash: KeyHash) -> bool {
        let placement = Placement::of(hash, self.tags.buckets());
        let tag = narrow(placement.tag, self.tags.width());
        let [primary, other] = placement.buckets;
        self.tags.matches(primary, tag) | self.tags.matches(other, tag) != 0
    }

    /// Starts loading what a lookup of the key with `hash` reads. Called about ten keys ahead, over one filter or many,
    /// it hides memory latency.
    #[inline(always)]
    pub fn prefetch(&self, hash: KeyHash) {
        let [primary, other] = Placement::of(hash, self.tags.buckets()).buckets;
        self.tags.prefetch(primary);
        self.tags.prefetch(other);
    }

    /// The slots in use, ascending: the positions of the items in the HashStore.
    pub fn occupied(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.tags.buckets()).flat_map(move |bucket| {
            (0..WAYS).filter(move |&way| self.tags.tag(bucket, way) != 0).map(move |way| bucket * WAYS + way)
        })
    }

    /// Number of slots, the same as in the table.
    #[inline]
    pub fn slots(&self) -> usize {
        self.tags.buckets() as usize * WAYS as usize
    }

    /// Slots in use.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether no slot is in use.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bits of a stored tag.
    #[inline]
    pub fn tag_bits(&self) -> u32 {
        self.tags.width()
    }

    /// Bytes of memory: `tag_bits / 8` a slot and about 60 more.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.tags.heap_bytes()
    }
}

/// The slots, as one range for each of two buckets, that hold the key with `hash` if a filter of `slots` slots contains
/// it: all that is known when the filter itself is not in memory. The two ranges are equal for about one key in
/// `slots / 4`.
#[inline]
pub fn bucket_slots(hash: KeyHash, slots: u32) -> [Range<u32>; 2] {
    Placement::of(hash, slots / WAYS).buckets.map(|bucket| bucket * WAYS..(bucket + 1) * WAYS)
}

/// The low `width` bits of a tag, but never 0, which means empty.
#[inline(always)]
fn narrow(tag: u16, width: u32) -> u16 {
    (tag & ((1 << width) - 1)).max(1)
}
