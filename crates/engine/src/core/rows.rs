//! [`Rows`]: the row cache, which answers lookups without a read of the device.

use std::cell::RefCell;

use alluvium_base::KeyspaceId;
use alluvium_cache::{Cache, Codec, Compressed, Era, SetOptions};
use alluvium_io::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use alluvium_io::sync::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

use super::memory_limit::MemoryControl;
use super::row::{RowBuffer, RowKey, decode, encode};
use super::row_admission::RowAdmission;
use crate::item::Item;
use crate::level::Version;
use crate::table::Loan;

/// Number of parts of the cache with a lock of their own. Only fills take it, at most one for each read of the device.
const PARTITIONS: usize = 4;
/// Minimum bytes of a cache; with less, there is none.
const BYTES_MIN: u64 = (PARTITIONS as u64) << 15;
/// The same for a cache with compressed rows, whose buffers, dictionaries and smallest zones take half of it.
const COMPRESSED_BYTES_MIN: u64 = (PARTITIONS as u64) << 19;
/// Bytes of key and value for which index and log of the cache are divided at first.
const ROW_BYTES_MEAN: usize = 128;
/// Maximum bytes of a row.
const ROW_BYTES_MAX: usize = 64 << 10;

thread_local! {
    static ROW: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Items that gets found in tables, and keys that they did not find there.
///
/// A row says what the *tables* of a keyspace have for a key, never what the log has: a lookup asks the log before the
/// rows, so a write does not touch them. When a log store becomes a run, its items become the content of the tables,
/// and they replace the rows of their keys ([`Rows::carry`]) before readers can see a version without the store. The
/// [era](Cache::era) keeps out rows of lookups that began before: see [`Rows::begin_era`].
///
/// The row of a large item is its reference, as in tables, or its value: see [`Rows::admits_value`]. A reference saves
/// one read of two, in a hundredth of a value's memory, so conversions make rows of all references. A row may be
/// younger than the version of a lookup, never older, so the blob file that it names is one of the version or of a
/// later one.
///
/// Changes of items without a write to the log (clear, ingest, deletion of a prefix) begin an epoch of the keyspace,
/// which is a part of a row's key. Merges do not change what tables have for a key. Snapshots do not use rows, because
/// they see other content than the present one.
#[derive(Debug)]
pub(crate) struct Rows {
    /// `None` if the database was opened without.
    cache: Option<Cache>,
    /// Bytes that the cache may take while there is no memory limit.
    pub bytes_without_limit: u64,
    /// Minimum bytes of the cache.
    bytes_min: u64,
    /// Bytes that the cache may take now; 0 if it is not in use, and then it takes its minimum.
    bytes: AtomicU64,
    admission: RowAdmission,
    /// The bytes, as a part of those for filters and indexes. Held while the cache is resized, and while items are
    /// carried: beside a resize, the cache does not find rows that have not moved yet, and these would be left behind.
    loan: Mutex<Option<Loan>>,
    /// Whether the cache may have another size than [`Shared::share_with_rows`] would give it now.
    ///
    /// [`Shared::share_with_rows`]: super::shared::Shared::share_with_rows
    is_outdated: AtomicBool,
}

/// What a row cache is made for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RowsSettings {
    /// Bytes while there is no memory limit.
    pub bytes_without_limit: u64,
    /// The memory limit at first.
    pub memory_bytes_max: Option<u64>,
    /// How rows are compressed, if they are.
    pub codec: Option<Codec>,
    /// Of the hash function.
    pub seed: u64,
}

/// The row cache and its use since the opening.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RowStats {
    /// Number of lookups that a row answered without a read of a table, with an item or with the absence of one.
    pub hits: u64,
    /// Of these, number that a compressed row answered.
    pub compressed_hits: u64,
    /// Number of lookups that found neither an item in the log nor a row.
    pub misses: u64,
    /// Number of rows.
    pub rows: u64,
    /// Of these, number of compressed ones ([`crate::Builder::compress_rows`]).
    pub compressed_rows: u64,
    /// Bytes that the compressed rows take now.
    pub compressed_bytes: u64,
    /// Bytes that the rows and their index take now.
    pub bytes: u64,
    /// Maximum bytes that they may take now; 0 if no rows are kept.
    pub bytes_max: u64,
}

