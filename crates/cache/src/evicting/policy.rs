//! The policy's state, and its answers to the questions of a partition.

use std::io;

use alluvium_base::KeyHash;
use crossbeam_utils::CachePadded;

use crate::access::{Access, Gate};
use crate::error::TooLarge;
use crate::eviction::{ACCESSES_MAX, Eviction};
use crate::index::bucket::WAYS;
use crate::index::{Entry, Index, LossyIndex, Slot, Versioned};
use crate::item::{Header, Metadata};
use crate::memory::UNIT_BYTES;
use crate::partition::{Body, Common, Counters, Found, Partition, Policy, ReadCounters};
use crate::region::{Logs, MAIN, PROBATION, Region};
use crate::zone::{Compression, Zone};

use super::promotions::Promotions;
use super::shape::{Shape, TierShape};
use super::sweep::Sweeper;
use super::tiers::Tiers;

/// See the module.
#[derive(Debug)]
pub(crate) struct Evicting {
    pub eviction: Eviction,
    /// The eviction's [`counted_max`](Eviction::counted_max).
    counted_max: u32,
    /// Width of positions; narrower ones are for tests in which they have to repeat.
    position_bits: u32,
    pub reads: ReadCounters,
    pub(super) promotions: CachePadded<Promotions>,
    pub(super) sweeper: CachePadded<Sweeper>,
    /// The compressed zone behind the logs, if there is one.
    pub(super) tiers: Option<Box<Tiers>>,
}

impl Evicting {
    pub fn new(eviction: Eviction, position_bits: u32) -> Self {
        Self {
            eviction,
            counted_max: eviction.counted_max(),
            position_bits,
            reads: ReadCounters::default(),
            promotions: CachePadded::default(),
            sweeper: CachePadded::default(),
            tiers: None,
        }
    }

    /// Empty parts of the given sizes, for `items` items soon and more over time.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub(super) fn body(&self, shape: Shape, items: u64) -> io::Result<Body<Self>> {
        Body::new(self, shape.logs(self.position_bits)?, shape.tables, items)
    }
}

impl<A: Access> Partition<Evicting, A> {
    /// An empty partition.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn evicting(common: Common, policy: Evicting, shape: Shape, by: Compression) -> io::Result<Self> {
        let mut policy = policy;
        let body = policy.body(shape, 0)?;
        if let Some(TierShape { zone, split }) = shape.tiers {
            policy.tiers = Some(Box::new(Tiers::new(Zone::new(zone, by)?, split)));
        }
        let partition = Self::new(common, policy, body);
        if let Some((tiers, TierShape { split, .. })) = partition.policy.tiers.as_deref().zip(shape.tiers) {
            partition.start_split(tiers, partition.body.get(), split);
        }
        Ok(partition)
    }

    /// The log for an item.
    #[inline(always)]
    fn log_for(
        &self,
        body: &Body<Evicting>,
        hash: KeyHash,
        words: usize,
        before: Option<&Found<'_>>,
    ) -> usize {
        if !self.policy.eviction.has_probation() || words > body.region.logs[PROBATION].item_words_max() {
            return MAIN;
        }
        if let Some(before) = before {
            return before.entry.log();
        }
        match &body.region.ghost {
            Some(ghost) if ghost.take(hash) => MAIN,
            _ => PROBATION,
        }
    }
}

impl Policy for Evicting {
    type Index = LossyIndex;
    type Region = Logs;
    type Refusal = TooLarge;

    const HAS_CELLS: bool = true;
    const LENDS: bool = true;
    const REFUSES_BROKEN: bool = false;

    fn counted_max(&self) -> u32 {
        self.counted_max
    }

    #[inline(always)]
    fn only_counts(&self) -> bool {
        self.counted_max > 0
    }

    #[inline(always)]
    fn leaves_entries(&self) -> bool {
        // An item that goes to the zone leaves its entry at once.
        self.eviction.leaves_entries() && self.tiers.is_none()
    }

    #[inline(always)]
    fn count_read<A: Access>(&self, is_hit: bool) {
        self.reads.count(is_hit, A::READS_BESIDE_WRITES);
    }

    #[inline(always)]
    fn on_hit<A: Access>(
        partition: &Partition<Self, A>,
        body: &Body<Self>,
        found: &Found<'_>,
        hash: KeyHash,
    ) -> Entry {
        let policy = &partition.policy;
        if policy.counted_max > 0 {
            found.bucket.counts().count(found.slot.way, policy.counted_max);
        } else if policy.eviction.moves_items() {
            if A::READS_BESIDE_WRITES {
                policy.promotions.note(hash);
            } else if !partition.gate().is_lent() {
                return partition.promote(body, found);
            }
        }
        found.entry
    }

