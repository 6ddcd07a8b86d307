//! The table: sizes, writing and reading.

use std::fmt;

use alluvium_base::KeyHash;

use super::buckets::Buckets;
use super::candidates::{Candidates, Slot, lowest_lane, offset_index};
use super::path::{self, Step};
use super::placement::{BUCKETS_MAX, Placement, WAYS};
use super::tag_word::{empties, first_way, matches, tag_at, with_tag};
use super::versions::Versions;
use super::writer::WriterFlag;
use crate::sync::{AtomicU32, Ordering, spin_hint};

/// Expected occupancy for [`CuckooTable::with_entries`], in percent of the slots.
const OCCUPANCY_PERCENT: u64 = 95;

/// Number of concurrent lookups in [`CuckooTable::candidates_batch`]: enough to hide a memory access behind the work of
/// the others, and few enough for the line-fill buffers of a core.
const BATCH_LEN: usize = 16;

/// Tag to offset, for up to 2^32 slots in buckets of four. See the module documentation.
pub struct CuckooTable {
    pub(super) buckets: Buckets,
    pub(super) versions: Versions,
    pub(super) len: AtomicU32,
    writer: WriterFlag,
}

/// There is no room for a key: no chain of moves within reach ends in an empty slot. The table is unchanged.
///
/// At ordinary sizes this happens at 97 % occupancy; freeze the log then. It also happens, at any occupancy, to the
/// ninth entry with the same tag and buckets, so overwrites must go to [`CuckooTable::replace`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the cuckoo table is full")
    }
}

impl std::error::Error for Full {}

impl CuckooTable {
    /// An empty table in which `entries` entries take 95 % of the slots. Below a thousand entries, it may by chance be
    /// full a few entries earlier (see the module documentation).
    ///
    /// # Panics
    /// When `entries` exceeds 4.08 × 10^9 (slot numbers have 32 bits).
    pub fn with_entries(entries: usize) -> Self {
        let slots = (entries as u64 * 100).div_ceil(OCCUPANCY_PERCENT);
        let buckets = slots.div_ceil(u64::from(WAYS)).max(1);
        assert!(buckets <= u64::from(BUCKETS_MAX), "{entries} entries exceed 32-bit slot numbers");
        Self::with_buckets(buckets as u32)
    }

    /// An empty table of `count` buckets.
    pub(super) fn with_buckets(count: u32) -> Self {
        Self {
            buckets: Buckets::new(count),
            versions: Versions::new(count),
            len: AtomicU32::new(0),
            writer: WriterFlag::default(),
        }
    }

