//! Items from slot-ordered sections and logs, gathered in memory and sorted by hash (SILT §3.3, step 1 of a merge).

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use alluvium_base::{HashRange, KeyHash};
use alluvium_index::prefetch_bytes;
use alluvium_io::AlignedBuffer;

use super::merged::Ascending;
use crate::error::Result;
use crate::item::EncodedItem;
use crate::table::SegmentSpan;

/// Items of different ages in one part of the hash space.
///
/// Takes the encoded items and 24 bytes per item.
#[derive(Debug)]
pub(crate) struct YoungItems {
    /// In huge pages during a merge: items are visited in random order.
    bytes: AlignedBuffer,
    entries: Vec<Entry>,
    /// Log segments from which the items come.
    pub segments: SegmentSpan,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    high: u64,
    low: u64,
    /// Start of the item in `bytes`, in the upper 40 bits; age in the lower 24, where lower is younger.
    place: u64,
}

const AGE_BITS: u32 = 24;
/// The largest age.
pub(crate) const AGE_MAX: u32 = (1 << AGE_BITS) - 1;
/// Maximum number of hashes that describe the distribution of items.
const MARKS_MAX: usize = 256;
/// Number of items by which the prefetch runs ahead.
const PREFETCH_AHEAD: usize = 12;

impl Entry {
    fn hash(&self) -> KeyHash {
        KeyHash::from_halves(self.high, self.low)
    }

    fn age(&self) -> u64 {
        self.place & ((1 << AGE_BITS) - 1)
    }

    fn start(&self) -> usize {
        (self.place >> AGE_BITS) as usize
    }
}

impl Default for YoungItems {
    fn default() -> Self {
        Self { bytes: AlignedBuffer::default(), entries: Vec::new(), segments: SegmentSpan::EMPTY }
    }
}

impl YoungItems {
    /// Room for `items` items of `bytes` encoded bytes in total.
    pub fn with_capacity(items: usize, bytes: usize) -> Self {
        let (bytes, entries) = (AlignedBuffer::with_capacity(bytes), Vec::with_capacity(items));
        Self { bytes, entries, segments: SegmentSpan::EMPTY }
    }

    /// Memory of `items` items of `bytes` encoded bytes in total.
    pub fn memory_bytes_for(items: u64, bytes: u64) -> u64 {
        bytes + items * size_of::<Entry>() as u64
    }

    /// Drops all items and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// Makes room for `items` more items of `bytes` encoded bytes in total.
    pub fn reserve(&mut self, items: usize, bytes: usize) {
        self.entries.reserve_exact(items);
        self.bytes.reserve(bytes);
    }

    /// Adds an item. Among items with the same key the one with the smallest `age` counts, and among those of equal age
    /// the one that was added last.
    #[inline]
    pub fn push(&mut self, hash: KeyHash, age: u32, encoded: &[u8]) {
        debug_assert!(age < 1 << AGE_BITS);
        let place = (self.bytes.len() as u64) << AGE_BITS | u64::from(age);
        self.bytes.extend_from_slice(encoded);
        self.entries.push(Entry { high: hash.high(), low: hash.low(), place });
    }

    /// Sorts by hash, then key, and keeps the newest item of each key.
    pub fn finish(&mut self) {
        // By one word, which takes no branches; items equal in that word are few.
        self.entries.sort_unstable_by_key(|entry| entry.high);
        let bytes = &self.bytes;
        let key = |entry: &Entry| decode(bytes, entry).item.key;
        for group in self.entries.chunk_by_mut(|a, b| a.high == b.high) {
            if group.len() > 1 {
                let by_key = |a: &Entry, b: &Entry| {
                    key(a).cmp(key(b)).then(a.age().cmp(&b.age())).then(b.place.cmp(&a.place))
                };
                group.sort_by(|a, b| a.low.cmp(&b.low).then_with(|| by_key(a, b)));
            }
        }
        self.entries.dedup_by(|later, kept| {
            (later.high, later.low) == (kept.high, kept.low) && key(later) == key(kept)
        });
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The distribution of items: up to 256 hashes, each with the bytes up to it. Only after [`YoungItems::finish`].
    pub fn marks(&self) -> Vec<(u128, f64)> {
        let step = self.entries.len().div_ceil(MARKS_MAX).max(1);
        let item_bytes = self.bytes.len() as f64 / self.entries.len().max(1) as f64;
        let mark = |entries: &[Entry]| {
            let last = entries.last().map_or(0, |entry| entry.hash().0);
            (last, entries.len() as f64 * item_bytes)
        };
        self.entries.chunks(step).map(mark).collect()
    }

    /// Encoded bytes of all items pushed.
    pub fn encoded_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Memory held.
    pub fn memory_bytes(&self) -> u64 {
        (self.bytes.capacity() + self.entries.capacity() * size_of::<Entry>()) as u64
    }

    /// Items whose hashes are in `range`, in order. Only after [`YoungItems::finish`].
    pub fn range(&self, range: HashRange) -> YoungRange<'_> {
        let item_bytes = self.bytes.len() / self.entries.len().max(1);
        YoungRange { bytes: &self.bytes, entries: &self.entries[self.places(range)], item_bytes }
    }

