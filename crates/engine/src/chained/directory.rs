//! [`Directory`]: the heads of a keyspace's chains (SkimpyStash, SIGMOD 2011, §4).

use std::sync::Arc;

use alluvium_base::{KeyHash, KeyspaceId, SegmentId};
use alluvium_index::chain_region::{ChainRegion, Slot, SlotShape};
use alluvium_io::sync::Mutex;
use alluvium_io::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use alluvium_model::{ChainedDirectory, ChainedSpec};
use smallvec::SmallVec;

use super::address::Address;
use super::locked_region::LockedRegion;
use super::long_chains::LongChains;
use super::opened::Opened;
use super::passes::Passes;
use super::sample::LiveSample;
use super::saving::Saving;

/// log2 of the number of regions.
pub(super) const REGION_BITS: u32 = 8;
pub(super) const REGIONS: u64 = Directory::REGIONS as u64;
/// Minimum slots of a region.
const SLOTS_MIN: u64 = 4;
/// Bytes of a pointer, and once these do not suffice.
const POINTER_BYTES_MIN: usize = 4;
pub(super) const POINTER_BYTES_MAX: usize = 5;

/// The heads of the chains that may have a key.
pub(crate) type Heads = SmallVec<[Address; 2]>;

/// All chains of a keyspace, each from its youngest record on. A region of it has the chains of a range of hashes, and
/// a lock: a thread that appends a record holds the lock of the key's shard, then that of its region.
#[derive(Debug)]
pub(crate) struct Directory {
    pub keyspace: KeyspaceId,
    pub spec: ChainedSpec,
    /// Shared with the directories of snapshots until it changes.
    regions: Box<[Mutex<Arc<ChainRegion>>]>,
    /// Bytes of memory of all regions.
    bytes: AtomicUsize,
    /// Behind the segment to which records were appended last.
    end: AtomicU64,
    /// Heads in front of this address were cleared, or are about to be.
    start: AtomicU64,
    /// What is live.
    pub sample: LiveSample,
    /// When the log is collected.
    pub passes: Passes,
    /// Chains that lookups found long.
    pub long_chains: LongChains,
    /// The file that has it.
    pub saving: Saving,
    /// How it was found when the database was opened.
    pub opened: Opened,
    /// Bytes of memory beyond which no region doubles.
    bytes_max: AtomicU64,
}

impl Directory {
    /// Number of regions.
    pub const REGIONS: usize = 1 << REGION_BITS;

    /// Empty chains: `slots` in each region.
    pub fn new(keyspace: KeyspaceId, spec: ChainedSpec, slots: u64) -> Self {
        let region = ChainRegion::new(shape(&spec, spec.pointer_bytes as usize), REGION_BITS, slots as usize);
        let bytes = AtomicUsize::new(region.memory_bytes() as usize * REGIONS as usize);
        let region = Arc::new(region);
        let regions = (0..REGIONS).map(|_| Mutex::new(region.clone())).collect();
        Self {
            keyspace,
            spec,
            regions,
            bytes,
            end: AtomicU64::new(0),
            start: AtomicU64::new(0),
            sample: LiveSample::default(),
            passes: Passes::default(),
            long_chains: LongChains::default(),
            saving: Saving::default(),
            opened: Opened::default(),
            bytes_max: AtomicU64::new(u64::MAX),
        }
    }

    /// The chains of these regions, whose heads are not behind the segment `last`.
    pub fn of_regions(
        keyspace: KeyspaceId,
        spec: ChainedSpec,
        regions: Vec<ChainRegion>,
        last: SegmentId,
        sample: LiveSample,
    ) -> Self {
        let bytes = regions.iter().map(|region| region.memory_bytes() as usize).sum();
        Self {
            keyspace,
            spec,
            regions: regions.into_iter().map(|region| Mutex::new(Arc::new(region))).collect(),
            bytes: AtomicUsize::new(bytes),
            end: AtomicU64::new(last.0),
            start: AtomicU64::new(0),
            sample,
            passes: Passes::default(),
            long_chains: LongChains::default(),
            saving: Saving::default(),
            opened: Opened::default(),
            bytes_max: AtomicU64::new(u64::MAX),
        }
    }

    /// A region as it is now.
    pub fn region(&self, number: usize) -> Arc<ChainRegion> {
        self.lock_region(number).region.clone()
    }

    /// The same chains, which do not change, for a snapshot. Each region is copied when it changes next.
    pub fn at_present(&self) -> Self {
        let Self { keyspace, spec, regions, bytes, end, start, .. } = self;
        let copy = |region: &Mutex<Arc<ChainRegion>>| {
            Mutex::new(region.lock().expect("no panic while held").clone())
        };
        let (bytes, end) = (bytes.load(Ordering::Relaxed), end.load(Ordering::Acquire));
        let start = start.load(Ordering::Acquire);
        Self {
            keyspace: *keyspace,
            spec: *spec,
            regions: regions.iter().map(copy).collect(),
            bytes: AtomicUsize::new(bytes),
            end: AtomicU64::new(end),
            start: AtomicU64::new(start),
            sample: LiveSample::default(),
            passes: Passes::default(),
            long_chains: LongChains::default(),
            saving: Saving::default(),
            opened: Opened::default(),
            bytes_max: AtomicU64::new(u64::MAX),
        }
    }

    /// The segment to which records were appended last. No head is behind it.
    pub fn last_segment(&self) -> SegmentId {
        SegmentId(self.end.load(Ordering::Acquire))
    }

    /// Notes that a record was appended to a segment, before it is a head.
    pub(super) fn note_segment(&self, segment: SegmentId) {
        self.end.fetch_max(segment.0, Ordering::AcqRel);
    }