/// A keyspace's rows, to be replaced by items that come from the log.
#[derive(Debug)]
pub(crate) struct CarriedRows<'a> {
    pub(super) cache: &'a Cache,
    /// Whether there were rows after the era had begun.
    pub(super) has_rows: bool,
    /// Whether rows may be added.
    is_in_use: bool,
    _not_resized: MutexGuard<'a, Option<Loan>>,
    pub(super) keyspace: KeyspaceId,
    pub(super) epoch: u64,
}

impl Rows {
    /// A cache, or none if there is too little memory. Under a memory limit it begins small, and is resized.
    pub fn new(settings: &RowsSettings) -> Self {
        let &RowsSettings { bytes_without_limit, memory_bytes_max, codec, seed } = settings;
        let bytes_min = if codec.is_some() { COMPRESSED_BYTES_MIN } else { BYTES_MIN };
        let bytes = if memory_bytes_max.is_some() { bytes_min } else { bytes_without_limit };
        let cache = (bytes_without_limit >= bytes_min).then(|| {
            let builder = Cache::builder()
                .partitions(PARTITIONS)
                .payload_bytes_mean(ROW_BYTES_MEAN)
                .item_bytes_max(ROW_BYTES_MAX)
                .memory_limit(bytes as usize)
                .hasher(alluvium_base::KeyHasher::Xxh3 { seed });
            // Without address space for a cache the database works without.
            let Some(codec) = codec else { return builder.build().ok() };
            // The space for compressed rows never grows, so it is reserved for the largest cache.
            let bytes_max = memory_bytes_max.map_or(bytes, |limit| limit.max(bytes));
            let compressed = Compressed { codec, ..Compressed::default() };
            let cache = builder.compressed(compressed).memory_limit(bytes_max as usize).build().ok()?;
            cache.resize(bytes as usize).ok().map(|()| cache)
        });
        let cache = cache.flatten();
        let bytes = if cache.is_some() { bytes } else { 0 };
        Self {
            cache,
            bytes_without_limit,
            bytes_min,
            bytes: AtomicU64::new(bytes),
            admission: RowAdmission::default(),
            loan: Mutex::default(),
            is_outdated: AtomicBool::new(false),
        }
    }

    pub(super) fn in_use(&self) -> Option<&Cache> {
        self.cache.as_ref().filter(|_| self.bytes.load(Ordering::Relaxed) > 0)
    }

    /// The current era, to be taken before the version in which a lookup searches. `None` if there are no rows.
    #[inline]
    pub fn era(&self) -> Option<Era> {
        self.cache.as_ref().map(Cache::era)
    }

    /// Calls `found` with the item of `key`, or with `None` if it is known that the tables have none. Returns `found`
    /// if nothing is known.
    #[inline]
    pub fn find<R, F: FnOnce(Option<&Item<'_>>) -> R>(
        &self,
        keyspace: KeyspaceId,
        version: &Version,
        key: &[u8],
        found: F,
    ) -> std::result::Result<R, F> {
        let Some(cache) = self.in_use() else { return Err(found) };
        let Some(row_key) = RowKey::of(keyspace, version.epoch, key) else { return Err(found) };
        let mut found = Some(found);
        let outcome = cache.get_with(row_key.bytes(), |row| {
            found.take().map(|found| found(decode(row_key.key(), row.value).as_ref()))
        });
        match (outcome.flatten(), found) {
            (Some(outcome), _) => Ok(outcome),
            (None, Some(found)) => Err(found),
            (None, None) => unreachable!("it returned a result"),
        }
    }

    /// Calls `found` for those of `keys` that have rows, with the place of the key and the row's item, or `None` if the
    /// row says that the tables have none. Accesses to memory overlap.
    pub fn find_each<'k>(
        &self,
        keyspace: KeyspaceId,
        version: &Version,
        keys: impl Iterator<Item = &'k [u8]>,
        mut found: impl FnMut(usize, Option<&Item<'_>>),
    ) {
        let Some(cache) = self.in_use() else { return };
        let row_keys = keys
            .enumerate()
            .filter_map(|(place, key)| Some((place, RowKey::of(keyspace, version.epoch, key)?)));
        let (places, row_keys): (Vec<usize>, Vec<RowKey>) = row_keys.unzip();
        cache.get_many_with(&row_keys, |number, row| {
            if let Some(row) = row {
                found(places[number], decode(row_keys[number].key(), row.value).as_ref());
            }
        });
    }

