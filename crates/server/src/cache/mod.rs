//! The memory engine as a store: all databases in one cache, so that they share its memory by use.
//!
//! The cache may forget an item at any time. It keeps strings only: the members of a hash or set are items of their own
//! in the engine, and a cache that forgets some of them would return wrong collections.

mod clock;
mod database;
mod figures;
#[cfg(target_os = "linux")]
mod file_figures;
mod gate;
mod kept;
mod key;
mod transaction;
mod watches;

use std::hash::{BuildHasher, RandomState};
#[cfg(target_os = "linux")]
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use alluvium_cache::{BuildError, Builder, Cache, Compressed};
#[cfg(target_os = "linux")]
use alluvium_cache::{Opened, Survive, SurviveError};

use crate::metrics::MetricSink;
use crate::store::{Database, DatabaseNumber, Databases, Store, StoreError, StoreHealth};
use clock::WallClock;
use database::CacheDatabase;
use gate::Gate;
use kept::Kept;
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
    /// Whether clients of datagrams can tell which part of a cache in memory has a key: then each part is used by one
    /// worker, apart from connections. Costs 3 ns a request; of no use to one worker.
    pub is_directed: bool,
}

impl CacheSettings {
    /// A cache of this size, for items of 128 bytes, without compression.
    pub fn new(memory_bytes_max: u64) -> Self {
        Self { memory_bytes_max, item_bytes_mean: None, compressed: None, is_directed: false }
    }
}

/// The file of a [`CacheStore`] that survives its process.
#[cfg(target_os = "linux")]
#[derive(Clone, Debug)]
pub struct SurvivingFile {
    /// Its name.
    pub path: PathBuf,
    /// What the content survives.
    pub survive: Survive,
    /// Whether a file that cannot be opened is replaced by an empty one.
    pub reset: bool,
}

/// What all databases share.
struct Items {
    cache: Kept,
    gate: Gate,
    watches: Watches,
    /// A bit for each database that is open.
    opened: AtomicU16,
    /// Whether an item that expires was ever stored: then the cache's count may include expired ones.
    has_expired: AtomicBool,
    memory_bytes_max: u64,
    /// The seed of the hash that chooses the part of a key, if others may know it.
    direction_seed: Option<u64>,
}

impl CacheStore {
    /// An empty store of these settings for `threads` threads.
    ///
    /// # Errors
    /// [`BuildError`]: too little or too much memory, or the system refuses it.
    pub fn new(settings: CacheSettings, threads: usize) -> Result<Self, BuildError> {
        let mut builder = Self::builder(settings, threads);
        if let Some(compressed) = settings.compressed {
            builder = builder.compressed(compressed);
        }
        let direction_seed = (settings.is_directed && threads > 1).then(|| RandomState::new().hash_one(0));
        if let Some(seed) = direction_seed {
            builder = builder.partitions_by(seed);
        }
        let cache = Kept::InMemory(builder.build()?);
        Ok(Self::over(cache, settings.memory_bytes_max, threads, direction_seed))
    }

    /// A store in a file, with what it had when it was used last. The settings are the same each time. Of
    /// the settings of compression it has the codec.
    ///
    /// # Errors
    /// [`SurviveError`]: the settings, or a file that is not such a cache, is used by another process, or was made with
    /// other settings. The file is as it was.
    #[cfg(target_os = "linux")]
    pub fn surviving(
        settings: CacheSettings,
        threads: usize,
        file: SurvivingFile,
    ) -> Result<Self, SurviveError> {
        let compressed = settings.compressed;
        let builder = Self::builder(settings, threads).survive(file.path, file.survive);
        let builder = match compressed {
            Some(compressed) => builder.compressed(compressed.codec),
            None => builder,
        };
        let cache = builder.reset(file.reset).open()?;
        let store = Self::over(Kept::InFile(cache), settings.memory_bytes_max, threads, None);
        // Which databases have items is not known before.
        store.items.opened.store(u16::MAX, Ordering::Release);
        Ok(store)
    }

    /// How the content of the file was found; `None` for a store in memory.
    #[cfg(target_os = "linux")]
    pub fn opened_file(&self) -> Option<Opened> {
        match &self.items.cache {
            Kept::InMemory(_) => None,
            Kept::InFile(cache) => Some(cache.opened()),
        }
    }

