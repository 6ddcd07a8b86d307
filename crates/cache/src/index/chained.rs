//! The lossless index: full buckets get spare ones, "bulk chaining" (Lim's thesis, §5.3.3, Figure 5.9).
//!
//! Where a cache's bucket counts accesses, a bucket here stores the number of its spare bucket. The version of a chain
//! is that of its first bucket. Chains have no holes: when an entry is removed, the last entry takes its place, and a
//! spare bucket that becomes empty is returned.

use std::io;

use crate::memory::Array;
use crate::sync::{AtomicU32, Ordering};

use super::bucket::{Bucket, WAYS};
use super::entry::Entry;
use super::traits::{Index, Slot};

/// Spare buckets, in percent of the first ones: with 11 entries per bucket on average, 9.3 % of the buckets overflow.
/// [`spares_for_chance`] are added.
pub(crate) const SPARE_PERCENT: usize = 10;

/// Spare buckets for random variation: the number of buckets that overflow varies by 0.29 √`first_buckets`, and this is
/// five times as many. They are negligible among millions; among a hundred they are 15 beside 10.
pub(crate) fn spares_for_chance(first_buckets: usize) -> usize {
    (first_buckets * 9 / 4).isqrt()
}

/// See the module.
#[derive(Debug)]
pub(crate) struct ChainedIndex {
    buckets: Array<Bucket>,
    first_buckets: usize,
    /// The first spare bucket that was never used.
    fresh: AtomicU32,
    /// A list of returned spare buckets, connected by their links; 0 if it is empty.
    returned: AtomicU32,
    spares_used: AtomicU32,
}

impl Index for ChainedIndex {
    /// An empty index of `len` first buckets and a tenth as many spare ones plus [`spares_for_chance`].
    fn new(len: usize) -> io::Result<Self> {
        Ok(Self {
            buckets: Array::new(all_buckets(len))?,
            first_buckets: len,
            fresh: AtomicU32::new(len as u32),
            returned: AtomicU32::new(0),
            spares_used: AtomicU32::new(0),
        })
    }

    fn mapped_bytes(len: usize) -> usize {
        Array::<Bucket>::mapped_bytes(all_buckets(len))
    }

    #[inline(always)]
    fn len(&self) -> usize {
        self.first_buckets
    }

    #[inline(always)]
    fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    #[inline(always)]
    fn next(&self, bucket: &Bucket) -> Option<usize> {
        bucket.link().filter(|&next| next < self.buckets.len())
    }

    fn is_full_at(&self, chain: usize) -> bool {
        self.returned.load(Ordering::Relaxed) == 0
            && self.fresh.load(Ordering::Relaxed) as usize >= self.buckets.len()
            && self.last(chain).1.is_none()
    }

    /// If no bucket of the chain has an empty slot, one in a new spare bucket, which `put` links.
    fn vacancy(&self, chain: usize) -> Option<Slot> {
        let (last, empty) = self.last(chain);
        if let Some(way) = empty {
            return Some(Slot { bucket: last, way });
        }
        let spare = match self.returned.load(Ordering::Relaxed) {
            0 => {
                let fresh = self.fresh.load(Ordering::Relaxed);
                if fresh as usize >= self.buckets.len() {
                    return None;
                }
                self.fresh.store(fresh + 1, Ordering::Relaxed);
                fresh
            }
            returned => {
                let next = self.buckets[returned as usize].link().unwrap_or(0);
                self.returned.store(next as u32, Ordering::Relaxed);
                self.buckets[returned as usize].set_link(None);
                returned
            }
        };
        self.spares_used.store(self.spares_used() + 1, Ordering::Relaxed);
        Some(Slot { bucket: spare as usize, way: 0 })
    }

    fn put(&self, chain: usize, slot: Slot, entry: Entry, _count: u32) {
        let bucket = &self.buckets[slot.bucket];
        // A spare bucket in a chain has an entry in its first way.
        if slot.bucket >= self.first_buckets && slot.way == 0 && bucket.entry(0).is_empty() {
            let (last, _) = self.last(chain);
            self.buckets[last].set_link(Some(slot.bucket));
        }
        bucket.set_entry(slot.way, entry);
    }

    fn remove(&self, chain: usize, slot: Slot) {
        let (last, empty) = self.last(chain);
        let tail = Slot { bucket: last, way: empty.unwrap_or(WAYS) - 1 };
        self.buckets[slot.bucket].set_entry(slot.way, self.entry(tail));
        self.buckets[tail.bucket].set_entry(tail.way, Entry::EMPTY);
        if tail.way == 0 && last != chain {
            self.give_back(chain, last);
        }
    }

    /// Buckets store links instead of counts.
    #[inline(always)]
    fn count(&self, _slot: Slot) -> u32 {
        0
    }

    #[inline(always)]
    fn count_access(_bucket: &Bucket, _way: usize, _max: u32) {}

    fn release(&self) {
        self.buckets.retire();
    }
}

/// Buckets of an index of `first_buckets` chains.
fn all_buckets(first_buckets: usize) -> usize {
    first_buckets + (first_buckets * SPARE_PERCENT).div_ceil(100) + spares_for_chance(first_buckets)
}

impl ChainedIndex {
    /// Spare buckets in use.
    pub fn spares_used(&self) -> u32 {
        self.spares_used.load(Ordering::Relaxed)
    }

    /// The last bucket of a chain and its first empty way. A spare bucket in a chain has at least one entry.
    fn last(&self, first: usize) -> (usize, Option<usize>) {
        let mut number = first;
        while let Some(next) = self.buckets[number].link() {
            number = next;
        }
        (number, self.buckets[number].empty_way())
    }

    fn give_back(&self, first: usize, spare: usize) {
        let mut number = first;
        while let Some(next) = self.buckets[number].link().filter(|&next| next != spare) {
            number = next;
        }
        self.buckets[number].set_link(None);
        let returned = self.returned.load(Ordering::Relaxed) as usize;
        self.buckets[spare].set_link((returned != 0).then_some(returned));
        self.returned.store(spare as u32, Ordering::Relaxed);
        self.spares_used.store(self.spares_used() - 1, Ordering::Relaxed);
    }
}
