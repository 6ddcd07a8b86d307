//! The settings of a cache.

use std::sync::Arc;

use alluvium_base::KeyHasher;
use alluvium_io::Clock;

use crate::access::{Access, Concurrent, ConcurrentReads, Exclusive};
use crate::error::BuildError;
use crate::evicting::{Evicting, Purpose, Shape};
use crate::eviction::Eviction;
use crate::hasher::Hasher;
use crate::inline::{CELL_BYTES_MAX, TINY_BYTES};
use crate::limits::{self, MEMORY_BYTES_MAX, Numbers, PARTITIONS_MAX};
use crate::memory::PAGE_BYTES;
use crate::partition::{Common, Partition};
use crate::partitions::Partitions;
use crate::region::POSITION_BITS;
use crate::sync::AtomicU64;
use crate::zone::{Codec, Compression, Dictionaries};

use super::handle::Cache;

/// Partitions for each of several threads that write. Two threads, half of whose requests are sets, are 1.1 times as
/// fast with eight partitions each as with one; with popular items in batches, 1.2 times.
const PARTITIONS_PER_THREAD: usize = 8;

/// Minimum number of items for which [`Builder::room_for`] makes room: one item takes at most a quarter of its log.
const ITEMS_MIN: usize = 5;

/// Maximum bytes of an item besides key and value: header, expiry and flags.
pub(super) const ITEM_OVERHEAD_BYTES: usize = 24;

const ITEM_BYTES_MAX: usize = crate::item::ITEM_WORDS_MAX * 8;

/// Settings of a cache. Made by [`Cache::builder`].
///
/// Behaviour: [`memory_limit`](Self::memory_limit), [`eviction`](Self::eviction),
/// [`item_bytes_max`](Self::item_bytes_max), [`clock`](Self::clock). Performance:
/// [`payload_bytes_mean`](Self::payload_bytes_mean), [`payload_bytes_fixed`](Self::payload_bytes_fixed),
/// [`for_threads`](Self::for_threads), [`partitions`](Self::partitions), [`hasher`](Self::hasher).
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) memory_limit: usize,
    pub(crate) partitions: usize,
    pub(crate) payload_bytes_mean: usize,
    pub(super) payload_bytes_fixed: Option<usize>,
    pub(super) item_bytes_max: usize,
    pub(super) eviction: Eviction,
    pub(super) compressed: Option<Compressed>,
    /// Width of positions.
    position_bits: u32,
    pub(crate) common: Common,
}

/// Settings of the compressed zone of a cache: [`Builder::compressed`].
///
/// The zone is zExpander's (Wu's thesis, chapter 3). Items that the hot zone, the cache as it is otherwise, evicts move
/// to blocks of some 2 KiB, which are compressed. A get that finds its item there takes some microseconds; an item that
/// is used again soon moves back. For most absent keys the zone is asked without decompression. The memory is divided
/// so that the hot zone serves [`hot_percent`](Self::hot_percent) of the gets that find their item: it grows and
/// shrinks while the cache is used, between a tenth and six tenths.
///
/// Items of more than 8 KiB, and of more than a quarter of a segment of a small zone (256 KiB in a large one), do not
/// go to the zone. No item is larger than a quarter of the smallest hot zone. Nothing is stored in cells
/// ([`Builder::payload_bytes_fixed`]). Each thread that reads keeps a buffer of some 16 KiB besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compressed {
    /// How blocks are compressed. Default LZ4.
    pub codec: Codec,
    /// The share of the gets that find their item which the hot zone should serve, in percent, from 1 to 100. Default
    /// 80: with 90 the zone has less memory, and what gets save by fewer decompressions goes to sets after misses.
    pub hot_percent: u8,
}

impl Default for Compressed {
    fn default() -> Self {
        Self { codec: Codec::default(), hot_percent: 80 }
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            memory_limit: 64 << 20,
            partitions: 1,
            payload_bytes_mean: 200,
            payload_bytes_fixed: None,
            item_bytes_max: 1 << 20,
            eviction: Eviction::default(),
            compressed: None,
            position_bits: POSITION_BITS,
            common: Common::default(),
        }
    }
}

impl Builder {
    /// Resident bytes of everything: items, index, bookkeeping. Default 64 MiB, maximum 16 TiB.
    ///
    /// Memory becomes resident as items are added, whatever the limit. A log takes the 4 KiB pages that contain its
    /// items; from 16 MiB on (half of a smaller log) it takes huge pages, the last of which may be used in part. Beside
    /// a compressed zone only logs of 64 MiB and more do. The index grows with the items, by a factor of four before a
    /// bucket would overflow. Right after that it takes up to 160 bytes per item, or seven cells per item where items
    /// are stored in cells; at the limit it takes 12 bytes, or a cell and a seventh. Its initial size is up to 256 KiB
    /// per partition. The set that finds it full first moves its entries to a larger index, which takes some 25 ns per
    /// entry, while reads continue.
    pub fn memory_limit(mut self, bytes: usize) -> Self {
        self.memory_limit = bytes;
        self
    }

