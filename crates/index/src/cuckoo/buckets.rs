//! The memory of the table: for each bucket one word of four tags, and four offsets, 24 bytes in all.
//!
//! Tags and offsets are in two arrays. A search for a displacement path and a lookup of an absent key read tags only,
//! a third of the memory; a word never crosses a cache line, nor do the four offsets of a bucket.

use super::path::Lanes;
use super::placement::{WAYS, alternative};
use crate::prefetch::prefetch_element;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Tag words and offsets by bucket.
///
/// All stores release and all loads acquire: a reader that sees a tag sees its offset, and one that sees any later
/// store sees the version counted before it (see `versions`).
pub(super) struct Buckets {
    tags: Box<[AtomicU64]>,
    offsets: Box<[AtomicU32]>,
}

impl Buckets {
    /// `count` empty buckets.
    pub fn new(count: u32) -> Self {
        Self {
            tags: (0..count).map(|_| AtomicU64::new(0)).collect(),
            offsets: (0..count * WAYS).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// Number of buckets.
    #[inline(always)]
    pub fn count(&self) -> u32 {
        self.tags.len() as u32
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.tags) + size_of_val(&*self.offsets)
    }

    #[inline(always)]
    pub fn tags(&self, bucket: u32) -> u64 {
        self.tags[bucket as usize].load(Ordering::Acquire)
    }

    #[inline(always)]
    pub fn set_tags(&self, bucket: u32, word: u64) {
        self.tags[bucket as usize].store(word, Ordering::Release);
    }

    #[inline(always)]
    pub fn offset(&self, slot: u32) -> u32 {
        self.offsets[slot as usize].load(Ordering::Acquire)
    }

    #[inline(always)]
    pub fn set_offset(&self, slot: u32, offset: u32) {
        self.offsets[slot as usize].store(offset, Ordering::Release);
    }

    #[inline(always)]
    pub fn prefetch_tags(&self, bucket: u32) {
        prefetch_element(&self.tags, bucket as usize);
    }

    #[inline(always)]
    pub fn prefetch_offset(&self, slot: u32) {
        prefetch_element(&self.offsets, slot as usize);
    }
}

impl Lanes for Buckets {
    #[inline(always)]
    fn lanes(&self, bucket: u32) -> u64 {
        self.tags(bucket)
    }

    #[inline(always)]
    fn alternative(&self, bucket: u32, lane: u16) -> u32 {
        alternative(bucket, lane, self.count())
    }
}