    /// Copies the row of `key` to `buffer`, and returns the item in it; `Some(None)` if it is known that the tables
    /// have none.
    pub fn copy<'b>(
        &self,
        keyspace: KeyspaceId,
        version: &Version,
        key: &[u8],
        buffer: &'b mut RowBuffer,
    ) -> Option<Option<Item<'b>>> {
        let cache = self.in_use()?;
        let row_key = RowKey::of(keyspace, version.epoch, key)?;
        if !cache.get_into(row_key.bytes(), &mut buffer.row) {
            return None;
        }
        buffer.key.clear();
        buffer.key.extend_from_slice(key);
        Some(decode(&buffer.key, &buffer.row))
    }

    /// Whether the value of a large item, of this many bytes, is to take the place of its reference.
    pub fn admits_value(&self, value_bytes: usize) -> bool {
        if value_bytes > ROW_BYTES_MAX || self.in_use().is_none() {
            return false;
        }
        let stats = self.stats();
        self.admission.takes_value(value_bytes, stats.bytes, stats.bytes_max)
    }

    /// Stores what a lookup in `version` found in the tables: an item, or the absence of one. Unless it `is_kept`, the
    /// cache decides whether it is worth that.
    pub fn fill(
        &self,
        era: Era,
        keyspace: KeyspaceId,
        version: &Version,
        key: &[u8],
        item: Option<&Item<'_>>,
        is_kept: bool,
    ) {
        let Some(cache) = self.in_use() else { return };
        let Some(row_key) = RowKey::of(keyspace, version.epoch, key) else { return };
        if item.is_some_and(|item| item.value.len() > ROW_BYTES_MAX) {
            return;
        }
        if !is_kept && !self.admission.takes_row(cache) {
            return;
        }
        with_row(item, |row| {
            // A row that is too large for the cache is none.
            let _ = cache.set_in_era(era, row_key.bytes(), row, SetOptions::default());
        });
    }

    /// Makes the cache take at most the bytes that `share` says, which are lent from the share of filters and indexes
    /// if there is a memory limit. Takes some 100 ns for each row, and some address space until the database is
    /// closed, so a size that is larger by less than a quarter is ignored, and a cache that must shrink gets an eighth
    /// less than it may take.
    ///
    /// `share` is called with the lock of the size held, so the last size is by what is true last. While another thread
    /// has the lock, this returns at once, and that thread does the work: a resize calls `share` again, and
    /// [`Rows::is_outdated`] holds after items were carried.
    pub fn resize<'m>(&self, share: impl Fn() -> (u64, Option<&'m MemoryControl>)) {
        let Some(cache) = &self.cache else { return };
        self.is_outdated.store(true, Ordering::Release);
        while self.is_outdated() {
            let Ok(mut loan) = self.loan.try_lock() else { return };
            self.is_outdated.swap(false, Ordering::AcqRel);
            let (bytes, memory) = share();
            self.resize_to(cache, &mut loan, bytes, memory);
        }
    }

    /// Whether a resize is left to do, because items were carried at its time.
    pub fn is_outdated(&self) -> bool {
        self.is_outdated.load(Ordering::Acquire)
    }

    fn resize_to(&self, cache: &Cache, loan: &mut Option<Loan>, bytes: u64, memory: Option<&MemoryControl>) {
        let before = self.bytes.load(Ordering::Relaxed);
        let bytes = if bytes < self.bytes_min { 0 } else { bytes };
        let is_lent = loan.is_some() == memory.is_some();
        if is_lent && (bytes == before || bytes > before && bytes - before < before / 4) {
            return;
        }
        let is_smaller = is_lent && bytes < before;
        let bytes = if is_smaller && bytes - bytes / 8 >= self.bytes_min { bytes - bytes / 8 } else { bytes };
        self.bytes.store(bytes.min(before), Ordering::Relaxed);
        let taken = bytes.max(self.bytes_min);
        let larger = (taken > before).then(|| memory.map(|memory| memory.index.lend(taken)));
        // Without address space for more, the cache stays as it is.
        if cache.resize(taken as usize).is_ok() {
            *loan = larger.unwrap_or_else(|| memory.map(|memory| memory.index.lend(taken)));
            self.bytes.store(bytes, Ordering::Relaxed);
        } else {
            self.bytes.store(before, Ordering::Relaxed);
        }
    }

    /// Rows and their use since the opening.
    pub fn stats(&self) -> RowStats {
        let total = self.cache.as_ref().map(|cache| cache.stats().total()).unwrap_or_default();
        let zone = total.zone;
        let compressed_bytes = zone.arena_bytes + zone.directory_bytes + zone.dictionary_bytes;
        RowStats {
            hits: total.hits,
            compressed_hits: total.zone.hits,
            misses: total.misses,
            rows: total.items,
            compressed_rows: total.zone.items,
            compressed_bytes,
            bytes: total.log_bytes_used + total.index_bytes_now + compressed_bytes,
            bytes_max: self.bytes.load(Ordering::Relaxed),
        }
    }

    /// Begins an era: rows of lookups that began before it are not stored any more. From the return until the items of
    /// a closed log store can be found in tables, every lookup that begins finds them in the log, so it stores no row
    /// of their keys.
    pub fn begin_era(&self) {
        if let Some(cache) = &self.cache {
            cache.begin_era();
        }
    }

    /// For replacing rows of a keyspace by items of the log. The caller has begun an era, and loaded `version` after
    /// that.
    /// `None` if there are no rows and none are kept.
    pub fn carry(&self, keyspace: KeyspaceId, version: &Version) -> Option<CarriedRows<'_>> {
        let _not_resized = self.loan.lock().expect("no panic while held");
        let cache = self.cache.as_ref()?;
        let (has_rows, is_in_use) = (!cache.is_empty(), self.in_use().is_some());
        let epoch = version.epoch;
        let carried = CarriedRows { cache, has_rows, is_in_use, _not_resized, keyspace, epoch };
        (has_rows || is_in_use).then_some(carried)
    }
}

