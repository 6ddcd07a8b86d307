//! A partition of a cache that survives: its zones, its buckets, and how it is read.

use std::io;
use std::sync::Arc;

use alluvium_base::KeyHash;
use crossbeam_utils::CachePadded;

use crate::canary::{Canary, is_broken};
use crate::index::{Place as HashPlace, partition_of};
use crate::item::{Metadata, Scratch};
use crate::memory::Array;
use crate::partition::ReadCounters;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, fence};

use super::beside::Beside;
use super::clean::Hands;
use super::descriptor::Descriptor;
use super::geometry::WAYS;
use super::medium::Medium;
use super::promote::PROMOTING_COUNT;
use super::shared::Shared;
use super::stored_item::{StoredItem, checksum};
use super::write_cache::{Popularity, WriteCache};

/// See the module.
#[derive(Debug)]
pub(crate) struct Part<M> {
    pub shared: Arc<Shared<M>>,
    /// Its number.
    pub number: usize,
    pub beside: Array<Beside>,
    pub hands: CachePadded<Mutex<Hands>>,
    pub reads: ReadCounters,
    pub counters: CachePadded<Counters>,
    pub write_cache: Option<WriteCache>,
}

/// Where an item was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// In the file, by the descriptor of this way.
    File(usize),
    /// In the file, in a block.
    Block(usize),
    /// In the write cache.
    Memory,
}

/// What happened. Kept by the writer, except for `broken`.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub inserted: AtomicU64,
    pub replaced: AtomicU64,
    pub overwritten: AtomicU64,
    /// Sets of items in the write cache.
    pub hot_sets: AtomicU64,
    /// Items that went from the write cache to the file.
    pub cooled: AtomicU64,
    pub removed: AtomicU64,
    pub evicted: AtomicU64,
    pub evicted_by_index: AtomicU64,
    pub expired: AtomicU64,
    pub kept: AtomicU64,
    /// Items that came to a block.
    pub packed: AtomicU64,
    /// Bytes of items before and after compression.
    pub packed_raw_bytes: AtomicU64,
    pub packed_bytes: AtomicU64,
    pub blocks_copied: AtomicU64,
    /// Items that a get took out of their block.
    pub promoted: AtomicU64,
    /// Gets that found their item in a block. Counted by readers.
    pub unpacked: AtomicU64,
    pub cleanings: AtomicU64,
    pub too_large: AtomicU64,
    /// Descriptors whose item did not survive, each counted when it was first read.
    pub broken: AtomicU64,
}

/// Where a key is looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sought<'k> {
    pub key: &'k [u8],
    pub tag: u16,
    /// Number of its bucket in the partition.
    pub bucket: usize,
}

/// What a descriptor turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// There is none.
    Empty,
    /// One of an earlier version of its zone: on the medium, too, it never counts again.
    Stale,
    /// One that may be that of an item.
    Current,
    /// It names no place in this partition.
    Foreign,
}

impl<M: Medium> Part<M> {
    /// A partition with these hands.
    ///
    /// # Errors
    /// The system's error if it refuses memory.
    pub fn new(shared: Arc<Shared<M>>, number: usize, mut hands: Hands) -> io::Result<Self> {
        let write_cache = shared.write_cache.map(WriteCache::new).transpose()?;
        hands.popularity = shared.write_cache.map(Popularity::new).unwrap_or_default();
        Ok(Self {
            write_cache,
            beside: Array::new(shared.geometry.buckets)?,
            shared,
            number,
            hands: CachePadded::new(Mutex::new(hands)),
            reads: ReadCounters::default(),
            counters: CachePadded::default(),
        })
    }

