//! [`MultiLevelFilter`]: queried for runs.

use alluvium_base::KeyHash;

use super::secondary::Secondary;
use crate::cuckoo::placement::{Placement, WAYS};
use crate::packed_tags::PackedTags;

/// Bits of a lane that number the run.
pub(super) const RUN_BITS: u32 = 3;

/// Maximum number of runs that a filter covers.
pub const RUNS_MAX: u32 = 1 << RUN_BITS;

/// The narrowest fingerprints, in bits.
pub const FINGERPRINT_BITS_MIN: u32 = 4;

/// The widest fingerprints, in bits: lanes have 15.
pub const FINGERPRINT_BITS_MAX: u32 = 12;

/// Maps a key to its run. Immutable. See the module documentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiLevelFilter {
    lanes: PackedTags,
    secondary: Secondary,
    len: u32,
    is_ambiguous: bool,
}

/// The runs that may hold a key, young to old: at most one unless the filter is ambiguous.
#[derive(Clone, Copy, Debug, Default)]
pub struct Runs {
    next: u8,
    left: u8,
}

impl Iterator for Runs {
    type Item = u8;

    #[inline]
    fn next(&mut self) -> Option<u8> {
        self.left = self.left.checked_sub(1)?;
        let run = self.next;
        self.next = run.wrapping_sub(1);
        Some(run)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.left), Some(usize::from(self.left)))
    }
}

impl ExactSizeIterator for Runs {}

impl MultiLevelFilter {
    pub(super) fn from_parts(lanes: PackedTags, secondary: Secondary, len: u32, is_ambiguous: bool) -> Self {
        Self { lanes, secondary, len, is_ambiguous }
    }

    pub(super) fn lanes(&self) -> &PackedTags {
        &self.lanes
    }

    pub(super) fn secondary(&self) -> &Secondary {
        &self.secondary
    }

    /// The runs that may hold the key with `hash`; none if it is certainly in no run. If the filter is not ambiguous, a
    /// key that is in some run gets exactly the youngest run that holds it.
    #[inline(always)]
    pub fn runs(&self, hash: KeyHash) -> Runs {
        let placement = Placement::with_tag_bits(hash, self.lanes.buckets(), self.fingerprint_bits());
        let lane = placement.tag << RUN_BITS;
        let [primary, other] = placement.buckets;
        let first = self.lanes.matches_above(primary, lane, RUN_BITS);
        let second = self.lanes.matches_above(other, lane, RUN_BITS);
        if first | second == 0 {
            return Runs::default();
        }
        self.runs_of_match(hash, placement.buckets, first, second)
    }

    #[inline(always)]
    fn runs_of_match(&self, hash: KeyHash, buckets: [u32; 2], first: u64, second: u64) -> Runs {
        if let Some(run) = self.secondary.run(hash) {
            return Runs { next: run, left: 1 };
        }
        let (bucket, lanes) = if first != 0 { (buckets[0], first) } else { (buckets[1], second) };
        let way = self.lanes.ways(lanes).trailing_zeros();
        let run = (self.lanes.tag(bucket, way) & (RUNS_MAX as u16 - 1)) as u8;
        Runs { next: run, left: if self.is_ambiguous { run + 1 } else { 1 } }
    }

    /// Starts loading what a lookup of the key with `hash` reads. Called about ten keys ahead, it hides memory latency.
    #[inline(always)]
    pub fn prefetch(&self, hash: KeyHash) {
        let placement = Placement::with_tag_bits(hash, self.lanes.buckets(), self.fingerprint_bits());
        self.lanes.prefetch(placement.buckets[0]);
        self.lanes.prefetch(placement.buckets[1]);
    }

    /// Number of keys; a key that was put blindly may be counted twice.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Keys in the secondary table.
    pub fn secondary_len(&self) -> usize {
        self.secondary.len()
    }

    /// Whether a lookup may name several runs: blind puts have added more keys than the secondary table takes.
    pub fn is_ambiguous(&self) -> bool {
        self.is_ambiguous
    }

    /// Slots of the primary table.
    pub fn slots(&self) -> usize {
        self.lanes.buckets() as usize * WAYS as usize
    }

    /// Number of keys that nearly always fit in the primary table: 95 % of its slots.
    pub fn keys_max(&self) -> usize {
        self.slots() / 100 * 95 + self.slots() % 100 * 95 / 100
    }

    /// Bits of a fingerprint.
    #[inline(always)]
    pub fn fingerprint_bits(&self) -> u32 {
        self.lanes.width() - RUN_BITS
    }

    /// Bytes of memory, both tables.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.lanes.heap_bytes() + self.secondary.heap_bytes()
    }
}