impl CarriedRows<'_> {
    /// Replaces the row of the item's key, if it has one. Adds it if the item is a reference.
    #[inline]
    pub fn replace(&self, item: &Item<'_>) {
        if !self.has_rows && !item.is_reference() {
            return;
        }
        let Some(key) = RowKey::of(self.keyspace, self.epoch, item.key) else { return };
        if self.is_in_use && item.is_reference() || self.cache.contains(key.bytes()) {
            self.set(key.bytes(), item);
        }
    }

    /// Removes the row of the key, if it has one.
    pub fn forget(&self, key: &[u8]) {
        if let Some(key) = RowKey::of(self.keyspace, self.epoch, key) {
            self.cache.remove(key.bytes());
        }
    }

    #[inline(never)]
    fn set(&self, key: &[u8], item: &Item<'_>) {
        if with_row(Some(item), |row| self.cache.set(key, row)).is_err() {
            self.cache.remove(key);
        }
    }
}

/// Calls `body` with the row of an item, or of the absence of one.
fn with_row<R>(item: Option<&Item<'_>>, body: impl FnOnce(&[u8]) -> R) -> R {
    ROW.with_borrow_mut(|row| {
        row.clear();
        encode(item, row);
        body(row)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_cache_can_be_made() {
        for codec in [None, Some(Codec::None), Some(Codec::Lz4), Some(Codec::Zstd)] {
            let bytes_min = if codec.is_some() { COMPRESSED_BYTES_MIN } else { BYTES_MIN };
            for memory_bytes_max in [None, Some(4 << 20), Some(64 << 20), Some(8 << 30)] {
                let rows = |bytes_without_limit: u64| {
                    Rows::new(&RowsSettings { bytes_without_limit, memory_bytes_max, codec, seed: 1 })
                };
                assert!(rows(bytes_min).in_use().is_some(), "{codec:?} {memory_bytes_max:?}");
                assert!(rows(bytes_min - 1).in_use().is_none(), "{codec:?} {memory_bytes_max:?}");
            }
        }
    }
}
