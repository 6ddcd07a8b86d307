//! [`IndexMemory`]: counts the memory of filters and indexes, keeps it within a bound, and chooses what to drop.
//!
//! Fail-graceful indexing (Lim et al., SOSP 2011, §4): above the bound, the parts that save the fewest reads per byte
//! are dropped; they are on flash and return when there is room again. We differ in the order of dropping and in how a
//! lookup works without them: see `docs/decisions/0013-one-memory-limit.md`.

use std::ops::Add;
use std::sync::{Arc, PoisonError, Weak};

use alluvium_io::sync::atomic::{AtomicU64, Ordering};
use alluvium_io::sync::{Mutex, MutexGuard};

use crate::degradation::{Counts, Degradation};
use crate::memory_holder::{MemoryHolder, Part};
use crate::waiting_room::WaitingRoom;
use crate::worth_sums::WorthSums;

/// Bytes of memory of indexes, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryBytes {
    /// Bytes of what rejects absent keys.
    pub filter: u64,
    /// Bytes of what finds pages.
    pub index: u64,
}

impl Add for MemoryBytes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { filter: self.filter + other.filter, index: self.index + other.index }
    }
}

/// Counts what the filters and indexes of open tables take, including those that only old versions still use, and keeps
/// it within a bound.
#[derive(Debug)]
pub struct IndexMemory {
    bytes_max: AtomicU64,
    /// The part of the bound that is lent to other work.
    lent: AtomicU64,
    filters: AtomicU64,
    indexes: AtomicU64,
    /// Bytes of open tables without filters and indexes.
    tables: AtomicU64,
    /// Bytes of pages kept for scans.
    pages: AtomicU64,
    /// What could be dropped, by its worth.
    sums: WorthSums,
    /// The sum of the four, so that a reservation is one atomic step.
    used: AtomicU64,
    degradation: Counts,
    /// Number of times that memory became free. After a change a refused request may be repeated.
    releases: AtomicU64,
    loaded: Mutex<Loaded>,
    /// Memory for reads of filters and indexes until they are decoded.
    pub reads: WaitingRoom,
}

/// Holders that have something in memory, oldest first. Some may no longer exist.
#[derive(Debug, Default)]
struct Loaded {
    holders: Vec<Weak<dyn MemoryHolder>>,
    /// Length at which those that no longer exist are removed.
    prune_at: usize,
}

/// Memory that is counted while this exists.
#[derive(Debug)]
pub struct Charge {
    memory: Arc<IndexMemory>,
    bytes: MemoryBytes,
    table_bytes: u64,
    page_bytes: u64,
    /// What a byte of the filter, and of the others, is worth.
    filter_worth: f64,
    worth: f64,
}

/// A part of the bound that other work uses while this exists.
#[derive(Debug)]
pub struct Loan {
    memory: Arc<IndexMemory>,
    bytes: u64,
}

impl Drop for Loan {
    fn drop(&mut self) {
        self.memory.lent.fetch_sub(self.bytes, Ordering::Relaxed);
        self.memory.releases.fetch_add(1, Ordering::Relaxed);
    }
}

impl Default for IndexMemory {
    fn default() -> Self {
        Self {
            bytes_max: AtomicU64::new(u64::MAX),
            lent: AtomicU64::new(0),
            filters: AtomicU64::new(0),
            indexes: AtomicU64::new(0),
            tables: AtomicU64::new(0),
            pages: AtomicU64::new(0),
            sums: WorthSums::default(),
            used: AtomicU64::new(0),
            degradation: Counts::default(),
            releases: AtomicU64::new(0),
            loaded: Mutex::default(),
            reads: WaitingRoom::default(),
        }
    }
}

impl IndexMemory {
    /// Bytes in memory now.
    pub fn bytes(&self) -> MemoryBytes {
        MemoryBytes {
            filter: self.filters.load(Ordering::Relaxed),
            index: self.indexes.load(Ordering::Relaxed),
        }
    }

    /// Bytes of open tables without filters and indexes. They count towards the bound and cannot be dropped.
    pub fn table_bytes(&self) -> u64 {
        self.tables.load(Ordering::Relaxed)
    }

    /// Bytes of pages kept for scans. They are dropped before any filter or index.
    pub fn page_bytes(&self) -> u64 {
        self.pages.load(Ordering::Relaxed)
    }

    /// Maximum bytes in memory, minus what is lent; `u64::MAX` means no bound.
    pub fn bytes_max(&self) -> u64 {
        match self.bytes_max.load(Ordering::Relaxed) {
            u64::MAX => u64::MAX,
            bytes_max => bytes_max.saturating_sub(self.lent.load(Ordering::Relaxed)),
        }
    }