    /// Sets the memory limit to what `items` items of [`payload_bytes_mean`](Self::payload_bytes_mean) bytes need in
    /// the partitions; set those two first. If that exceeds the maximum, the limit becomes `usize::MAX`, which
    /// [`build`](Self::build) refuses.
    pub fn room_for(mut self, items: usize) -> Self {
        let parts = self.partitions.clamp(1, PARTITIONS_MAX);
        if limits::are_too_many(items, self.payload_bytes_mean) {
            self.memory_limit = usize::MAX;
            return self;
        }
        // By chance some buckets of the index overflow, so it has room for fewer items than its log.
        let items = (items + items / 160).div_ceil(parts).max(ITEMS_MIN);
        let each = Shape::for_items(items, self.purpose(self.payload_bytes_mean, false));
        self.memory_limit =
            parts * (each.bytes() + size_of::<Partition<Evicting, Concurrent>>() + PAGE_BYTES);
        self
    }

    /// Sets [`partitions`](Self::partitions) to a good number for `threads` threads that write a [`Concurrent`] cache
    /// at the same time, so that they rarely wait for a lock: one for a single thread, otherwise eight per thread, but
    /// at most 4,096. Call it before [`room_for`](Self::room_for).
    pub fn for_threads(self, threads: usize) -> Self {
        let wanted = if threads <= 1 { 1 } else { threads.saturating_mul(PARTITIONS_PER_THREAD) };
        self.partitions(wanted.min(PARTITIONS_MAX))
    }

    /// Number of parts with a log and an index of their own, chosen by key hash. Default 1, maximum 4,096. Each takes
    /// some 10 KiB and up to ten memory mappings, of which Linux allows a process 65,530 unless `vm.max_map_count` is
    /// changed.
    pub fn partitions(mut self, partitions: usize) -> Self {
        self.partitions = partitions;
        self
    }

    /// Bytes of key and value of an item, on average; default 200. Add 8 for an expiry and 8 for flags. It determines
    /// how the memory is divided between index and items: if items are smaller, the index forgets some while the logs
    /// have room; if they are larger, part of the index stays unused. [`Cache::resize`] divides it again by the items
    /// that are present.
    ///
    /// A mean of 16 or less means the same as 16 [fixed bytes](Self::payload_bytes_fixed).
    pub fn payload_bytes_mean(mut self, bytes: usize) -> Self {
        self.payload_bytes_mean = bytes.max(1);
        self.payload_bytes_fixed = None;
        self
    }

    /// Bytes of key and value together if all items, or nearly all, have the same size; replaces
    /// [`payload_bytes_mean`](Self::payload_bytes_mean). Under S3-FIFO, up to 240 bytes, most of the memory is then for
    /// items of at most this size without expiry and flags, which are stored in the index: a lookup mostly waits for
    /// memory once instead of twice. Smaller items take the same room. There is room for a seventh as many other items.
    /// Items are evicted for those in their bucket of twelve instead of for any; the same memory holds a seventh more
    /// of them, so the number of misses stays the same.
    pub fn payload_bytes_fixed(mut self, bytes: usize) -> Self {
        self.payload_bytes_mean = bytes.max(1);
        self.payload_bytes_fixed = Some(bytes.max(1));
        self
    }

    /// Maximum bytes of an item, including its key and 24 bytes of overhead; default 1 MiB. Values above 128 MiB are
    /// reduced to that. No item takes more than a quarter of a partition's log. Less than the mean of key and value is
    /// refused.
    pub fn item_bytes_max(mut self, bytes: usize) -> Self {
        self.item_bytes_max = bytes.min(ITEM_BYTES_MAX);
        self
    }

    /// The policy that chooses which items are evicted. Default [`Eviction::S3Fifo`].
    pub fn eviction(mut self, eviction: Eviction) -> Self {
        self.eviction = eviction;
        self
    }

    /// Gives part of the memory to items that were evicted, in compressed blocks, so that it holds more items. Default:
    /// none. See [`Compressed`].
    pub fn compressed(mut self, compressed: Compressed) -> Self {
        self.compressed = Some(compressed);
        self
    }

