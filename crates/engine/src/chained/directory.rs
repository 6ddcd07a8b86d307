//! [`Directory`]: the heads of a keyspace's chains (SkimpyStash, SIGMOD 2011, §4).

use std::sync::Arc;

use alluvium_base::{KeyHash, KeyspaceId, SegmentId};
use alluvium_index::chain_region::{ChainRegion, Choice, Pointer, Slot, SlotShape};
use alluvium_io::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use alluvium_io::sync::{Mutex, MutexGuard};
use alluvium_model::{ChainedDirectory, ChainedSpec};
use smallvec::SmallVec;

use super::address::Address;
use super::long_chains::LongChains;
use super::passes::Passes;
use super::read_chain::{ReadChain, RegionHeads};
use super::sample::LiveSample;
use crate::item::Link;

/// log2 of the number of regions.
const REGION_BITS: u32 = 8;
const REGIONS: u64 = Directory::REGIONS as u64;
/// Minimum slots of a region.
const SLOTS_MIN: u64 = 4;
/// Bytes of a pointer once four do not suffice.
const POINTER_BYTES_MAX: usize = 5;

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
}

/// In which of two chains a key is, found out when their heads were these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub is_in_second: bool,
    heads: [Option<Pointer>; 2],
}

/// Where a record is to be put.
#[derive(Debug)]
pub(crate) enum Place {
    In(Slot),
    /// Both chains may have the key, and nobody knows in which it is.
    Undecided,
}

