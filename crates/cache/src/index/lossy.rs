//! Buckets by hash, which drop an entry rather than grow.

use std::io;

use alluvium_base::KeyHash;
use alluvium_index::prefetch_element;

use crate::memory::Array;

use super::bucket::Bucket;
use super::place::Place;

/// A set-associative index: a key's entry can only be in the key's bucket.
#[derive(Debug)]
pub(crate) struct LossyIndex {
    buckets: Array<Bucket>,
}

impl LossyIndex {
    /// An empty index of `buckets` buckets.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn new(buckets: usize) -> io::Result<Self> {
        Ok(Self { buckets: Array::new(buckets)? })
    }

    /// All buckets.
    #[inline(always)]
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// The place of a key's entry.
    #[inline(always)]
    pub fn place(&self, hash: KeyHash) -> Place {
        Place::of(hash, self.buckets.len())
    }

    #[inline(always)]
    pub fn bucket(&self, place: Place) -> &Bucket {
        &self.buckets[place.bucket]
    }

    /// Starts loading both lines of a bucket.
    #[inline(always)]
    pub fn prefetch(&self, place: Place) {
        let bucket = &self.buckets[place.bucket];
        prefetch_element(std::slice::from_ref(bucket), 0);
        bucket.prefetch_second_line();
    }

    /// Returns the memory to the system; all entries are gone.
    pub fn release(&self) {
        self.buckets.release();
    }
}