    /// The first step of every write.
    ///
    /// # Panics
    /// Within a function that decides about an item of the cache.
    #[inline(always)]
    pub fn enter(&self) -> MutexGuard<'_, Hands> {
        crate::reentry::refuse_within(self.shared.number);
        // A writer that panicked did so in the caller's function, between changes.
        self.hands.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Where a key with this hash is looked up.
    #[inline(always)]
    pub fn sought<'k>(&self, hash: KeyHash, key: &'k [u8]) -> Sought<'k> {
        let HashPlace { bucket, tag } = HashPlace::of(hash, self.shared.geometry.buckets);
        Sought { key, tag, bucket }
    }

    /// Number of a bucket of the partition in the file.
    #[inline(always)]
    pub fn bucket(&self, bucket: usize) -> usize {
        self.number * self.shared.geometry.buckets + bucket
    }

    /// Number of a zone of the partition in the file.
    #[inline(always)]
    pub fn zone(&self, zone: usize) -> usize {
        self.number * self.shared.geometry.zones + zone % self.shared.geometry.zones
    }

    /// What a descriptor of this partition is. Beside a writer it may be anything.
    #[inline(always)]
    pub fn state(&self, descriptor: Descriptor) -> State {
        if descriptor.is_none() {
            return State::Empty;
        }
        let geometry = &self.shared.geometry;
        let (place, units) = (descriptor.place(), descriptor.units());
        let first = self.number * geometry.zones;
        let is_within = place.zone.wrapping_sub(first) < geometry.zones
            && units > 0
            && place.offset + units <= geometry.zone_units();
        if !is_within {
            return State::Foreign;
        }
        if self.shared.version(place.zone) == place.version { State::Current } else { State::Stale }
    }

    /// Whether the checksum of an item's bytes is the one of its descriptor.
    #[inline]
    pub fn is_intact(&self, bytes: &[u8], descriptor: Descriptor) -> bool {
        self.checksum(bytes, descriptor) == descriptor.checksum()
    }

    /// The checksum for a descriptor of these bytes.
    #[inline]
    pub fn checksum(&self, bytes: &[u8], descriptor: Descriptor) -> u32 {
        if self.shared.medium.makes(super::medium::Mistake::ChecksumUnseeded) {
            return alluvium_base::checksum::checksum32(bytes, 0);
        }
        checksum(bytes, descriptor)
    }

    /// Starts loading the bucket of a key.
    #[inline(always)]
    pub fn prefetch_bucket(&self, hash: KeyHash) {
        self.prefetch_sought(self.sought(hash, &[]));
    }

    /// Starts loading the bucket of a key, and what is beside it.
    #[inline(always)]
    pub fn prefetch_sought(&self, sought: Sought<'_>) {
        let at = self.shared.geometry.bucket_at(self.bucket(sought.bucket));
        self.shared.medium.prefetch(at, super::geometry::BUCKET_BYTES);
        alluvium_index::prefetch_element(&self.beside, sought.bucket);
    }

    /// Starts loading the item of a key, whose bucket has been loaded.
    #[inline(always)]
    pub fn prefetch_item(&self, hash: KeyHash) {
        let HashPlace { bucket, tag } = HashPlace::of(hash, self.shared.geometry.buckets);
        let bucket = self.bucket(bucket);
        for way in 0..WAYS {
            let descriptor = self.shared.descriptor(bucket, way);
            if descriptor.tag() == tag && self.state(descriptor) == State::Current {
                let place = descriptor.place();
                let at = self.shared.geometry.unit_at(place.zone, place.offset);
                self.shared.medium.prefetch(at, Shared::<M>::item_bytes(descriptor));
                return;
            }
        }
    }

    /// Calls `take` with value and metadata of the item of `key`, if there is one, and returns its result.
    #[inline]
    pub fn get_with<T>(&self, sought: Sought<'_>, take: impl FnOnce(&[u8], Metadata) -> T) -> Option<T> {
        let mut scratch = Scratch::new();
        let found = self.find(sought, &mut scratch);
        self.reads.count(found.is_some(), true);
        let mut is_promoted = false;
        match found? {
            Found::File(way) => self.beside[sought.bucket].count_access(way),
            Found::Block(way) => {
                self.count_unpacked();
                self.beside[sought.bucket].count_access(way);
                is_promoted = self.beside[sought.bucket].count(way) >= PROMOTING_COUNT;
            }
            Found::Memory => {}
        }
        let taken =
            scratch.lend(|bytes| StoredItem::parse(bytes).map(|item| take(item.value, item.metadata)));
        if is_promoted {
            self.promote(sought);
        }
        taken
    }

    /// Whether `key` has an item.
    pub fn contains(&self, sought: Sought<'_>) -> bool {
        let mut scratch = Scratch::new();
        let found = self.find(sought, &mut scratch);
        if let Some(Found::File(way) | Found::Block(way)) = found {
            self.beside[sought.bucket].count_access(way);
        }
        found.is_some()
    }

    /// Copies the item of `key` to `scratch` and returns where it was.
    #[inline]
    fn find(&self, sought: Sought<'_>, scratch: &mut Scratch) -> Option<Found> {
        let beside = &self.beside[sought.bucket];
        let version = beside.version();
        loop {
            let since = version.begin_read();
            if beside.hot() > 0 && self.find_hot(sought, scratch) {
                if !version.is_unchanged(since) {
                    continue;
                }
                let is_there = scratch.lend(|bytes| {
                    StoredItem::parse(bytes).is_some_and(|item| !self.shared.is_expired(item.metadata))
                });
                return is_there.then_some(Found::Memory);
            }
            let found = self.find_since(sought, scratch, since);
            // What `find_since` returns was found in an unchanged bucket; it finds nothing in one that changed.
            if found.is_some() || version.is_unchanged(since) {
                return found;
            }
        }
    }

    /// Copies the item of `key` from the write cache to `scratch`; returns whether it was there, as far as can be said
    /// before the version is checked.
    #[inline(never)]
    fn find_hot(&self, sought: Sought<'_>, scratch: &mut Scratch) -> bool {
        let Some(cache) = &self.write_cache else { return false };
        cache.candidates(sought).any(|slot| {
            scratch.fill(cache.item_bytes(slot), |out| cache.copy_out(slot, out));
            scratch.lend(|bytes| StoredItem::parse(bytes).is_some_and(|item| item.key == sought.key))
        })
    }

    #[inline]
    fn find_since(
        &self,
        sought: Sought<'_>,
        scratch: &mut Scratch,
        since: crate::index::Version,
    ) -> Option<Found> {
        let (beside, bucket) = (&self.beside[sought.bucket], self.bucket(sought.bucket));
        for way in 0..WAYS {
            let descriptor = Descriptor { words: [0, self.shared.second_word(bucket, way)] };
            if descriptor.tag() != sought.tag {
                continue;
            }
            let descriptor = self.shared.descriptor(bucket, way);
            if self.state(descriptor) != State::Current {
                continue;
            }
            scratch.fill(Shared::<M>::item_bytes(descriptor), |out| self.shared.copy_item(descriptor, out));
            // A zone is written again only after its version has changed: see `Part::renew`.
            if !is_broken(Canary::ValidationUnfenced) {
                fence(Ordering::Acquire);
            }
            if self.state(descriptor) != State::Current || !beside.version().is_unchanged(since) {
                continue;
            }
            if !beside.is_verified(way) {
                if !scratch.lend(|bytes| self.is_intact(bytes, descriptor)) {
                    self.counters.broken.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                beside.set_verified(way);
            }
            let is_it = scratch.lend(|bytes| match StoredItem::parse(bytes) {
                Some(item) => item.key == sought.key && !self.shared.is_expired(item.metadata),
                None => false,
            });
            if is_it {
                return Some(Found::File(way));
            }
            if self.shared.packing.is_some() && self.find_in_block(sought, scratch) {
                return Some(Found::Block(way));
            }
        }
        None
    }

    /// Replaces a block in `scratch` by the item of `key` that is in it; returns whether there is one.
    #[inline(never)]
    fn find_in_block(&self, sought: Sought<'_>, scratch: &mut Scratch) -> bool {
        let Some(plain) = scratch.lend(|bytes| self.plain_of(bytes, sought.key)) else { return false };
        let is_live = StoredItem::parse(&plain).is_some_and(|item| !self.shared.is_expired(item.metadata));
        scratch.fill(plain.len(), |out| out.copy_from_slice(&plain));
        is_live
    }

    /// Calls `visit` with the items of a bucket.
    pub fn visit(&self, bucket: usize, visit: &mut impl FnMut(&[u8], &[u8], Metadata)) {
        let (beside, mut items) = (&self.beside[bucket], Vec::new());
        let bucket_of_file = self.bucket(bucket);
        loop {
            items.clear();
            let since = beside.version().begin_read();
            for way in 0..WAYS {
                let descriptor = self.shared.descriptor(bucket_of_file, way);
                if self.state(descriptor) != State::Current {
                    continue;
                }
                let mut bytes = vec![0; Shared::<M>::item_bytes(descriptor)];
                self.shared.copy_item(descriptor, &mut bytes);
                fence(Ordering::Acquire);
                if self.state(descriptor) == State::Current
                    && (beside.is_verified(way) || self.is_intact(&bytes, descriptor))
                {
                    items.push((descriptor.tag(), bytes));
                }
            }
            if beside.hot() > 0
                && let Some(cache) = &self.write_cache
            {
                for slot in cache.slots_of(bucket) {
                    let mut bytes = vec![0; cache.item_bytes(slot)];
                    cache.copy_out(slot, &mut bytes);
                    items.push((0, bytes));
                }
            }
            if beside.version().is_unchanged(since) {
                break;
            }
        }
        let mut visit = |item: StoredItem<'_>| {
            if !self.shared.is_expired(item.metadata) {
                visit(item.key, item.value, item.metadata);
            }
        };
        for (tag, bytes) in &items {
            match StoredItem::parse(bytes) {
                Some(item) => visit(item),
                None => {
                    // A block has one item of this bucket and tag.
                    let is_it = |key: &[u8]| {
                        let hash = self.shared.hash(key);
                        let sought = self.sought(hash, &[]);
                        partition_of(hash, self.shared.geometry.partitions) == self.number
                            && (sought.bucket, sought.tag) == (bucket, *tag)
                    };
                    self.in_block(bytes, is_it, &mut visit);
                }
            }
        }
    }
}
