//! How a cache is set up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alluvium_base::KeyHasher;
use alluvium_io::{Clock, SystemClock};

use crate::access::{Access, Concurrent, ConcurrentReads, Exclusive};
use crate::error::BuildError;
use crate::eviction::Eviction;
use crate::hasher::Hasher;
use crate::inline::{CELL_BYTES_MAX, TINY_BYTES};
use crate::limits::{self, MEMORY_BYTES_MAX, Numbers, PARTITIONS_MAX};
use crate::log::POSITION_BITS;
use crate::memory::PAGE_BYTES;
use crate::partition::{Common, Partition, Purpose, Shape};

use super::handle::Cache;

/// Partitions for each of several threads that write. Two threads, half of whose requests are sets, make 1.1 times as
/// many with eight partitions each as with one, of popular items and in batches 1.2 times.
const PARTITIONS_PER_THREAD: usize = 8;

/// Items for which [`Builder::room_for`] makes room at least: one takes no more than a quarter of its log.
const ITEMS_MIN: usize = 5;

/// What an item may have besides key and value: header, end and flags.
const ITEM_OVERHEAD_BYTES: usize = 24;

const ITEM_BYTES_MAX: usize = crate::item::ITEM_WORDS_MAX * 8;

/// Caches made so far.
static CACHES: AtomicU64 = AtomicU64::new(0);

/// Settings of a cache. Made by [`Cache::builder`].
///
/// Behaviour: [`memory_limit`](Self::memory_limit), [`eviction`](Self::eviction),
/// [`item_bytes_max`](Self::item_bytes_max), [`clock`](Self::clock). Performance:
/// [`payload_bytes_mean`](Self::payload_bytes_mean), [`payload_bytes_fixed`](Self::payload_bytes_fixed),
/// [`for_threads`](Self::for_threads), [`partitions`](Self::partitions), [`hasher`](Self::hasher).
#[derive(Clone, Debug)]
pub struct Builder {
    pub(super) memory_limit: usize,
    pub(super) partitions: usize,
    pub(super) payload_bytes_mean: usize,
    pub(super) payload_bytes_fixed: Option<usize>,
    pub(super) item_bytes_max: usize,
    pub(crate) common: Common,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            memory_limit: 64 << 20,
            partitions: 1,
            payload_bytes_mean: 200,
            payload_bytes_fixed: None,
            item_bytes_max: 1 << 20,
            common: Common {
                hasher: Hasher::default(),
                eviction: Eviction::default(),
                clock: Arc::new(SystemClock::default()),
                epoch_ms: 0,
                cache_number: 0,
                position_bits: POSITION_BITS,
            },
        }
    }
}

impl Builder {
    /// Resident bytes of everything: items, index, bookkeeping. Default 64 MiB, at most 16 TiB.
    ///
    /// Memory becomes resident as items come, whatever the limit. A log takes the 4 KiB pages that hold its items,
    /// from 16 MiB on (half of a smaller log) huge ones, the last of which may be used in part. The index grows with
    /// the items, by four times before a bucket would be full: right after that it takes up to 160 bytes an item, where
    /// cells hold items seven of them; at the limit 12 bytes, and a cell and a seventh. It begins with up to 256 KiB
    /// a partition. The set that finds it full moves its entries to a larger one first, which takes some 25 ns each,
    /// while reads go on.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// The memory limit that has room for `items` items of [`payload_bytes_mean`](Self::payload_bytes_mean) bytes in
    /// the partitions; set those before. More than any cache may have becomes `usize::MAX`, which
    /// [`build`](Self::build) refuses.
    pub fn room_for(mut self, items: usize) -> Self {
        let parts = self.partitions.clamp(1, PARTITIONS_MAX);
        if limits::are_too_many(items, self.payload_bytes_mean) {
            self.memory_limit = usize::MAX;
            return self;
        }
        // By chance some buckets of the index are asked to hold more than they can, so that it holds less than its log.
        let items = (items + items / 160).div_ceil(parts).max(ITEMS_MIN);
        let each = Shape::for_items(items, self.purpose(self.payload_bytes_mean, false));
        self.memory_limit = parts * (each.bytes() + size_of::<Partition<Concurrent>>() + PAGE_BYTES);
        self
    }

    /// As many [`partitions`](Self::partitions) as so many threads want that write a [`Concurrent`] cache at the same
    /// time, so that they seldom meet at a lock: one for one thread, eight a thread for several, but at most 4,096. Set
    /// it before [`room_for`](Self::room_for).
    pub fn for_threads(self, threads: usize) -> Self {
        let wanted = if threads <= 1 { 1 } else { threads.saturating_mul(PARTITIONS_PER_THREAD) };
        self.partitions(wanted.min(PARTITIONS_MAX))
    }

    /// Parts with a log and an index of their own, by key hash. Default 1, maximum 4,096. Each takes some 10 KiB and up
    /// to ten mappings of memory, of which Linux gives a process 65,530 unless `vm.max_map_count` says otherwise.
    pub fn partitions(mut self, partitions: usize) -> Self {
        self.partitions = partitions;
        self
    }

    /// Bytes of key and value of an item, on average; default 200. Count 8 more for an end and for flags. Decides how
    /// the memory is shared between index and items: were items smaller, the index would forget some while there is
    /// room; were they larger, some of it would lie idle. [`Cache::resize`] shares out anew, by the items that are
    /// there.
    ///
    /// With 16 or fewer it is as with 16 [bytes that are fixed](Self::payload_bytes_fixed).
    pub fn payload_bytes_mean(mut self, bytes: usize) -> Self {
        self.payload_bytes_mean = bytes.max(1);
        self.payload_bytes_fixed = None;
        self
    }