    #[inline(always)]
    fn on_update<A: Access>(partition: &Partition<Self, A>, body: &Body<Self>, found: &Found<'_>) {
        let policy = &partition.policy;
        if policy.counted_max > 0 {
            found.bucket.counts().count(found.slot.way, policy.counted_max);
        } else if policy.eviction.moves_items() {
            partition.promote(body, found);
        }
    }

    #[inline(always)]
    fn replaced_count(&self, count: u32) -> u32 {
        match self.eviction {
            Eviction::S3Fifo => (count + 1).min(ACCESSES_MAX),
            // Under the other policies a use only moves the item to the tail.
            _ => 0,
        }
    }

    #[inline(always)]
    fn before_write<A: Access>(partition: &Partition<Self, A>, body: &Body<Self>) {
        partition.work_off_promotions(body);
        partition.sweep_some(body);
        partition.tend(body);
    }

    #[inline(always)]
    fn read_behind<A: Access, T>(
        partition: &Partition<Self, A>,
        hash: KeyHash,
        key: &[u8],
        take: impl FnOnce(&[u8], Metadata) -> T,
    ) -> Option<T> {
        let tiers = partition.policy.tiers.as_deref()?;
        partition.read_zone(tiers, hash, key, take)
    }

    fn is_behind<A: Access>(partition: &Partition<Self, A>, hash: KeyHash, key: &[u8]) -> bool {
        partition.is_in_zone(hash, key)
    }

    fn copy_behind<A: Access>(
        partition: &Partition<Self, A>,
        hash: KeyHash,
        key: &[u8],
    ) -> Option<(Vec<u8>, Metadata)> {
        partition.copy_from_zone(hash, key)
    }

    fn remove_behind<A: Access>(partition: &Partition<Self, A>, hash: KeyHash, key: &[u8]) -> bool {
        let tiers = partition.policy.tiers.as_deref();
        tiers.is_some_and(|tiers| tiers.zone.remove(&partition.common, hash, key))
    }

    #[inline(always)]
    fn on_insert<A: Access>(partition: &Partition<Self, A>, hash: KeyHash) {
        if let Some(tiers) = &partition.policy.tiers {
            tiers.zone.hide(hash);
        }
    }

    fn visit_behind<A: Access>(
        partition: &Partition<Self, A>,
        from: u64,
        end: Option<u64>,
        visit: &mut impl FnMut(&[u8], &[u8], Metadata),
    ) {
        if let Some(tiers) = &partition.policy.tiers {
            tiers.zone.visit(&partition.common, from, end, visit);
        }
    }

    #[inline(always)]
    fn is_upkeep_due(&self) -> bool {
        self.leaves_entries() || self.sweeper.is_expiring()
    }

    fn on_growth(&self, body: &Body<Self>) {
        self.sweeper.restart_over(body);
    }

    #[inline(always)]
    fn prefetch_insertion(body: &Body<Self>, hash: KeyHash) {
        if let Some(ghost) = &body.region.ghost {
            ghost.prefetch(hash);
        }
    }

    #[inline(always)]
    fn put_in_cell<A: Access>(
        partition: &Partition<Self, A>,
        body: &Body<Self>,
        hash: KeyHash,
        key: &[u8],
        value: &[u8],
    ) -> bool {
        partition.put_inline(body, hash, key, value)
    }

    fn too_large(body: &Body<Self>) -> TooLarge {
        TooLarge { item_bytes_max: body.region.logs[MAIN].item_words_max() * UNIT_BYTES }
    }

    #[inline(always)]
    fn admit<A: Access>(
        partition: &Partition<Self, A>,
        body: &Body<Self>,
        hash: KeyHash,
        header: Header,
        before: Option<&Found<'_>>,
    ) -> Result<(Entry, Header), TooLarge> {
        let words = header.words();
        if header.has_expiry() {
            partition.policy.sweeper.note_expiry();
        }
        if words > body.region.logs[MAIN].item_words_max() {
            return Err(Self::too_large(body));
        }
        let number = partition.log_for(body, hash, words, before);
        partition.make_room(body, number, words);
        let position = body.region.logs[number].reserve(words);
        Ok((Entry::new(body.index.place(hash).tag, number, position), header))
    }

