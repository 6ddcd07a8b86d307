//! The compressed zone behind the logs: which items go there, which come back, and how both share the memory.

use alluvium_base::KeyHash;

use crate::access::{Access, Gate};
use crate::index::{Entry, Index};
use crate::item::{Header, Metadata, Stored};
use crate::memory::UNIT_BYTES;
use crate::partition::{Body, Counters, Partition, ReadCounters};
use crate::region::{MAIN, PROBATION, Region};
use crate::sync::{AtomicU64, Mutex, Ordering};
use crate::zone::{Lookup, Seen, Zone, ZoneStats};

use super::locality::Locality;
use super::policy::Evicting;
use super::promotions::Promotions;
use super::shape::ZONE_OVERHEAD_BYTES;
use super::split::Split;

/// Writes between two looks at the clock and at the sizes.
const WRITES_PER_LOOK: u64 = 64;

/// The zone of a partition, and what decides about it.
#[derive(Debug)]
pub(super) struct Tiers {
    pub zone: Zone,
    /// Gets that the zone answered, and those that it did not.
    pub reads: ReadCounters,
    /// Reads that readers noted, where only the holder of the writer may write.
    notes: Promotions,
    writes: AtomicU64,
    /// Milliseconds in which an item that is used again is worth a place in the hot zone; 0 for any.
    benchmark_ms: AtomicU64,
    /// A lock for the compiler only: its holder is behind the partition's gate.
    plan: Mutex<Plan>,
}

/// What the writer looks at once in a while.
#[derive(Debug)]
struct Plan {
    locality: Locality,
    split: Split,
}

impl Tiers {
    /// Tiers over an empty zone.
    pub fn new(zone: Zone, split: Split) -> Self {
        Self {
            zone,
            reads: ReadCounters::default(),
            notes: Promotions::default(),
            writes: AtomicU64::new(0),
            benchmark_ms: AtomicU64::new(0),
            plan: Mutex::new(Plan { locality: Locality::default(), split }),
        }
    }

    /// The zone's statistics.
    pub fn stats(&self) -> ZoneStats {
        ZoneStats { hits: self.reads.sum().0, ..self.zone.stats() }
    }

    /// Maximum bytes of logs, ghost and zone.
    pub fn bytes_max(&self, body: &Body<Evicting>) -> usize {
        let logs: usize =
            body.region.logs.iter().map(|log| log.layout().capacity() as usize * UNIT_BYTES).sum();
        self.plan().split.budget() + (body.region.bytes - logs) + ZONE_OVERHEAD_BYTES
    }

