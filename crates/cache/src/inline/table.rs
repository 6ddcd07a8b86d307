//! Inline buckets by hash, and their cells.

use std::io;

use alluvium_base::KeyHash;

use crate::index::Place;
use crate::memory::Array;

use super::bucket::InlineBucket;
use super::cells::Cells;
use super::spot::Spot;

/// A set-associative table: a key's cell can only be in the key's bucket.
#[derive(Debug)]
pub(crate) struct InlineTable {
    pub(super) buckets: Array<InlineBucket>,
    pub(super) cells: Cells,
}

impl InlineTable {
    /// An empty table of `buckets` buckets, for items of up to `payload` bytes of key and value.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn new(buckets: usize, payload: usize) -> io::Result<Self> {
        Ok(Self { buckets: Array::new(buckets)?, cells: Cells::new(buckets, payload)? })
    }

    /// Number of buckets.
    pub fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Bytes of a bucket with its cells.
    pub const fn bucket_bytes(payload: usize) -> usize {
        size_of::<InlineBucket>() + Cells::bucket_bytes(payload)
    }

    /// Bytes of a table of `buckets` buckets.
    pub fn mapped_bytes(buckets: usize, payload: usize) -> usize {
        Array::<InlineBucket>::mapped_bytes(buckets) + Cells::mapped_bytes(buckets, payload)
    }

    /// Bytes of key and value that fit in a cell.
    #[inline(always)]
    pub fn payload(&self) -> usize {
        self.cells.payload()
    }

    /// Whether an item fits in a cell.
    #[inline(always)]
    pub fn fits(&self, key: &[u8], value: &[u8]) -> bool {
        key.len() <= self.payload() && value.len() <= self.payload() - key.len()
    }

    /// Where a key's item may be.
    #[inline(always)]
    pub fn spot(&self, hash: KeyHash) -> Spot<'_> {
        let place = Place::of(hash, self.buckets.len());
        Spot::new(self, place.bucket, place.tag)
    }

    /// All buckets, each as a spot with tag 0.
    pub fn spots(&self) -> impl Iterator<Item = Spot<'_>> {
        (0..self.buckets.len()).map(|number| Spot::new(self, number, 0))
    }

    /// The buckets that may contain keys of the index's bucket `number` of `buckets`: both tables choose by the same
    /// bits of the hash.
    pub fn spots_of(&self, number: usize, buckets: usize) -> impl Iterator<Item = Spot<'_>> {
        let first_hash = |number: usize| ((number as u128) << u64::BITS).div_ceil(buckets as u128);
        let own = |hash: u128| ((hash * self.buckets.len() as u128) >> u64::BITS) as usize;
        let numbers = own(first_hash(number))..=own(first_hash(number + 1) - 1);
        numbers.map(|number| Spot::new(self, number, 0))
    }

    /// Returns the memory of the buckets `from..end` to the system; their items are gone.
    pub fn release(&self, from: usize, end: usize) {
        self.buckets.release_part(from, end);
        self.cells.release(from, end);
    }

    /// Returns all memory to the system.
    pub fn release_all(&self) {
        self.buckets.retire();
        self.cells.retire();
    }
}