/// A locked region.
#[derive(Debug)]
pub(crate) struct LockedRegion<'d> {
    directory: &'d Directory,
    region: MutexGuard<'d, Arc<ChainRegion>>,
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
        }
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
        }
    }

    /// Behind the segment to which records were appended last. Not before any head.
    fn end(&self) -> Address {
        Address::end_of(SegmentId(self.end.load(Ordering::Acquire)))
    }

    /// Slots of a region for this number of items in all.
    pub fn slots_for(spec: &ChainedSpec, items: u64) -> u64 {
        let slots = items as f64 / spec.chain_length_mean / REGIONS as f64;
        (slots.ceil() as u64).next_multiple_of(2).max(SLOTS_MIN)
    }

    /// Slots of a region from now on, if there are `slots`: a multiple of these by a power of two, for the items that
    /// are live.
    pub fn slots_wanted(&self, slots: u64, now_ms: u64) -> u64 {
        // The mean length stays within a factor of two, from 0.75 to 1.5 times that of the plan.
        let needed = Self::slots_for(&self.spec, (self.sample.live(now_ms).items / 1.5) as u64);
        let factor = needed.div_ceil(slots).next_power_of_two();
        slots * factor
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

    /// Gives pointers another byte if those of the log from `oldest` on need it soon.
    pub fn widen_if_needed(&self, oldest: Address) {
        (0..self.regions.len()).for_each(|number| self.lock_region(number).widen_if_needed(oldest));
    }

    /// Slots of a region.
    pub fn slots(&self) -> u64 {
        self.lock_region(0).region.len() as u64
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

impl LockedRegion<'_> {
    /// Doubles the slots until there are `slots`.
    pub fn grow_to(&mut self, slots: u64) {
        if self.region.len() as u64 >= slots {
            return;
        }
        let before = self.region.memory_bytes();
        while (self.region.len() as u64) < slots {
            self.change().grow();
        }
        let grown = self.region.memory_bytes() - before;
        self.directory.bytes.fetch_add(grown as usize, Ordering::Relaxed);
    }

    /// The heads of the region of this number, as they are now. The region is copied when it changes next while they
    /// exist.
    pub fn heads(&self, number: usize) -> RegionHeads {
        RegionHeads::new(number, self.region.clone(), self.directory.end())
    }

    /// Whether the chain is as it was when it was read.
    pub fn is_still(&self, read: &ReadChain) -> bool {
        self.region.len() == read.slots && self.head(read.slot) == Some(read.head)
    }

    /// Ends a chain in front of the next record.
    pub fn clear(&mut self, slot: Slot) {
        self.change().replace(slot, None, []);
    }

    fn change(&mut self) -> &mut ChainRegion {
        Arc::make_mut(&mut self.region)
    }

    fn pointer_bytes(&self) -> usize {
        self.region.shape().pointer_bytes
    }

    fn widen_if_needed(&mut self, oldest: Address) {
        let end = self.directory.end();
        if self.pointer_bytes() == POINTER_BYTES_MAX || end.reaches(oldest, self.pointer_bytes()) {
            return;
        }
        let before = self.region.memory_bytes();
        let shape = shape(&self.directory.spec, POINTER_BYTES_MAX);
        let bytes = self.pointer_bytes();
        let widen = |pointer: Pointer| {
            end.before(pointer.0, bytes).map(|head| Pointer(head.pointer(POINTER_BYTES_MAX)))
        };
        *self.region = Arc::new(self.region.with_pointers(shape, widen));
        let grown = self.region.memory_bytes() - before;
        self.directory.bytes.fetch_add(grown as usize, Ordering::Relaxed);
    }

    /// The youngest record of a chain.
    fn head(&self, slot: Slot) -> Option<Address> {
        self.directory.end().before(self.region.head(slot)?.0, self.pointer_bytes())
    }

    fn pointers(&self, hash: KeyHash) -> [Option<Pointer>; 2] {
        let (first, second) = self.region.slots_of(hash);
        [self.region.head(first), second.and_then(|second| self.region.head(second))]
    }

    /// The slots of a key as they are now, with the shorter chain's to be chosen if the key is in none. To be completed
    /// by a walk of both chains.
    pub fn undecided(&self, hash: KeyHash) -> Decision {
        let is_in_second = match self.region.choose(hash) {
            Choice::Slot(slot) | Choice::Walk(slot, _) => self.is_second(slot),
        };
        Decision { is_in_second, heads: self.pointers(hash) }
    }

    /// The head of the key's chain in its first or second slot.
    pub fn head_of(&self, hash: KeyHash, is_in_second: bool) -> Option<Address> {
        self.head(self.slot(hash, is_in_second)?)
    }

    fn slot(&self, hash: KeyHash, is_in_second: bool) -> Option<Slot> {
        let (first, second) = self.region.slots_of(hash);
        if is_in_second { second } else { Some(first) }
    }

    fn is_second(&self, slot: Slot) -> bool {
        self.region.shape().filter_bytes > 0 && slot.0 >= self.region.len() / 2
    }

    /// Where a record of a key is to be put. `known` is the slot of the key if a record in memory has it.
    pub fn place(&self, hash: KeyHash, known: Option<bool>, decision: Option<&Decision>) -> Place {
        if let Some(slot) = known.and_then(|is_in_second| self.slot(hash, is_in_second)) {
            return Place::In(slot);
        }
        if let Choice::Slot(slot) = self.region.choose(hash) {
            return Place::In(slot);
        }
        let still = decision.filter(|decision| decision.heads == self.pointers(hash));
        match still.and_then(|decision| self.slot(hash, decision.is_in_second)) {
            Some(slot) => Place::In(slot),
            None => Place::Undecided,
        }
    }

    /// The link of a record in this slot that will be in the segment that ends at `end`. `None` if the chain is so old
    /// that no pointer leads there.
    pub fn link(&self, slot: Slot, end: Address) -> Option<Link> {
        let is_in_second = self.is_second(slot);
        let Some(head) = self.head(slot) else {
            return Some(Link { pointer: 0, is_long: false, is_in_second });
        };
        let bytes = (4..=POINTER_BYTES_MAX).find(|&bytes| end.reaches(head, bytes))?;
        Some(Link { pointer: head.pointer(bytes), is_long: bytes == POINTER_BYTES_MAX, is_in_second })
    }

    /// The same with a link of this length, which suffices.
    pub fn link_of(&self, slot: Slot, is_long: bool) -> Link {
        let bytes = if is_long { POINTER_BYTES_MAX } else { 4 };
        let pointer = self.head(slot).map_or(0, |head| head.pointer(bytes));
        Link { pointer, is_long, is_in_second: self.is_second(slot) }
    }

    /// Makes a record the head of a chain.
    pub fn push(&mut self, slot: Slot, hash: KeyHash, record: Address) {
        self.directory.end.fetch_max(record.segment().0, Ordering::AcqRel);
        let pointer = Pointer(record.pointer(self.pointer_bytes()));
        self.change().push(slot, hash, pointer);
    }

    /// The same for a record that was found in the log.
    pub fn replay(&mut self, hash: KeyHash, link: &Link, record: Address) {
        let Some(slot) = self.slot(hash, link.is_in_second) else { return };
        if self.head(slot).is_none_or(|head| head < record) {
            if link.pointer == 0 {
                self.clear(slot);
            }
            self.push(slot, hash, record);
        }
    }
}

fn shape(spec: &ChainedSpec, pointer_bytes: usize) -> SlotShape {
    let filter_bytes = match spec.directory {
        ChainedDirectory::Base => 0,
        ChainedDirectory::Enhanced { filter_bits } => {
            let bits = f64::from(filter_bits) * spec.chain_length_mean;
            (bits / 8.0).ceil().clamp(1.0, alluvium_index::chain_region::FILTER_BYTES_MAX as f64) as usize
        }
    };
    SlotShape { pointer_bytes, filter_bytes }
}