    /// The positions of the entries of those items.
    fn places(&self, range: HashRange) -> Range<usize> {
        let start = self.entries.partition_point(|entry| entry.hash().0 < range.low);
        let end = self.entries.partition_point(|entry| entry.hash().0 <= range.high);
        start..end.max(start)
    }
}

/// The items of a range of hashes, one after the other, which may be held for any time.
#[derive(Debug)]
pub(crate) struct YoungCursor {
    items: Arc<YoungItems>,
    /// The current entry, if it has begun, and those to come.
    current: Option<usize>,
    left: Range<usize>,
}

impl YoungCursor {
    /// A cursor before the first of `items` whose hash is in `range`. Only after [`YoungItems::finish`].
    pub fn new(items: Arc<YoungItems>, range: HashRange) -> Self {
        Self { left: items.places(range), items, current: None }
    }
}

impl Ascending for YoungCursor {
    fn advance(&mut self) -> Result<bool> {
        self.current = self.left.next();
        Ok(self.current.is_some())
    }

    fn current_encoded(&self) -> Option<(KeyHash, EncodedItem<'_>)> {
        let entry = &self.items.entries[self.current?];
        Some((entry.hash(), decode(&self.items.bytes, entry)))
    }
}

fn decode<'a>(bytes: &'a [u8], entry: &Entry) -> EncodedItem<'a> {
    EncodedItem::decode(&bytes[entry.start()..]).expect("an item was pushed here")
}

/// A cursor over sorted young items.
#[derive(Debug)]
pub(crate) struct YoungRange<'a> {
    bytes: &'a [u8],
    entries: &'a [Entry],
    /// Mean length of an item.
    item_bytes: usize,
}

impl<'a> YoungRange<'a> {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    #[inline]
    pub fn peek(&self) -> Option<(KeyHash, EncodedItem<'a>)> {
        self.entries.first().map(|entry| (entry.hash(), decode(self.bytes, entry)))
    }

    #[inline]
    pub fn advance(&mut self) {
        self.entries = &self.entries[1..];
        // Items are in the order of their sections, so each is a cache miss unless it is prefetched.
        if let Some(ahead) = self.entries.get(PREFETCH_AHEAD) {
            prefetch_bytes(self.bytes, ahead.start(), self.item_bytes);
        }
    }

    /// Compares the front item with the given hash and key; `Greater` if there is none.
    #[inline]
    pub fn compare_front(&self, hash: KeyHash, key: &[u8]) -> Ordering {
        let Some(entry) = self.entries.first() else { return Ordering::Greater };
        entry.hash().cmp(&hash).then_with(|| decode(self.bytes, entry).item.key.cmp(key))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::item::Item;
    use proptest::prelude::*;

    proptest! {
        /// Few hashes and keys, so that both often coincide.
        #[test]
        fn the_youngest_item_of_each_key_remains_in_order(
            items in prop::collection::vec((0u64..4, 0u8..6), 0..60),
            low in 0u128..4,
            high in 0u128..4,
        ) {
            let mut young = YoungItems::default();
            let mut model = BTreeMap::new();
            for (age, &(hash, key)) in items.iter().enumerate() {
                let hash = KeyHash::from_halves(hash, 1);
                let mut encoded = Vec::new();
                Item::value(&[key], &[age as u8]).encode(&mut encoded);
                young.push(hash, age as u32, &encoded);
                model.entry((hash, key)).or_insert(age as u8);
            }
            young.finish();
            prop_assert_eq!(young.len(), model.len());
            let mut range = young.range(HashRange::new(low << 64, (high << 64) | u128::from(u64::MAX)));
            for ((hash, key), value) in model {
                if u128::from(hash.high()) < low || u128::from(hash.high()) > high {
                    continue;
                }
                let (found, EncodedItem { item, .. }) = range.peek().unwrap();
                prop_assert_eq!((found, item.key, item.value), (hash, &[key][..], &[value][..]));
                prop_assert_eq!(range.compare_front(hash, &[key]), Ordering::Equal);
                range.advance();
            }
            prop_assert_eq!(range.len(), 0);
        }
    }
}
