//! Inline buckets by hash.

use std::io;

use alluvium_base::KeyHash;

use crate::index::Place;
use crate::memory::Array;

use super::bucket::InlineBucket;

/// A set-associative table: a key's cell is in its bucket or nowhere.
#[derive(Debug)]
pub(crate) struct InlineTable {
    buckets: Array<InlineBucket>,
}

impl InlineTable {
    /// An empty table of `buckets` buckets.
    ///
    /// # Errors
    /// What the system says when it refuses.
    pub fn new(buckets: usize) -> io::Result<Self> {
        Ok(Self { buckets: Array::new(buckets)? })
    }

    /// Bytes of a table of `buckets` buckets.
    pub fn mapped_bytes(buckets: usize) -> usize {
        Array::<InlineBucket>::mapped_bytes(buckets)
    }

    /// All buckets.
    pub fn buckets(&self) -> &[InlineBucket] {
        &self.buckets
    }

    /// The bucket and tag of a key.
    #[inline(always)]
    pub fn place(&self, hash: KeyHash) -> (&InlineBucket, u16) {
        let place = Place::of(hash, self.buckets.len());
        (&self.buckets[place.bucket], place.tag)
    }

    /// The buckets with keys of bucket `number` of `buckets` in the index, which goes by the same bits of their hashes.
    pub fn buckets_of(&self, number: usize, buckets: usize) -> &[InlineBucket] {
        let first_hash = |number: usize| ((number as u128) << u64::BITS).div_ceil(buckets as u128);
        let own = |hash: u128| ((hash * self.buckets.len() as u128) >> u64::BITS) as usize;
        &self.buckets[own(first_hash(number))..=own(first_hash(number + 1) - 1)]
    }

    /// Gives back the memory of the buckets from number `from` to before `end`; their items are gone.
    pub fn release(&self, from: usize, end: usize) {
        self.buckets.release_part(from, end);
    }
}