    /// Maximum bytes in memory, including what is lent; `u64::MAX` means no bound.
    pub fn bound(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Changes the bound. Drops the parts worth least until the rest fits; under a larger bound they return as lookups
    /// need them.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
        self.releases.fetch_add(1, Ordering::Relaxed);
        self.drop_parts(0, self.parts_below(f64::INFINITY));
    }

    /// Lowers the bound by `bytes` while the loan exists.
    pub fn lend(self: &Arc<Self>, bytes: u64) -> Loan {
        self.lent.fetch_add(bytes, Ordering::Relaxed);
        if !self.has_room(0) {
            self.drop_parts(0, self.parts_below(f64::INFINITY));
        }
        Loan { memory: Arc::clone(self), bytes }
    }

    /// Effects of degraded indexing so far.
    pub fn degradation(&self) -> Degradation {
        self.degradation.now()
    }

    pub(super) fn count_index_reads(&self, reads: u64) {
        self.degradation.index_reads.fetch_add(reads, Ordering::Relaxed);
    }

    pub(super) fn count_unfiltered_pages(&self, pages: u64) {
        self.degradation.unfiltered_pages.fetch_add(pages, Ordering::Relaxed);
    }

    pub(super) fn count_damaged(&self, blocks: u64) {
        self.degradation.damaged_blocks.fetch_add(blocks, Ordering::Relaxed);
    }

    pub(super) fn count_made(&self, indexes: u64, pages: u64) {
        self.degradation.indexes_made.fetch_add(indexes, Ordering::Relaxed);
        self.degradation.pages_read_for_indexes.fetch_add(pages, Ordering::Relaxed);
    }

    pub(super) fn count_unkept(&self, filters: u64, indexes: u64) {
        self.degradation.filters_dropped.fetch_add(filters, Ordering::Relaxed);
        self.degradation.indexes_dropped.fetch_add(indexes, Ordering::Relaxed);
    }

    /// Whether `bytes` more fit.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.used.load(Ordering::Relaxed).saturating_add(bytes) <= self.bytes_max()
    }

    /// Number of times that memory has become free. While it is unchanged, [`IndexMemory::could_make_room`] does not
    /// change to `true`.
    pub(super) fn releases(&self) -> u64 {
        self.releases.load(Ordering::Relaxed)
    }

    /// Whether `bytes` more fit after everything that is clearly worth less per byte than `worth` is dropped. Costs
    /// some hundred nanoseconds, regardless of the number of holders.
    pub(super) fn could_make_room(&self, bytes: u64, worth: f64) -> bool {
        let droppable = self.sums.bytes_below(worth);
        self.used.load(Ordering::Relaxed).saturating_sub(droppable).saturating_add(bytes) <= self.bytes_max()
    }

    /// Drops parts worth less per byte than `worth` until `bytes` more fit. Drops nothing if that is not enough.
    fn make_room(&self, bytes: u64, worth: f64) {
        if !self.has_room(bytes) && self.could_make_room(bytes, worth) {
            self.drop_parts(bytes, self.parts_below(worth));
        }
    }

    /// Counts `bytes` that are worth `worth` per byte, regardless of the bound.
    pub(super) fn charge(self: &Arc<Self>, bytes: MemoryBytes, worth: f64) -> Charge {
        self.used.fetch_add(bytes.filter + bytes.index, Ordering::Relaxed);
        self.count(bytes, 0, worth)
    }

    /// Counts what a section takes without filter and index, regardless of the bound.
    pub fn charge_table(self: &Arc<Self>, bytes: u64) -> Charge {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.tables.fetch_add(bytes, Ordering::Relaxed);
        let mut charge = self.count(MemoryBytes::default(), 0, 0.0);
        charge.table_bytes = bytes;
        charge
    }

    /// Counts `bytes` of pages that are worth `worth` per byte, like [`IndexMemory::try_charge`].
    pub(super) fn try_charge_pages(self: &Arc<Self>, bytes: u64, worth: f64) -> Option<Charge> {
        self.make_room(bytes, worth);
        self.reserve(bytes).then(|| {
            self.pages.fetch_add(bytes, Ordering::Relaxed);
            self.count(MemoryBytes::default(), bytes, worth)
        })
    }

    /// Counts `bytes` that are worth `worth` per byte, and drops what is worth less if necessary. Returns `None` if
    /// they do not fit even then.
    pub(super) fn try_charge(self: &Arc<Self>, bytes: MemoryBytes, worth: f64) -> Option<Charge> {
        let sum = bytes.filter + bytes.index;
        self.make_room(sum, worth);
        self.reserve(sum).then(|| self.count(bytes, 0, worth))
    }

    fn reserve(&self, bytes: u64) -> bool {
        let bytes_max = self.bytes_max();
        let larger = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= bytes_max);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, larger).is_ok()
    }

    fn count(self: &Arc<Self>, bytes: MemoryBytes, page_bytes: u64, worth: f64) -> Charge {
        self.filters.fetch_add(bytes.filter, Ordering::Relaxed);
        self.indexes.fetch_add(bytes.index, Ordering::Relaxed);
        self.sums.add(bytes.filter + bytes.index + page_bytes, worth);
        let memory = Arc::clone(self);
        Charge { memory, bytes, table_bytes: 0, page_bytes, filter_worth: worth, worth }
    }

    /// Registers a holder that has something in memory.
    pub(super) fn register(&self, holder: Weak<dyn MemoryHolder>) {
        let mut loaded = self.loaded();
        if loaded.holders.len() >= loaded.prune_at {
            loaded.holders.retain(|holder| holder.strong_count() > 0);
            // Twice the remaining number, so that pruning costs a constant per registration.
            loaded.prune_at = 2 * loaded.holders.len() + 64;
        }
        loaded.holders.push(holder);
    }

    fn loaded(&self) -> MutexGuard<'_, Loaded> {
        // The list is valid even if a thread panicked while it held the lock.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Parts that are in memory and worth less per byte than `worth`.
    fn parts_below(&self, worth: f64) -> Vec<(Arc<dyn MemoryHolder>, Part)> {
        let loaded = self.loaded();
        let mut below = Vec::new();
        for holder in loaded.holders.iter().filter_map(Weak::upgrade) {
            let parts = holder.parts().into_iter().flatten().filter(|part| part.worth < worth);
            below.extend(parts.map(|part| (Arc::clone(&holder), part)));
        }
        below
    }

    /// Drops these parts, those worth least first, until `bytes` more fit.
    fn drop_parts(&self, bytes: u64, mut parts: Vec<(Arc<dyn MemoryHolder>, Part)>) {
        parts.sort_by(|left, right| left.1.worth.total_cmp(&right.1.worth));
        for (holder, part) in parts {
            if self.has_room(bytes) {
                return;
            }
            if holder.drop_part(part) {
                self.count_unkept(u64::from(part.has_filter), u64::from(part.has_index));
            }
        }
    }
}