    /// Notes that a region has grown.
    pub(super) fn note_grown(&self, bytes: u64) {
        self.bytes.fetch_add(bytes as usize, Ordering::Relaxed);
    }

    /// Behind the segment to which records were appended last. Not before any head.
    pub(super) fn end(&self) -> Address {
        Address::end_of(self.last_segment())
    }

    /// Slots of a region for this number of items in all.
    pub fn slots_for(spec: &ChainedSpec, items: u64) -> u64 {
        let slots = items as f64 / spec.chain_length_mean / REGIONS as f64;
        (slots.ceil() as u64).next_multiple_of(2).max(SLOTS_MIN)
    }

    /// Slots of a region from now on, if there are `slots`: a multiple of these by a power of two, for the items that
    /// are live. If memory does not suffice for that, there are fewer, and chains are longer.
    pub fn slots_wanted(&self, slots: u64, now_ms: u64) -> u64 {
        // The mean length stays within a factor of two, from 0.75 to 1.5 times that of the plan.
        let needed = Self::slots_for(&self.spec, (self.sample.live(now_ms).items / 1.5) as u64);
        let mut factor = needed.div_ceil(slots).next_power_of_two();
        let slot_bytes = shape(&self.spec, self.spec.pointer_bytes as usize).slot_bytes() as u64;
        let bytes = |factor: u64| factor.saturating_mul(slots * REGIONS * slot_bytes);
        while factor > 1 && bytes(factor) > self.bytes_max.load(Ordering::Relaxed) {
            factor /= 2;
        }
        slots * factor
    }

    /// Bounds the growth of the directory. What there is already stays.
    pub fn set_bytes_max(&self, bytes: u64) {
        self.bytes_max.store(bytes, Ordering::Relaxed);
    }

    /// Number of records after which chains of this number of slots in each region are long.
    pub fn records_max(&self, slots: u64) -> u64 {
        (3.0 * self.spec.chain_length_mean * (slots * REGIONS) as f64).max(1024.0) as u64
    }

    /// The region of the keys with this hash.
    pub fn lock(&self, hash: KeyHash) -> LockedRegion<'_> {
        self.lock_region(Self::region_of(hash))
    }

    /// The number of the region of the keys with this hash.
    pub fn region_of(hash: KeyHash) -> usize {
        hash.prefix(REGION_BITS) as usize
    }

    pub fn lock_region(&self, number: usize) -> LockedRegion<'_> {
        let region = self.regions[number].lock().expect("no panic while held");
        LockedRegion { directory: self, region }
    }

    /// The heads of the chains that may have a key of this hash.
    pub fn heads(&self, hash: KeyHash) -> Heads {
        let region = self.lock(hash);
        let (end, bytes) = (self.end(), region.pointer_bytes());
        region.region.chains_of(hash).filter_map(|(_, head)| end.before(head.0, bytes)).collect()
    }

    /// Where the chains start that readers of current versions know. Chains of older versions, which start before,
    /// may have been cleared when a lock of their region was taken before this call.
    pub fn start(&self) -> Address {
        Address::from_raw(self.start.load(Ordering::Acquire))
    }

    /// Tells readers that chains will be cleared before `oldest`, which is where current versions start.
    pub fn start_at(&self, oldest: Address) {
        self.start.fetch_max(oldest.to_raw(), Ordering::AcqRel);
    }

    /// Clears what the chains have before `oldest`: chains whose youngest record is older end. Call
    /// [`Directory::start_at`] before.
    pub fn clear_before(&self, oldest: Address) {
        for number in 0..self.regions.len() {
            let mut region = self.lock_region(number);
            for slot in (0..region.region.len()).map(Slot) {
                if region.head(slot).is_some_and(|head| head < oldest) {
                    region.clear(slot);
                }
            }
        }
    }

    /// Gives pointers another byte if those of a log that begins at `oldest` and has the segment `newest` need it soon.
    /// To be called before records are appended to `newest`.
    pub fn widen_if_needed(&self, oldest: Address, newest: SegmentId) {
        if oldest > Address::end_of(newest) || Address::end_of(newest).reaches(oldest, POINTER_BYTES_MIN) {
            return;
        }
        (0..self.regions.len()).for_each(|number| self.lock_region(number).widen_if_needed(oldest, newest));
    }

    /// Slots of a region.
    pub fn slots(&self) -> u64 {
        self.lock_region(0).region.len() as u64
    }

    /// Slots of the region with the most. The others grow to that when they change.
    pub fn slots_max(&self) -> u64 {
        (0..self.regions.len()).map(|number| self.region(number).len() as u64).max().unwrap_or(0)
    }

    /// Whether chains of a plan with `spec` are those of this directory.
    pub fn suits(&self, spec: &ChainedSpec) -> bool {
        let (own, other) = (shape(&self.spec, 4), shape(spec, 4));
        own == other && self.spec.chain_length_mean == spec.chain_length_mean
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed) as u64
    }

    /// Whether filters say that most absent keys are absent.
    pub fn has_filters(&self) -> bool {
        matches!(self.spec.directory, ChainedDirectory::Enhanced { .. })
    }
}

pub(super) fn shape(spec: &ChainedSpec, pointer_bytes: usize) -> SlotShape {
    SlotShape { pointer_bytes, filter_bytes: filter_bytes(spec) }
}

/// Bytes of the filter of a slot.
pub(super) fn filter_bytes(spec: &ChainedSpec) -> usize {
    match spec.directory {
        ChainedDirectory::Base => 0,
        ChainedDirectory::Enhanced { filter_bits } => {
            let bits = f64::from(filter_bits) * spec.chain_length_mean;
            (bits / 8.0).ceil().clamp(1.0, alluvium_index::chain_region::FILTER_BYTES_MAX as f64) as usize
        }
    }
}