    fn plan(&self) -> crate::sync::MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl<A: Access> Partition<Evicting, A> {
    /// Stores an item that is about to leave the logs in the zone, if there is one.
    pub(super) fn demote(&self, stored: Stored<'_>, hash: KeyHash) {
        if let Some(tiers) = &self.policy.tiers {
            tiers.zone.put_stored(&self.common, hash, stored);
        }
    }

    /// Calls `take` with the item of `key` in the zone, and notes the access.
    #[inline(never)]
    pub(super) fn read_zone<T>(
        &self,
        tiers: &Tiers,
        hash: KeyHash,
        key: &[u8],
        take: impl FnOnce(&[u8], Metadata) -> T,
    ) -> Option<T> {
        let mut take = Some(take);
        let lookup = tiers.zone.read(&self.common, hash, key, |value, metadata, seen| {
            self.note_zone_access(tiers, hash, key, value, metadata, seen);
            take.take().map(|take| take(value, metadata))
        });
        match lookup {
            Lookup::Found(outcome) => {
                tiers.reads.count(true, A::READS_BESIDE_WRITES);
                outcome
            }
            Lookup::Absent => None,
            // It may have moved to the logs after this thread looked there.
            Lookup::Hidden => self.get_slowly(hash, key, 0, take.take()?).ok(),
        }
    }

    /// Whether the zone has an item of `key`; not an access.
    pub(super) fn is_in_zone(&self, hash: KeyHash, key: &[u8]) -> bool {
        let Some(tiers) = &self.policy.tiers else { return false };
        match tiers.zone.read(&self.common, hash, key, |_, _, _| ()) {
            Lookup::Found(()) => true,
            Lookup::Absent => false,
            // It may have moved to the logs after this thread looked there.
            Lookup::Hidden => self.get_slowly(hash, key, 0, |_, _| ()).is_ok(),
        }
    }

    /// Writer: a copy of the item of `key` in the zone.
    pub(super) fn copy_from_zone(&self, hash: KeyHash, key: &[u8]) -> Option<(Vec<u8>, Metadata)> {
        let tiers = self.policy.tiers.as_deref()?;
        let copy = |value: &[u8], metadata: Metadata, _| (value.to_vec(), metadata);
        match tiers.zone.read(&self.common, hash, key, copy) {
            Lookup::Found(item) => Some(item),
            Lookup::Absent | Lookup::Hidden => None,
        }
    }

    fn note_zone_access(
        &self,
        tiers: &Tiers,
        hash: KeyHash,
        key: &[u8],
        value: &[u8],
        metadata: Metadata,
        seen: Seen,
    ) {
        match self.gate().try_enter() {
            Some(_writing) => {
                let gap_ms = tiers.zone.note_access(&self.common, hash, seen);
                if tiers.is_worth_promoting(gap_ms) {
                    self.promote_from_zone(tiers, hash, key, value, metadata, seen);
                }
            }
            None if !A::Gate::LENDS => tiers.notes.note(hash),
            None => {}
        }
    }

    /// Writer: moves an item of the zone to the main log, if its block is still as it was seen. Its key then has no
    /// item in the logs.
    fn promote_from_zone(
        &self,
        tiers: &Tiers,
        hash: KeyHash,
        key: &[u8],
        value: &[u8],
        metadata: Metadata,
        seen: Seen,
    ) {
        let body = self.begin_insert(hash);
        // Upkeep may just have promoted it, because another reader noted it.
        if !tiers.zone.is_as_seen(hash, seen) {
            return;
        }
        let (has_expiry, has_flags) = (metadata.expires_at_ms != 0, metadata.flags != 0);
        let main = &body.region.logs[MAIN];
        let Some(header) = Header::new(key.len(), value.len(), has_expiry, has_flags)
            .filter(|header| header.words() <= main.item_words_max())
        else {
            return;
        };
        if has_expiry {
            self.policy.sweeper.note_expiry();
        }
        self.make_room(body, MAIN, header.words());
        let position = main.reserve(header.words());
        let entry = Entry::new(body.index.place(hash).tag, MAIN, position);
        body.region.site(entry).write(header, metadata, key, value);
        // It hides the item in the zone.
        if self.link(body, hash, None, entry).is_ok() {
            Counters::count(&tiers.zone.counters.promoted);
        }
    }

    /// Writer: what is due with one write.
    #[inline(always)]
    pub(super) fn tend(&self, body: &Body<Evicting>) {
        if let Some(tiers) = &self.policy.tiers {
            let writes = tiers.writes.load(Ordering::Relaxed).wrapping_add(1);
            tiers.writes.store(writes, Ordering::Relaxed);
            if writes.is_multiple_of(WRITES_PER_LOOK) {
                self.look(tiers, body);
            }
        }
    }

    #[cold]
    fn look(&self, tiers: &Tiers, body: &Body<Evicting>) {
        if A::READS_BESIDE_WRITES {
            tiers.notes.work_off(|hash| self.work_off_note(tiers, hash));
        }
        let now_ms = self.common.now_ms();
        let mut plan = tiers.plan();
        if let Some(benchmark_ms) = plan.locality.look(&body.region.logs[MAIN], now_ms) {
            tiers.benchmark_ms.store(benchmark_ms, Ordering::Relaxed);
        }
        let (hits, _) = self.policy.reads.sum();
        let (zone_hits, _) = tiers.reads.sum();
        plan.split.look(now_ms, hits.saturating_sub(zone_hits), zone_hits);
        self.apply_split(tiers, body, &mut plan.split);
    }

    /// Writer: an access that a reader noted.
    fn work_off_note(&self, tiers: &Tiers, hash: KeyHash) {
        let Some((item, seen)) = tiers.zone.item_of_hash(&self.common, hash) else { return };
        let gap_ms = tiers.zone.note_access(&self.common, hash, seen);
        if tiers.is_worth_promoting(gap_ms) {
            self.promote_from_zone(tiers, hash, &item.key, &item.value, item.metadata, seen);
        }
    }

    /// Writer: gives logs and zone their sizes, a step nearer to where they should be.
    fn apply_split(&self, tiers: &Tiers, body: &Body<Evicting>, split: &mut Split) {
        let logs = &body.region.logs;
        let words_of = |hot: usize| split_logs(hot, self.policy.eviction.has_probation());
        let resident = |hot: usize| -> usize {
            let words = words_of(hot);
            [MAIN, PROBATION]
                .map(|log| logs[log].resident_bytes(words[log].max(logs[log].used())))
                .iter()
                .sum()
        };
        let zone_bytes = |hot: usize| split.budget().saturating_sub(resident(hot) + tiers.zone.fixed_bytes());
        let now = split.hot_bytes();
        let next = split.next_hot_bytes();
        // The zone gives memory back before the logs take it.
        tiers.zone.set_limit(zone_bytes(next.max(now)));
        let arena_bytes = tiers.zone.counters.arena_bytes.load(Ordering::Relaxed) as usize;
        if next <= now || arena_bytes <= zone_bytes(next) {
            split.set_hot_bytes(next);
            let words = words_of(next);
            for log in [MAIN, PROBATION] {
                logs[log].set_limit(words[log]);
                logs[log].trim();
            }
        }
    }

    /// Writer: gives logs and zone the sizes that are wanted at first, or after the memory limit has changed.
    pub(super) fn start_split(&self, tiers: &Tiers, body: &Body<Evicting>, split: Split) {
        let mut plan = tiers.plan();
        plan.split = split;
        plan.locality = Locality::default();
        let Plan { split, .. } = &mut *plan;
        let words = split_logs(split.hot_bytes(), self.policy.eviction.has_probation());
        for log in [MAIN, PROBATION] {
            body.region.logs[log].set_limit(words[log]);
        }
        self.apply_split(tiers, body, split);
    }
}

impl Tiers {
    /// Whether an item that was used twice in this time should move to the hot zone (thesis, §3.3.3.2): whether it
    /// would be used again before it is evicted there.
    fn is_worth_promoting(&self, gap_ms: Option<u64>) -> bool {
        let benchmark_ms = self.benchmark_ms.load(Ordering::Relaxed);
        gap_ms.is_some_and(|gap_ms| benchmark_ms == 0 || gap_ms < benchmark_ms)
    }
}

/// The words of main and probation log, if both have `bytes`.
fn split_logs(bytes: usize, has_probation: bool) -> [u64; 2] {
    let words = (bytes / UNIT_BYTES) as u64;
    let percent = if has_probation { crate::eviction::PROBATION_PERCENT as u64 } else { 0 };
    let probation = words * percent / 100;
    [words - probation, probation]
}