impl Charge {
    /// Also counts a filter that is worth `worth` per byte, if it fits after dropping what is worth less.
    pub(super) fn try_add_filter(&mut self, bytes: u64, worth: f64) -> bool {
        self.memory.make_room(bytes, worth);
        let fits = self.memory.reserve(bytes);
        if fits {
            debug_assert_eq!(self.bytes.filter, 0);
            self.memory.filters.fetch_add(bytes, Ordering::Relaxed);
            self.memory.sums.add(bytes, worth);
            self.bytes.filter = bytes;
            self.filter_worth = worth;
        }
        fits
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let MemoryBytes { filter, index } = self.bytes;
        self.memory.filters.fetch_sub(filter, Ordering::Relaxed);
        self.memory.indexes.fetch_sub(index, Ordering::Relaxed);
        self.memory.tables.fetch_sub(self.table_bytes, Ordering::Relaxed);
        self.memory.pages.fetch_sub(self.page_bytes, Ordering::Relaxed);
        self.memory.sums.remove(filter, self.filter_worth);
        self.memory.sums.remove(index + self.page_bytes, self.worth);
        let sum = filter + index + self.table_bytes + self.page_bytes;
        self.memory.used.fetch_sub(sum, Ordering::Relaxed);
        self.memory.releases.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: f64 = 1.0;

    fn index(bytes: u64) -> MemoryBytes {
        MemoryBytes { filter: 0, index: bytes }
    }

    #[test]
    fn charges_are_counted_while_they_live_and_refused_beyond_the_bound() {
        let memory = Arc::new(IndexMemory::default());
        memory.set_bytes_max(100);
        let mut charge = memory.try_charge(index(60), ANY).unwrap();
        assert!(!charge.try_add_filter(41, ANY));
        assert!(charge.try_add_filter(40, ANY));
        assert_eq!(memory.bytes(), MemoryBytes { filter: 40, index: 60 });
        assert!(!memory.has_room(1));
        assert!(!memory.could_make_room(1, ANY), "no holder is registered that could drop something");
        assert!(memory.try_charge(index(40), ANY).is_none());
        let beyond = memory.charge(index(7), ANY);
        let releases = memory.releases();
        drop(charge);
        assert_ne!(memory.releases(), releases);
        assert_eq!(memory.bytes(), index(7));
        drop(beyond);
        assert!(memory.has_room(100));
    }

    #[test]
    fn a_loan_lowers_the_bound_while_it_lives() {
        let memory = Arc::new(IndexMemory::default());
        let unbounded = memory.lend(1);
        assert_eq!(memory.bytes_max(), u64::MAX);
        memory.set_bytes_max(100);
        let lent = memory.lend(70);
        assert!(memory.has_room(29) && !memory.has_room(30));
        let beyond = memory.lend(40);
        assert_eq!(memory.bytes_max(), 0);
        drop((unbounded, lent, beyond));
        assert!(memory.has_room(100));
    }
}