    /// Chooses which entry of a full bucket is forgotten: one whose item is gone, otherwise the least accessed,
    /// otherwise the one whose item would be evicted first.
    #[cold]
    fn make_way<A: Access>(
        partition: &Partition<Self, A>,
        body: &Body<Self>,
        chain: usize,
    ) -> Result<Slot, TooLarge> {
        let bucket = &body.index.buckets()[chain];
        let counts = partition.policy.counted_max > 0;
        let (way, is_there) = (0..WAYS)
            .map(|way| {
                let entry = bucket.entry(way);
                if !body.region.contains(entry) {
                    return (way, (false, 0, 0));
                }
                let count = if counts { bucket.counts().get(way) } else { 0 };
                let log = body.region.of(entry);
                (way, (true, count, log.layout().distance(log.head(), entry.position())))
            })
            .min_by_key(|&(_, rank)| rank)
            .map_or((0, false), |(way, (is_there, ..))| (way, is_there));
        let counters = &partition.counters;
        let reason = if is_there { &counters.evicted_by_index } else { &counters.evicted };
        let slot = Slot { bucket: chain, way };
        if is_there && let Some(stored) = body.item(bucket.entry(way)) {
            partition.demote(stored, partition.hash_of(stored));
        }
        partition.unlink(body, chain, slot, reason);
        Ok(slot)
    }

    /// The whole bucket is forgotten.
    fn abandon<A: Access, B: Versioned>(partition: &Partition<Self, A>, bucket: &B) {
        for _ in 0..bucket.forget_all() {
            Counters::count(&partition.counters.evicted_by_index);
            if B::IS_INLINE {
                Counters::uncount(&partition.counters.inline);
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::super::shape::Purpose;
    use super::*;
    use crate::access::Concurrent;
    use crate::item::Metadata;
    use crate::partition::Ahead;

    type Part = Partition<Evicting, Concurrent>;

    const ITEMS: u32 = if cfg!(miri) { 50 } else { 500 };

    fn partition(cell_payload: Option<usize>) -> Part {
        let purpose = Purpose { payload: 16, cell_payload, item_bytes_max: 1 << 16, has_probation: true };
        let policy = Evicting::new(Eviction::S3Fifo, crate::region::POSITION_BITS);
        let shape = Shape::within(1 << 20, purpose).unwrap();
        Partition::evicting(Common::default(), policy, shape, Compression::default()).unwrap()
    }

    fn hash(partition: &Part, number: u32) -> KeyHash {
        partition.common.hasher.hash(&number.to_le_bytes())
    }

    fn set(partition: &Part, number: u32) {
        let key = number.to_le_bytes();
        let hash = hash(partition, number);
        partition.set(hash, &key, Ahead::Nothing, &key, Metadata::default()).unwrap();
    }

    fn present(partition: &Part) -> u64 {
        let mut found = 0;
        for number in 0..ITEMS {
            let key = number.to_le_bytes();
            let value = partition.read(hash(partition, number), &key, 0, |source, _| source.to_vec());
            assert!(value.as_ref().is_none_or(|value| *value == key));
            found += u64::from(value.is_some());
        }
        found
    }

    /// A change of the bucket of item 7 writes half of something and panics.
    fn panic_within(partition: &Part, bucket: &impl Versioned) {
        let change = || partition.change(bucket, || panic!("in the middle"));
        assert!(catch_unwind(AssertUnwindSafe(change)).is_err());
    }

    fn goes_on_without_the_bucket(partition: &Part, hurt: impl Fn()) {
        (0..ITEMS).for_each(|number| set(partition, number));
        assert_eq!(present(partition), u64::from(ITEMS));
        hurt();
        // No reader waits for the end of the change, and no item is half of another.
        let left = present(partition);
        assert!((u64::from(ITEMS) - 30..u64::from(ITEMS)).contains(&left), "{left} items");
        assert_eq!(partition.counters.items(), left);
        assert_eq!(partition.stats().items, left);
        (0..ITEMS).for_each(|number| set(partition, number));
        assert_eq!(present(partition), u64::from(ITEMS));
    }

    #[test]
    fn a_panic_within_a_change_costs_its_bucket_and_stops_no_reader() {
        let partition = partition(None);
        goes_on_without_the_bucket(&partition, || {
            let body = partition.body.get();
            panic_within(&partition, body.index.first(body.index.place(hash(&partition, 7))));
        });
    }

    #[test]
    fn a_panic_within_a_change_of_an_inline_bucket_stops_no_reader() {
        let partition = self::partition(Some(16));
        goes_on_without_the_bucket(&partition, || {
            let table = partition.body.get().inline.as_ref().unwrap();
            panic_within(&partition, table.spot(hash(&partition, 7)).bucket());
        });
        assert_eq!(partition.stats().inline_items, u64::from(ITEMS));
    }
}
