//! Buckets by hash, which forget an entry rather than grow: every chain is one bucket.

use std::io;

use crate::memory::Array;

use super::bucket::Bucket;
use super::entry::Entry;
use super::traits::{Index, Slot};

/// A set-associative index: a key's entry can only be in the key's bucket.
#[derive(Debug)]
pub(crate) struct LossyIndex {
    buckets: Array<Bucket>,
}

impl Index for LossyIndex {
    fn new(len: usize) -> io::Result<Self> {
        Ok(Self { buckets: Array::new(len)? })
    }

    fn mapped_bytes(len: usize) -> usize {
        Array::<Bucket>::mapped_bytes(len)
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.buckets.len()
    }

    #[inline(always)]
    fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    #[inline(always)]
    fn next(&self, _bucket: &Bucket) -> Option<usize> {
        None
    }

    fn is_full_at(&self, chain: usize) -> bool {
        self.vacancy(chain).is_none()
    }

    #[inline(always)]
    fn vacancy(&self, chain: usize) -> Option<Slot> {
        let way = self.buckets[chain].empty_way()?;
        Some(Slot { bucket: chain, way })
    }

    #[inline(always)]
    fn put(&self, _chain: usize, slot: Slot, entry: Entry, count: u32) {
        let bucket = &self.buckets[slot.bucket];
        bucket.set_entry(slot.way, entry);
        bucket.counts().set(slot.way, count);
    }

    #[inline(always)]
    fn remove(&self, chain: usize, slot: Slot) {
        self.put(chain, slot, Entry::EMPTY, 0);
    }

    #[inline(always)]
    fn count(&self, slot: Slot) -> u32 {
        self.buckets[slot.bucket].counts().get(slot.way)
    }

    #[inline(always)]
    fn count_access(bucket: &Bucket, way: usize, max: u32) {
        bucket.counts().count(way, max);
    }

    fn release(&self) {
        self.buckets.retire();
    }
}
