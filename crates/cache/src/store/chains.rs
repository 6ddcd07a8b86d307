//! The lossless index: full buckets get spare ones, "bulk chaining" (Lim's thesis, §5.3.3, Figure 5.9).
//!
//! Where a cache's bucket counts accesses, a bucket here stores the number of its spare bucket. The version of a chain
//! is that of its first bucket. Chains have no holes: when an entry is removed, the last entry takes its place, and a
//! spare bucket that becomes empty is returned.

use std::io;

use alluvium_base::KeyHash;

use crate::index::bucket::{Bucket, WAYS};
use crate::index::{Entry, Place};
use crate::memory::Array;
use crate::sync::{AtomicU32, Ordering};

/// Spare buckets, in percent of the first ones: with 11 entries per bucket on average, 9.3 % of the buckets overflow.
/// [`spares_for_chance`] are added.
pub(super) const SPARE_PERCENT: usize = 10;

/// Spare buckets for random variation: the number of buckets that overflow varies by 0.29 √`first_buckets`, and this is
/// five times as many. They are negligible among millions; among a hundred they are 15 beside 10.
pub(super) fn spares_for_chance(first_buckets: usize) -> usize {
    (first_buckets * 9 / 4).isqrt()
}

/// See the module.
#[derive(Debug)]
pub(super) struct Chains {
    buckets: Array<Bucket>,
    first_buckets: usize,
    /// The first spare bucket that was never used.
    fresh: AtomicU32,
    /// A list of returned spare buckets, connected by their links; 0 if it is empty.
    returned: AtomicU32,
    spares_used: AtomicU32,
}

/// A bucket of a chain and a way in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub bucket: usize,
    pub way: usize,
}

impl Chains {
    /// An empty index of `first_buckets` buckets and a tenth as many spare ones plus [`spares_for_chance`].
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn new(first_buckets: usize) -> io::Result<Self> {
        Ok(Self {
            buckets: Array::new(Self::all_buckets(first_buckets))?,
            first_buckets,
            fresh: AtomicU32::new(first_buckets as u32),
            returned: AtomicU32::new(0),
            spares_used: AtomicU32::new(0),
        })
    }

    fn all_buckets(first_buckets: usize) -> usize {
        first_buckets + (first_buckets * SPARE_PERCENT).div_ceil(100) + spares_for_chance(first_buckets)
    }

    /// Bytes of an index of `first_buckets` buckets.
    pub fn mapped_bytes(first_buckets: usize) -> usize {
        Array::<Bucket>::mapped_bytes(Self::all_buckets(first_buckets))
    }

    pub fn place(&self, hash: KeyHash) -> Place {
        Place::of(hash, self.first_buckets)
    }

    /// The bucket that has the chain's version.
    #[inline(always)]
    pub fn first(&self, place: Place) -> &Bucket {
        &self.buckets[place.bucket]
    }

    /// Number of buckets at which chains start.
    pub fn first_buckets(&self) -> usize {
        self.first_buckets
    }

    /// Whether the chain has no empty slot and there is no spare bucket for it.
    pub fn is_full_at(&self, place: Place) -> bool {
        self.returned.load(Ordering::Relaxed) == 0
            && self.fresh.load(Ordering::Relaxed) as usize >= self.buckets.len()
            && self.last(place.bucket).1.is_none()
    }

    /// Returns the memory to the system; all entries are gone.
    pub fn release(&self) {
        self.buckets.release();
    }

    /// Spare buckets in use.
    pub fn spares_used(&self) -> u32 {
        self.spares_used.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub fn prefetch(&self, place: Place) {
        let bucket = self.first(place);
        alluvium_index::prefetch_element(std::slice::from_ref(bucket), 0);
        bucket.prefetch_second_line();
    }

    pub fn entry(&self, slot: Slot) -> Entry {
        self.buckets[slot.bucket].entry(slot.way)
    }

    /// Writer, within a change of the chain: stores an entry.
    pub fn set_entry(&self, slot: Slot, entry: Entry) {
        self.buckets[slot.bucket].set_entry(slot.way, entry);
    }

    /// The first slot of the chain with the place's tag for whose entry `is_it` holds.
    #[inline(always)]
    pub fn find(&self, place: Place, mut is_it: impl FnMut(Entry) -> bool) -> Option<Slot> {
        let mut number = place.bucket;
        // Beside a writer the links may be inconsistent; no chain is longer than the number of buckets.
        for _ in 0..self.buckets.len() {
            let bucket = &self.buckets[number];
            let mut ways = bucket.matches(place.tag);
            while ways != 0 {
                let slot = Slot { bucket: number, way: ways.trailing_zeros() as usize };
                if is_it(self.entry(slot)) {
                    return Some(slot);
                }
                ways &= ways - 1;
            }
            number = bucket.link().filter(|&next| next < self.buckets.len())?;
        }
        None
    }

    /// All entries of the chain that starts at `bucket`.
    pub fn entries(&self, bucket: usize) -> impl Iterator<Item = Entry> + '_ {
        let chain = std::iter::successors(Some(bucket), |&number| {
            self.buckets[number].link().filter(|&next| next < self.buckets.len())
        });
        chain
            .take(self.buckets.len())
            .flat_map(move |number| (0..WAYS).map(move |way| self.buckets[number].entry(way)))
            .filter(|entry| !entry.is_empty())
    }

    /// Writer: an empty slot of the chain, in a new spare bucket if necessary; `None` if no spare bucket is left. A new
    /// bucket is linked within the caller's change.
    pub fn empty_slot(&self, place: Place) -> Option<Slot> {
        let (last, empty) = self.last(place.bucket);
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
        self.buckets[last].set_link(Some(spare as usize));
        Some(Slot { bucket: spare as usize, way: 0 })
    }

    /// Writer, within a change: removes an entry.
    pub fn remove(&self, place: Place, slot: Slot) {
        let (last, empty) = self.last(place.bucket);
        let tail = Slot { bucket: last, way: empty.unwrap_or(WAYS) - 1 };
        self.set_entry(slot, self.entry(tail));
        self.set_entry(tail, Entry::EMPTY);
        if tail.way == 0 && last != place.bucket {
            self.give_back(place.bucket, last);
        }
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
