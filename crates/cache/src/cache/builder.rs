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
use crate::log::POSITION_BITS;
use crate::memory::PAGE_BYTES;
use crate::partition::{Common, Partition, Purpose, Shape};

use super::handle::Cache;

/// Partitions for each of several threads that write. Two threads, half of whose requests are sets, make 1.1 times as
/// many with eight partitions each as with one, of popular items and in batches 1.2 times.
const PARTITIONS_PER_THREAD: usize = 8;

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
    /// Resident bytes of everything: items, index, bookkeeping. Default 64 MiB. Memory becomes resident as it is used.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// The memory limit that has room for `items` items of [`payload_bytes_mean`](Self::payload_bytes_mean) bytes in
    /// the partitions; set those before.
    pub fn room_for(mut self, items: usize) -> Self {
        let parts = self.partitions.max(1);
        // By chance some buckets of the index are asked to hold more than they can, so that it holds less than its log.
        let items = (items + items / 160).div_ceil(parts);
        let each = Shape::for_items(items, self.purpose(self.payload_bytes_mean, false));
        self.memory_limit = parts * (each.bytes() + size_of::<Partition<Concurrent>>() + PAGE_BYTES);
        self
    }

    /// As many [`partitions`](Self::partitions) as so many threads want that write a [`Concurrent`] cache at the same
    /// time, so that they seldom meet at a lock: one for one thread, eight a thread for several. Set it before
    /// [`room_for`](Self::room_for).
    pub fn for_threads(self, threads: usize) -> Self {
        self.partitions(if threads <= 1 { 1 } else { PARTITIONS_PER_THREAD * threads })
    }

    /// Parts with a log and an index of their own, by key hash. Default 1. Each takes some 10 KiB.
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

    /// Bytes of the largest item, key and 24 bytes included; default 1 MiB, at most 128 MiB. No item takes more than a
    /// quarter of a partition's log.
    pub fn item_bytes_max(mut self, bytes: usize) -> Self {
        self.item_bytes_max = bytes.min(crate::item::ITEM_WORDS_MAX * 8);
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
        let share = self.memory_limit.checked_div(count).ok_or(BuildError::NoPartitions)?;
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
        let shape = self.shape::<A>(self.memory_limit, self.purpose(self.payload_bytes_mean, false))?;
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
            payload,
            cell_payload: has_cells.then_some(cell_payload),
            item_bytes_max: self.item_bytes_max,
            has_probation,
        }
    }

    /// The parts of each partition under a limit for all.
    pub(super) fn shape<A: Access>(
        &self,
        memory_limit: usize,
        purpose: Purpose,
    ) -> Result<Shape, BuildError> {
        let share = memory_limit.checked_div(self.partitions).ok_or(BuildError::NoPartitions)?;
        let within = |share: usize| Shape::within(share.checked_sub(size_of::<Partition<A>>())?, purpose);
        within(share).ok_or_else(|| {
            let mut enough = 16 << 10;
            while within(enough).is_none() {
                enough *= 2;
            }
            BuildError::MemoryTooSmall { memory_limit, memory_min: enough * self.partitions }
        })
    }
}