    /// Settings of a cache in the file `path`, whose content is there again when the file is opened by the next
    /// process: see [`SurvivingCache`](crate::SurvivingCache). Of the settings so far, it has
    /// [`memory_limit`](Self::memory_limit), which is also about the size of the file,
    /// [`partitions`](Self::partitions), [`payload_bytes_mean`](Self::payload_bytes_mean), SipHash as the
    /// [`hasher`](Self::hasher) of a new file, and [`clock`](Self::clock).
    #[cfg(all(target_os = "linux", not(miri), not(loom)))]
    pub fn survive(
        self,
        path: impl Into<std::path::PathBuf>,
        survive: crate::Survive,
    ) -> crate::SurvivingBuilder {
        crate::SurvivingBuilder::new(self, path.into(), survive)
    }

    /// The hash function for keys. Default: folded multiplications with a random seed. For short keys they take a third
    /// of the instructions of XXH3, which takes a fifth of SipHash's time. Only SipHash resists keys that an adversary
    /// chose.
    pub fn hasher(mut self, hasher: KeyHasher) -> Self {
        self.common.hasher = Hasher::Given(hasher);
        self
    }

    /// Chooses the partition of a key by XXH3-64 with this seed: that of `partitions` whose number is the hash times
    /// `partitions`, divided by 2<sup>64</sup> and rounded down. So a program that knows the seed can tell which thread
    /// uses the partition, and send it the requests for the key. All else follows from a hash with a secret. Replaces
    /// [`hasher`](Self::hasher); costs one more hash, 3 ns of a short key.
    pub fn partitions_by(mut self, seed: u64) -> Self {
        self.common.hasher = Hasher::directed(seed);
        self
    }

    /// The source of the time for expiry. Default: the system's monotonic clock.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.common.clock = clock;
        self
    }

    /// Narrower positions, which repeat after fewer laps of a log: only for tests.
    #[doc(hidden)]
    pub fn position_bits(mut self, bits: u32) -> Self {
        self.position_bits = bits;
        self
    }

    /// A cache that any thread reads and writes: [`Concurrent`].
    ///
    /// # Errors
    /// [`BuildError`] if the settings contradict each other or the system refuses the memory.
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

    /// `count` exclusive caches that share the memory limit and the hash function, and each take the keys that
    /// [`Cache::owner_of`] assigns to them: EREW over `count` threads.
    ///
    /// On a machine with several NUMA nodes the memory of a cache comes from the node of the thread that first writes
    /// it, so a thread that stays on a node has its items there. Tested on one node only.
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
        self.common = self.common.started();
        let shape = self.shape_of::<A>(self.numbers(self.memory_limit))?;
        let codec = self.compressed.map_or_else(Codec::default, |compressed| compressed.codec);
        let compression = Compression::new(codec, self.memory_limit);
        let partition = |_| {
            let policy = Evicting::new(self.eviction, self.position_bits);
            Partition::evicting(self.common.clone(), policy, shape, compression.clone())
        };
        let all = (0..self.partitions).map(partition).collect::<Result<A::Parts<_>, _>>()?;
        let hasher = self.common.hasher.clone();
        Ok(Cache { partitions: Partitions { all, hasher }, settings: self, era: AtomicU64::new(0) })
    }

    /// The purpose of partitions whose items have `payload` bytes of key and value on average, and are mostly stored
    /// inline if `are_inline`.
    pub(super) fn purpose(&self, payload: usize, are_inline: bool) -> Purpose {
        let has_probation = self.eviction.has_probation();
        let cell_payload = self.payload_bytes_fixed.unwrap_or(TINY_BYTES);
        let has_cells = self.compressed.is_none()
            && has_probation
            && cell_payload <= CELL_BYTES_MAX
            && (are_inline || payload <= cell_payload);
        Purpose {
            payload: payload.min(ITEM_BYTES_MAX),
            cell_payload: has_cells.then_some(cell_payload),
            item_bytes_max: self.item_bytes_max,
            has_probation,
        }
    }

    /// The numbers with which a limit is checked.
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

    /// The sizes of each partition's parts, with room for items of the mean size.
    fn shape_of<A: Access>(&self, numbers: Numbers) -> Result<Shape, BuildError> {
        let purpose = self.purpose(self.payload_bytes_mean, false);
        numbers.share_out(|share| self.shape::<A>(share, purpose).filter(Shape::has_room_for_mean))
    }

    /// The sizes of a partition of `share` bytes, including the `Partition` itself; `None` if that is too little to be
    /// useful.
    pub(super) fn shape<A: Access>(&self, share: usize, purpose: Purpose) -> Option<Shape> {
        let bytes = share.checked_sub(size_of::<Partition<Evicting, A>>())?;
        match self.compressed {
            None => Shape::within(bytes, purpose),
            Some(Compressed { codec, hot_percent }) => {
                let shared = if codec.learns() {
                    Dictionaries::bytes_max(share * self.partitions).div_ceil(self.partitions)
                } else {
                    0
                };
                Shape::with_zone(bytes.checked_sub(shared)?, purpose, hot_percent.into())
            }
        }
    }
}
