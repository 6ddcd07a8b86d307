//! [`RowAdmission`]: which rows a full cache takes.

use alluvium_cache::Cache;
use alluvium_io::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Number of rows offered between two looks at the share of hits.
const OFFERS_PER_LOOK: u64 = 4096;
/// Rows hit so seldom, one lookup in this many, that most fills are for nothing.
const LOOKUPS_PER_HIT: u64 = 16;
/// Of seldom hit rows, one in this many is taken.
const OFFERS_PER_ROW: u64 = 8;
/// Bytes that the row of a large item's reference takes, roughly.
const REFERENCE_ROW_BYTES: usize = 64;

/// Decides which rows are worth their fill. In a cache that is not full, all are.
///
/// Uniform gets of many more items than there is room for hit next to nothing, and each fill evicts another row that
/// was worth as much. A fill costs a few microseconds of processor time, with the lock that threads wait for, so then
/// most are left out: the rows that are there are hit as often. A key that is asked for again and again soon has a row
/// all the same, and when hits become more frequent, all rows are taken again.
#[derive(Debug, Default)]
pub(super) struct RowAdmission {
    offered: AtomicU64,
    is_seldom_hit: AtomicBool,
    /// Hits and misses at the last look.
    hits: AtomicU64,
    misses: AtomicU64,
    /// Number of large values offered to a cache that has no room to spare.
    values_offered: AtomicU64,
}

impl RowAdmission {
    /// Whether to take a row that a lookup offers.
    pub fn takes_row(&self, cache: &Cache) -> bool {
        let offer = self.offered.fetch_add(1, Ordering::Relaxed);
        if offer % OFFERS_PER_LOOK == OFFERS_PER_LOOK - 1 {
            let total = cache.stats().total();
            let hits = total.hits - self.hits.swap(total.hits, Ordering::Relaxed).min(total.hits);
            let misses = total.misses - self.misses.swap(total.misses, Ordering::Relaxed).min(total.misses);
            let is_seldom_hit = total.evicted > 0 && hits * LOOKUPS_PER_HIT < hits + misses;
            self.is_seldom_hit.store(is_seldom_hit, Ordering::Relaxed);
        }
        !self.is_seldom_hit.load(Ordering::Relaxed) || offer.is_multiple_of(OFFERS_PER_ROW)
    }

    /// Whether the value of a large item, of this many bytes, is to take the place of its reference. It is while half
    /// of the room is free. After that it is once in as many reads as there is room for references in the space of the
    /// value, so that a value must be read that often, on average, to displace them.
    pub fn takes_value(&self, value_bytes: usize, bytes: u64, bytes_max: u64) -> bool {
        let has_room = bytes + value_bytes as u64 <= bytes_max / 2;
        let turns = (value_bytes / REFERENCE_ROW_BYTES).max(1) as u64;
        has_room || self.values_offered.fetch_add(1, Ordering::Relaxed).is_multiple_of(turns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache that is full, and rows that are hit as often as this.
    fn taken(cache: &Cache, admission: &RowAdmission, lookups_per_hit: u64) -> usize {
        cache.set(b"present", b"row").unwrap();
        let offer = |number: u64| {
            if number.is_multiple_of(lookups_per_hit) {
                assert!(cache.get(b"present").is_some());
                cache.set(b"present", b"row").unwrap();
            } else {
                assert_eq!(cache.get(b"absent"), None);
            }
            admission.takes_row(cache)
        };
        // The look after the first offers decides about the next ones.
        (0..2 * OFFERS_PER_LOOK).filter(|&number| offer(number) && number >= OFFERS_PER_LOOK).count()
    }

    #[test]
    fn rows_that_are_seldom_hit_are_taken_seldom() {
        let cache = Cache::builder().partitions(1).memory_limit(1 << 20).build().unwrap();
        let admission = RowAdmission::default();
        assert_eq!(taken(&cache, &admission, 100), OFFERS_PER_LOOK as usize, "there is room");
        for number in 0..40_000_u32 {
            cache.set(&number.to_le_bytes(), &[7; 100]).unwrap();
        }
        assert!(cache.stats().total().evicted > 0);
        let few = taken(&cache, &admission, 100);
        assert_eq!(few as u64, OFFERS_PER_LOOK / OFFERS_PER_ROW);
        assert_eq!(taken(&cache, &admission, 4), OFFERS_PER_LOOK as usize);
    }

    #[test]
    fn a_value_displaces_references_once_in_many_reads() {
        let admission = RowAdmission::default();
        assert!(admission.takes_value(4096, 0, 1 << 20));
        let taken = (0..640).filter(|_| admission.takes_value(4096, 1 << 19, 1 << 20)).count();
        assert_eq!(taken, 10);
    }
}
