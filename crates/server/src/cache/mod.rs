//! The memory engine as a store: all databases in one cache, so that they share its memory by use.
//!
//! The cache may forget an item at any time. It keeps strings only: the members of a hash or set are items of their own
//! in the engine, and a cache that forgets some of them would return wrong collections.

mod clock;
mod database;
mod figures;
mod gate;
mod key;
mod transaction;
mod watches;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use alluvium_cache::{BuildError, Cache, Compressed};

use crate::metrics::MetricSink;
use crate::store::{Database, DatabaseNumber, Databases, Store, StoreError, StoreHealth};
use clock::WallClock;
use database::CacheDatabase;
use gate::Gate;
use transaction::CacheTransaction;
use watches::Watches;

/// Parts of the cache with a lock of their own, for each of several threads. More of them would save little waiting and
/// lower the size of the largest item; fewer, larger parts take no measurable time more or less.
const PARTITIONS_PER_THREAD: usize = 2;
/// Minimum bytes of such a part: a quarter of it bounds the size of an item.
const PARTITION_BYTES_MIN: usize = 32 << 20;
/// Maximum bytes of an item, as of the flash engine.
const ITEM_BYTES_MAX: usize = 65 << 20;
/// Bytes of key and value of an item for which the memory is divided.
const ITEM_BYTES_MEAN: usize = 128;

/// A store in memory that forgets items when it is full.
pub struct CacheStore {
    databases: [CacheDatabase; DatabaseNumber::COUNT],
    items: Arc<Items>,
}

/// Settings of a [`CacheStore`].
#[derive(Clone, Copy, Debug)]
pub struct CacheSettings {
    /// Maximum resident bytes.
    pub memory_bytes_max: u64,
    /// Bytes of key and value of an item, on average, by which the memory is divided; by default 128.
    pub item_bytes_mean: Option<usize>,
    /// Gives part of the memory to evicted items, in compressed blocks.
    pub compressed: Option<Compressed>,
}

impl CacheSettings {
    /// A cache of this size, for items of 128 bytes, without compression.
    pub fn new(memory_bytes_max: u64) -> Self {
        Self { memory_bytes_max, item_bytes_mean: None, compressed: None }
    }
}

/// What all databases share.
struct Items {
    cache: Cache,
    gate: Gate,
    watches: Watches,
    /// A bit for each database that is open.
    opened: AtomicU16,
    /// Whether an item that expires was ever stored: then the cache's count may include expired ones.
    has_expired: AtomicBool,
    memory_bytes_max: u64,
}

impl CacheStore {
    /// An empty store of these settings for `threads` threads.
    ///
    /// # Errors
    /// [`BuildError`]: too little or too much memory, or the system refuses it.
    pub fn new(settings: CacheSettings, threads: usize) -> Result<Self, BuildError> {
        let CacheSettings { memory_bytes_max, item_bytes_mean, compressed } = settings;
        let bytes = usize::try_from(memory_bytes_max).unwrap_or(usize::MAX);
        let parts = if threads <= 1 { 1 } else { threads.saturating_mul(PARTITIONS_PER_THREAD) };
        let parts = parts.min(bytes / PARTITION_BYTES_MIN).max(1);
        let mut builder = Cache::builder()
            .partitions(parts)
            .payload_bytes_mean(item_bytes_mean.unwrap_or(ITEM_BYTES_MEAN))
            .item_bytes_max(ITEM_BYTES_MAX)
            .memory_limit(bytes)
            .clock(Arc::new(WallClock::default()));
        if let Some(compressed) = compressed {
            builder = builder.compressed(compressed);
        }
        Ok(Self::over(builder.build()?, memory_bytes_max))
    }

    fn over(cache: Cache, memory_bytes_max: u64) -> Self {
        let items = Arc::new(Items {
            cache,
            gate: Gate::default(),
            watches: Watches::default(),
            opened: AtomicU16::new(1),
            has_expired: AtomicBool::new(false),
            memory_bytes_max,
        });
        let databases = DatabaseNumber::all().map(|number| CacheDatabase::new(Arc::clone(&items), number));
        let databases: Vec<CacheDatabase> = databases.collect();
        let databases = databases.try_into().unwrap_or_else(|_| unreachable!("one for each number"));
        Self { databases, items }
    }
}

impl Items {
    fn is_open(&self, number: DatabaseNumber) -> bool {
        self.opened.load(Ordering::Acquire) & (1 << number.position()) != 0
    }

    /// Whether no database but the first was ever selected.
    fn has_one_database(&self) -> bool {
        self.opened.load(Ordering::Acquire) == 1
    }
}

impl Databases for CacheStore {
    fn database(&self, number: DatabaseNumber) -> &dyn Database {
        debug_assert!(self.items.is_open(number), "a database that was selected");
        &self.databases[number.position()]
    }

    /// Nothing else happens meanwhile, so `body` is called once.
    fn atomically(
        &self,
        body: &mut dyn FnMut(&dyn Databases) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let _alone = self.items.gate.close();
        let transaction = CacheTransaction::new(&self.databases);
        body(&transaction)?;
        transaction.apply()
    }

    /// A transaction comes before or after each lookup of several keys, and writes of single keys may come in between.
    fn at_one_moment(
        &self,
        body: &mut dyn FnMut(&dyn Databases) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        body(self)
    }
}

impl Store for CacheStore {
    fn open(&self, number: DatabaseNumber) -> Result<(), StoreError> {
        self.items.opened.fetch_or(1 << number.position(), Ordering::AcqRel);
        Ok(())
    }

    fn opened(&self) -> Vec<DatabaseNumber> {
        DatabaseNumber::all().filter(|number| self.items.is_open(*number)).collect()
    }

    fn health(&self) -> StoreHealth {
        StoreHealth::Healthy
    }

    fn observe(&self, sink: &mut dyn MetricSink) {
        figures::observe_cache(&self.items.cache.stats().total(), sink);
    }

    fn resume(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn memory_bytes(&self) -> u64 {
        let total = self.items.cache.stats().total();
        total.index_bytes_now + total.log_bytes_used + total.zone.arena_bytes + total.zone.directory_bytes
    }

    fn memory_bytes_max(&self) -> u64 {
        self.items.memory_bytes_max
    }

    /// S3-FIFO; of the policies that Redis has, LRU over all keys decides most like it.
    fn eviction_policy(&self) -> &'static str {
        "allkeys-lru"
    }
}