    /// Bytes of key and value together where all items, or nearly all, have as many; instead of
    /// [`payload_bytes_mean`](Self::payload_bytes_mean). Under S3-FIFO, up to 240 of them, most of the memory is then
    /// for items of at most so many bytes without an end and flags, which lie within the index: one wait for memory
    /// instead of two mostly. Smaller ones take as much room. There is room for a seventh as many others. Items make
    /// room for those in their bucket of twelve instead of for any; the same memory holds a seventh more of them, so
    /// that as many requests miss.
    pub fn payload_bytes_fixed(mut self, bytes: usize) -> Self {
        self.payload_bytes_mean = bytes.max(1);
        self.payload_bytes_fixed = Some(bytes.max(1));
        self
    }

    /// Bytes of the largest item, key and 24 bytes included; default 1 MiB, at most 128 MiB, to which more is reduced.
    /// No item takes more than a quarter of a partition's log. Less than the mean of key and value is refused.
    pub fn item_bytes_max(mut self, bytes: usize) -> Self {
        self.item_bytes_max = bytes.min(ITEM_BYTES_MAX);
        self
    }

    /// Which items make room for others. Default [`Eviction::S3Fifo`].
    pub fn eviction(mut self, eviction: Eviction) -> Self {
        self.common.eviction = eviction;
        self
    }

    /// How keys are hashed. Default folded multiplications with a random seed: a third of the instructions of XXH3 for
    /// short keys, which takes a fifth of SipHash's time. Only SipHash keeps keys apart that an adversary chose.
    pub fn hasher(mut self, hasher: KeyHasher) -> Self {
        self.common.hasher = Hasher::Given(hasher);
        self
    }

    /// Where the time for expiry comes from. Default the system's monotonic clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.common.clock = clock;
        self
    }

    /// Narrower positions, which repeat after fewer laps of a log: only tests want that.
    #[doc(hidden)]
    pub fn position_bits(mut self, bits: u32) -> Self {
        self.common.position_bits = bits;
        self
    }

    /// A cache that any thread reads and writes: [`Concurrent`].
    ///
    /// # Errors
    /// [`BuildError`] when the settings don't go together or the system refuses the memory.
    pub fn build(self) -> Result<Cache<Concurrent>, BuildError> {
        self.build_as()
    }

    /// A cache that any thread reads, and whose partitions have one [`Writer`](crate::Writer) each:
    /// [`ConcurrentReads`].
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_concurrent_reads(self) -> Result<Cache<ConcurrentReads>, BuildError> {
        self.build_as()
    }

    /// A cache that belongs to one thread at a time: [`Exclusive`].
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_exclusive(self) -> Result<Cache<Exclusive>, BuildError> {
        self.build_as()
    }

    /// `count` exclusive caches that share the memory limit, hash alike, and each take the keys that
    /// [`Cache::owner_of`] gives them: EREW over `count` threads.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_exclusive_each(self, count: usize) -> Result<Vec<Cache<Exclusive>>, BuildError> {
        let numbers = Numbers { owners: count, ..self.numbers(self.memory_limit) };
        self.shape_of::<Exclusive>(numbers)?;
        let share = self.memory_limit / count;
        (0..count).map(|_| self.clone().memory_limit(share).build_exclusive()).collect()
    }

    /// A cache of access mode `A`.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_as<A: Access>(mut self) -> Result<Cache<A>, BuildError> {
        let epoch = self.common.clock.monotonic().as_millis();
        self.common.epoch_ms = u64::try_from(epoch).unwrap_or(u64::MAX);
        self.common.cache_number = CACHES.fetch_add(1, Ordering::Relaxed);
        let shape = self.shape_of::<A>(self.numbers(self.memory_limit))?;
        let partitions = (0..self.partitions)
            .map(|_| Partition::new(self.common.clone(), shape))
            .collect::<Result<A::Parts<_>, _>>()?;
        Ok(Cache::new(partitions, self))
    }

    /// What partitions are for whose items have `payload` bytes of key and value on average and lie inline mostly, or
    /// not.
    pub(super) fn purpose(&self, payload: usize, are_inline: bool) -> Purpose {
        let has_probation = self.common.eviction.has_probation();
        let cell_payload = self.payload_bytes_fixed.unwrap_or(TINY_BYTES);
        let has_cells =
            has_probation && cell_payload <= CELL_BYTES_MAX && (are_inline || payload <= cell_payload);
        Purpose {
            payload: payload.min(ITEM_BYTES_MAX),
            cell_payload: has_cells.then_some(cell_payload),
            item_bytes_max: self.item_bytes_max,
            has_probation,
        }
    }

    /// The numbers that a limit is checked with.
    pub(super) fn numbers(&self, memory_limit: usize) -> Numbers {
        Numbers {
            memory_limit,
            owners: 1,
            partitions: self.partitions,
            payload: self.payload_bytes_mean,
            payload_max: self.item_bytes_max.saturating_sub(ITEM_OVERHEAD_BYTES),
            partition_bytes_max: MEMORY_BYTES_MAX,
        }
    }

    /// The parts of each partition, with room for items of the mean size.
    fn shape_of<A: Access>(&self, numbers: Numbers) -> Result<Shape, BuildError> {
        let purpose = self.purpose(self.payload_bytes_mean, false);
        numbers.share_out(|share| Self::shape::<A>(share, purpose).filter(Shape::has_room_for_mean))
    }

    /// The parts of a partition of `share` bytes, itself included; `None` if that is too little to be useful.
    pub(super) fn shape<A: Access>(share: usize, purpose: Purpose) -> Option<Shape> {
        Shape::within(share.checked_sub(size_of::<Partition<A>>())?, purpose)
    }
}