    fn builder(settings: CacheSettings, threads: usize) -> Builder {
        let CacheSettings { memory_bytes_max, item_bytes_mean, .. } = settings;
        let bytes = usize::try_from(memory_bytes_max).unwrap_or(usize::MAX);
        let parts = if threads <= 1 { 1 } else { threads.saturating_mul(PARTITIONS_PER_THREAD) };
        let parts = parts.min(bytes / PARTITION_BYTES_MIN).max(1);
        // As many for each worker.
        let parts = if parts > threads { parts / threads * threads } else { parts };
        Cache::builder()
            .partitions(parts)
            .payload_bytes_mean(item_bytes_mean.unwrap_or(ITEM_BYTES_MEAN))
            .item_bytes_max(ITEM_BYTES_MAX)
            .memory_limit(bytes)
            .clock(Arc::new(WallClock::default()))
    }

    fn over(cache: Kept, memory_bytes_max: u64, threads: usize, direction_seed: Option<u64>) -> Self {
        let items = Arc::new(Items {
            cache,
            gate: Gate::new(threads),
            watches: Watches::default(),
            opened: AtomicU16::new(1),
            has_expired: AtomicBool::new(false),
            memory_bytes_max,
            direction_seed,
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
        let failure: Option<std::io::ErrorKind> = match &self.items.cache {
            Kept::InMemory(_) => None,
            #[cfg(target_os = "linux")]
            Kept::InFile(cache) => cache.failure(),
        };
        match failure {
            None => StoreHealth::Healthy,
            Some(kind) => {
                let reason = format!("the file of the cache cannot be written: {kind}");
                StoreHealth::Failed { reason, resumable: false }
            }
        }
    }

    fn observe(&self, sink: &mut dyn MetricSink) {
        match &self.items.cache {
            Kept::InMemory(cache) => figures::observe_cache(&cache.stats().total(), sink),
            #[cfg(target_os = "linux")]
            Kept::InFile(cache) => {
                file_figures::observe_surviving(&cache.stats(), cache.len_estimate(), sink)
            }
        }
    }

    fn resume(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn direction_seed(&self) -> Option<u64> {
        self.items.direction_seed
    }

    fn memory_bytes(&self) -> u64 {
        self.items.cache.used_bytes()
    }

    fn memory_bytes_max(&self) -> u64 {
        self.items.memory_bytes_max
    }

    /// S3-FIFO; of the policies that Redis has, LRU over all keys decides most like it.
    fn eviction_policy(&self) -> &'static str {
        "allkeys-lru"
    }
}

#[cfg(test)]
mod tests {
    use alluvium_base::checksum::checksum64;

    use super::*;

    #[test]
    fn a_worker_has_the_parts_of_its_keys() {
        for workers in [2, 3, 8] {
            let settings = CacheSettings { is_directed: true, ..CacheSettings::new(512 << 20) };
            let store = CacheStore::new(settings, workers).unwrap();
            let seed = store.direction_seed().unwrap();
            let cache = match &store.items.cache {
                Kept::InMemory(cache) => cache,
                #[cfg(target_os = "linux")]
                Kept::InFile(_) => unreachable!("it has no file"),
            };
            let parts = cache.partitions();
            assert_eq!(parts, 2 * workers);
            let mut keys = vec![0; parts];
            for number in 0..1000 * parts {
                let key = number.to_le_bytes();
                let part = cache.partition_of(&key);
                // As in `Directory::partition_of`.
                let owner = ((u128::from(checksum64(&key, seed)) * workers as u128) >> 64) as usize;
                assert_eq!(part / 2, owner);
                keys[part] += 1;
            }
            assert!(keys.iter().all(|keys| (800..1200).contains(keys)), "{keys:?}");
        }
        let alone = CacheSettings { is_directed: true, ..CacheSettings::new(64 << 20) };
        assert!(CacheStore::new(alone, 1).unwrap().direction_seed().is_none());
        assert!(CacheStore::new(CacheSettings::new(64 << 20), 2).unwrap().direction_seed().is_none());
    }
}
