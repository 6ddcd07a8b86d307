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

    /// Gives back the memory of the buckets from number `from` to before `end`; their items are gone.
    pub fn release(&self, from: usize, end: usize) {
        self.buckets.release_part(from, end);
    }
}