    /// Number of entries. A snapshot if a writer is running.
    #[inline]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed) as usize
    }

    /// Whether there are no entries.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Slots, four a bucket.
    #[inline]
    pub fn slots(&self) -> usize {
        self.buckets.count() as usize * WAYS as usize
    }

    /// The fraction of the slots in use, 0 to 1.
    pub fn occupancy(&self) -> f64 {
        self.len() as f64 / self.slots() as f64
    }

    /// Bytes of memory: 6 a slot, and less than 1 % more for tables of a thousand entries and above.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.buckets.heap_bytes() + self.versions.heap_bytes()
    }

    /// The entries that may belong to the key with `hash`: see [`Candidates`].
    ///
    /// Takes no lock and may run in any number of threads beside one writer. An entry that is in the table throughout
    /// the call is never missed, however often it is moved meanwhile. Each returned offset was, at some moment of the
    /// call, the offset of an entry with the key's tag.
    #[inline(always)]
    pub fn candidates(&self, hash: KeyHash) -> Candidates {
        self.candidates_at(Placement::of(hash, self.buckets.count()))
    }

    #[inline(always)]
    fn candidates_at(&self, placement: Placement) -> Candidates {
        loop {
            let version = self.versions.begin(placement.tag);
            let found = self.read(placement);
            if self.versions.is_current(placement.tag, version) {
                return found;
            }
            spin_hint();
        }
    }

    /// Reads both buckets once; the result is consistent only if the version did not change.
    #[inline(always)]
    fn read(&self, placement: Placement) -> Candidates {
        let lanes = self.matching_lanes(placement);
        let mut found = Candidates { lanes, buckets: placement.buckets, offsets: [0; 8] };
        let mut rest = lanes;
        while rest != 0 {
            let (way, side) = lowest_lane(rest);
            let slot = placement.buckets[side] * WAYS + way;
            found.offsets[offset_index(way, side)] = self.buckets.offset(slot);
            rest &= rest - 1;
        }
        found
    }

    /// Both buckets' matches in the form of [`Candidates::lanes`]. Avoids a branch on the side, which is unpredictable.
    #[inline(always)]
    fn matching_lanes(&self, placement: Placement) -> u64 {
        let [primary, other] = placement.buckets;
        let first = matches(self.buckets.tags(primary), placement.tag);
        let second = matches(self.buckets.tags(other), placement.tag);
        let second = if primary == other { 0 } else { second };
        first >> 15 | second >> 14
    }

    /// [`candidates`](Self::candidates) of many keys with overlapped memory accesses: about twice as fast as one by
    /// one.
    ///
    /// # Panics
    /// When `hashes` and `out` differ in length.
    pub fn candidates_batch(&self, hashes: &[KeyHash], out: &mut [Candidates]) {
        Self::candidates_across(|_| self, hashes, out);
    }

    /// [`candidates_batch`](Self::candidates_batch) of keys in many tables: `table_of` names the table of each.
    ///
    /// # Panics
    /// When `hashes` and `out` differ in length.
    #[inline]
    pub fn candidates_across<'t>(
        table_of: impl Fn(KeyHash) -> &'t Self,
        hashes: &[KeyHash],
        out: &mut [Candidates],
    ) {
        assert_eq!(hashes.len(), out.len(), "a batch needs one result per hash");
        let Some(&first) = hashes.first() else { return };
        let mut placed = [(table_of(first), Placement { tag: 1, buckets: [0; 2] }); BATCH_LEN];
        for (hashes, out) in hashes.chunks(BATCH_LEN).zip(out.chunks_mut(BATCH_LEN)) {
            for (placed, &hash) in placed.iter_mut().zip(hashes) {
                let table = table_of(hash);
                let placement = Placement::of(hash, table.buckets.count());
                table.prefetch_tags(placement);
                *placed = (table, placement);
            }
            for &(table, placement) in &placed[..hashes.len()] {
                let lanes = table.matching_lanes(placement);
                if lanes != 0 {
                    let (way, side) = lowest_lane(lanes);
                    table.buckets.prefetch_offset(placement.buckets[side] * WAYS + way);
                }
            }
            for (found, &(table, placement)) in out.iter_mut().zip(&placed) {
                *found = table.candidates_at(placement);
            }
        }
    }

    /// Starts loading what a lookup or an insertion of the key with `hash` reads first. Called about ten keys ahead,
    /// also over many tables, it hides memory latency.
    #[inline(always)]
    pub fn prefetch(&self, hash: KeyHash) {
        self.prefetch_tags(Placement::of(hash, self.buckets.count()));
    }

    #[inline(always)]
    fn prefetch_tags(&self, placement: Placement) {
        self.buckets.prefetch_tags(placement.buckets[0]);
        self.buckets.prefetch_tags(placement.buckets[1]);
    }

    /// Adds an entry, even if there is one with the same hash.
    ///
    /// The entry goes into the emptier of its two buckets, which keeps full pairs rare; if both are full, others are
    /// moved along the shortest path to an empty slot. One writer at a time, which debug builds check; readers need
    /// not stop. 14 ns on average while filling to 95 % in cached memory, a few microseconds at most.
    ///
    /// # Errors
    /// [`Full`]; the table is unchanged.
    #[inline]
    pub fn insert(&self, hash: KeyHash, offset: u32) -> Result<(), Full> {
        let _writing = self.writer.enter();
        let placement = Placement::of(hash, self.buckets.count());
        let [primary, other] = placement.buckets;
        let primary_empties = empties(self.buckets.tags(primary));
        let other_empties = empties(self.buckets.tags(other));
        let (bucket, lanes) = if other_empties.count_ones() > primary_empties.count_ones() {
            (other, other_empties)
        } else {
            (primary, primary_empties)
        };
        let step = if lanes != 0 {
            Step { bucket, way: first_way(lanes) }
        } else {
            self.make_room(placement.buckets)?
        };
        self.fill(step, placement.tag, offset);
        self.len.store(self.len.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        Ok(())
    }

    /// Empties a slot of one of two full buckets by moving entries to their alternative buckets.
    #[cold]
    #[inline(never)]
    fn make_room(&self, roots: [u32; 2]) -> Result<Step, Full> {
        let path = path::find(&self.buckets, roots).ok_or(Full)?;
        for (from, to) in path.moves() {
            let tag = tag_at(self.buckets.tags(from.bucket), from.way);
            self.fill(to, tag, self.buckets.offset(from.slot()));
            self.versions.count(tag);
            self.clear(from);
            self.versions.count(tag);
        }
        Ok(path.head())
    }

    /// Writes an entry into an empty slot; readers see it whole or not at all.
    #[inline(always)]
    fn fill(&self, step: Step, tag: u16, offset: u32) {
        let word = self.buckets.tags(step.bucket);
        debug_assert_eq!(tag_at(word, step.way), 0, "a filled slot was empty");
        self.buckets.set_offset(step.slot(), offset);
        self.buckets.set_tags(step.bucket, with_tag(word, step.way, tag));
    }

    #[inline(always)]
    fn clear(&self, step: Step) {
        self.buckets.set_tags(step.bucket, with_tag(self.buckets.tags(step.bucket), step.way, 0));
    }

    /// Gives the entry in `slot` another offset, atomically for readers.
    ///
    /// `slot` comes from [`candidates`](Self::candidates) of `hash`, called by the writer since its last insertion or
    /// removal. One writer at a time.
    ///
    /// # Panics
    /// When `slot` is out of range; in debug builds also when it does not hold the tag of `hash`.
    #[inline]
    pub fn replace(&self, slot: Slot, hash: KeyHash, offset: u32) {
        let _writing = self.writer.enter();
        debug_assert_eq!(
            tag_at(self.buckets.tags(slot.0 / WAYS), slot.0 % WAYS),
            Placement::of(hash, self.buckets.count()).tag,
            "a replaced entry has the key's tag"
        );
        self.buckets.set_offset(slot.0, offset);
    }

    /// Removes the entry in `slot`; nothing happens if the slot is empty.
    ///
    /// `slot` comes from [`candidates`](Self::candidates), called by the writer since its last insertion or removal.
    /// One writer at a time.
    ///
    /// # Panics
    /// When `slot` is out of range.
    pub fn remove(&self, slot: Slot) {
        let _writing = self.writer.enter();
        let step = Step::of(slot.0);
        let tag = tag_at(self.buckets.tags(step.bucket), step.way);
        if tag != 0 {
            self.clear(step);
            self.versions.count(tag);
            self.len.store(self.len.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        }
    }

    /// All entries as (slot, tag, offset) in slot order: the order of the items in the HashStore made from this table.
    ///
    /// For a table that no longer changes: beside a writer, entries being moved may be missed or returned twice.
    pub fn entries(&self) -> impl Iterator<Item = (u32, u16, u32)> + '_ {
        (0..self.buckets.count()).flat_map(move |bucket| {
            let word = self.buckets.tags(bucket);
            (0..WAYS).filter_map(move |way| {
                let slot = bucket * WAYS + way;
                let tag = tag_at(word, way);
                (tag != 0).then(|| (slot, tag, self.buckets.offset(slot)))
            })
        })
    }

    /// The tags of every bucket, in order: 16 bits a way, 0 for empty.
    pub(crate) fn tag_words(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        (0..self.buckets.count()).map(|bucket| self.buckets.tags(bucket))
    }
}

impl fmt::Debug for CuckooTable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CuckooTable").field("len", &self.len()).field("slots", &self.slots()).finish()
    }
}
