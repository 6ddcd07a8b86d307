//! What partitions ask of an index.

use std::fmt;
use std::io;

use alluvium_base::KeyHash;

use super::bucket::{Bucket, WAYS};
use super::entry::Entry;
use super::place::Place;

/// A bucket of an index and a way in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub bucket: usize,
    pub way: usize,
}

/// Buckets of entries. A key's entry is in the chain of buckets that starts at the key's place. The version of a chain
/// is that of its first bucket.
pub(crate) trait Index: Sized + fmt::Debug + Send + Sync + 'static {
    /// An empty index of `len` chains.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    fn new(len: usize) -> io::Result<Self>;

    /// Bytes of an index of `len` chains.
    fn mapped_bytes(len: usize) -> usize;

    /// Number of chains, which start at the first buckets.
    fn len(&self) -> usize;

    /// All buckets.
    fn buckets(&self) -> &[Bucket];

    /// The next bucket of a chain. Beside a writer it may be any bucket.
    fn next(&self, bucket: &Bucket) -> Option<usize>;

    /// Whether there is no room for another entry in the chain that starts at bucket `chain`.
    fn is_full_at(&self, chain: usize) -> bool;

    /// Writer: a slot for another entry in the chain that starts at bucket `chain`; `None` if there is no room.
    fn vacancy(&self, chain: usize) -> Option<Slot>;

    /// Writer, within a change of the chain: stores an entry whose item was accessed `count` times.
    fn put(&self, chain: usize, slot: Slot, entry: Entry, count: u32);

    /// Writer, within a change of the chain: removes an entry.
    fn remove(&self, chain: usize, slot: Slot);

    /// Accesses counted for an entry.
    fn count(&self, slot: Slot) -> u32;

    /// Counts an access of the entry in `way`, up to `max`. The count may be lost.
    fn count_access(bucket: &Bucket, way: usize, max: u32);

    /// Returns the memory to the system; all entries are gone.
    fn release(&self);

    /// The place of a key's entry.
    #[inline(always)]
    fn place(&self, hash: KeyHash) -> Place {
        Place::of(hash, self.len())
    }

    /// The first bucket of a chain, which has the chain's version.
    #[inline(always)]
    fn first(&self, place: Place) -> &Bucket {
        &self.buckets()[place.bucket]
    }

    /// The entry in a slot.
    #[inline(always)]
    fn entry(&self, slot: Slot) -> Entry {
        self.buckets()[slot.bucket].entry(slot.way)
    }

    /// Starts loading both lines of a chain's first bucket.
    #[inline(always)]
    fn prefetch(&self, place: Place) {
        let bucket = self.first(place);
        alluvium_index::prefetch_element(std::slice::from_ref(bucket), 0);
        bucket.prefetch_second_line();
    }

    /// Numbers of the buckets of the chain that starts at bucket `first`. Beside a writer the links may be
    /// inconsistent, but no chain is longer than the number of buckets.
    #[inline(always)]
    fn chain(&self, first: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(first), |&number| self.next(&self.buckets()[number]))
            .take(self.buckets().len())
    }

    /// The entries of the chain that starts at bucket `first`, and their slots.
    fn entries(&self, first: usize) -> impl Iterator<Item = (Slot, Entry)> {
        let slots = self.chain(first).flat_map(|bucket| (0..WAYS).map(move |way| Slot { bucket, way }));
        slots.map(|slot| (slot, self.entry(slot))).filter(|(_, entry)| !entry.is_empty())
    }
}
