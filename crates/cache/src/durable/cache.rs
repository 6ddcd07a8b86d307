//! The public interface of a cache that survives.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use alluvium_base::KeyHash;
use alluvium_io::LockedFile;

use crate::cache::{
    Cursor, HASH_SHIFT, IncrementError, KeyedWrites, Outcome, OwnedItem, SetOptions, Update, copies,
    keyed_writes,
};
use crate::error::TooLarge;
use crate::item::{ItemView, KEY_BYTES_MAX, Metadata, Token};
use crate::partition::{Change, Common};
use crate::pipeline::BATCH_LEN;
use crate::reentry::Deciding;
use crate::sync::AtomicU64;

use super::core::Core;
use super::descriptor::UNIT;
use super::error::SurviveError;
use super::file_medium::FileMedium;
use super::header::SessionState;
use super::medium::Medium;
use super::open::{OpenFile, Opened, set_session};
use super::packing::Packing;
use super::part::Part;
use super::shared::Shared;
use super::stored_item::OVERHEAD_BYTES;
use super::write_cache::Shape;

/// A cache in a file, whose content is there again when the file is opened by the next process. Any thread reads and
/// writes; reads take no lock.
///
/// ```
/// use alluvium_cache::{Cache, Survive};
///
/// let path = std::env::temp_dir().join(format!("alluvium-cache-{}", std::process::id()));
/// let open = || Cache::builder().memory_limit(8 << 20).survive(&path, Survive::Process).open();
/// open()?.set(b"key", b"value")?;
/// assert_eq!(open()?.get(b"key").as_deref(), Some(&b"value"[..]));
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// What it promises is chosen by [`Survive`](crate::Survive): after a crash an item may be absent, and an item that is
/// found is the one that was set last. An item that was removed, replaced or evicted before stays so, if the removal
/// had returned. Reads may find an item that does not survive yet.
///
/// Times of expiry are those of the clock's [`unix`](crate::Clock::unix) time, since the file outlives any other. While
/// it is open, time does not go back.
///
/// Items of at most 1 MiB, or a quarter of a zone, which is about a sixty-fourth of a partition. The file has the size
/// that it was made with. Its space is allocated before it is used; nobody may truncate it meanwhile.
#[derive(Debug)]
pub struct SurvivingCache {
    core: Core<FileMedium>,
    opened: Opened,
    /// Holds the lock on the file.
    _file: LockedFile,
    flushes_each_set: bool,
}

/// Why a cache that writes by itself refuses a write.
type Refused<E> = E;

impl SurvivingCache {
    /// The cache in an open file.
    pub(crate) fn over(
        open: OpenFile,
        common: &Common,
        path: &Path,
        write_cache: Option<Shape>,
        packing: Option<Packing>,
        flushes_each_set: bool,
    ) -> Result<Self, SurviveError> {
        let (start, opened, header) = (open.start(), open.opened, open.header);
        let system = |action| move |error| SurviveError::System { path: path.to_path_buf(), action, error };
        let (medium, file) = open.into_parts();
        let shared = Shared {
            medium,
            geometry: header.geometry,
            hasher: header.hasher,
            clock: Arc::clone(&common.clock),
            latest_ms: AtomicU64::new(0),
            packing,
            write_cache,
            number: common.number,
        };
        let core = Core::open(shared, start).map_err(system("get memory for"))?;
        if opened == Opened::Dropped {
            core.parts.iter().for_each(Part::clear);
            set_session(&core.shared.medium, SessionState::Open).map_err(system("write"))?;
        }
        Ok(Self { core, opened, _file: file, flushes_each_set })
    }

    pub(super) fn core(&self) -> &Core<FileMedium> {
        &self.core
    }

    /// How the content was found when the cache was opened.
    pub fn opened(&self) -> Opened {
        self.opened
    }

    /// Why the device failed, once it has: what was written since does not survive, and the next opening drops the
    /// content. Only with [`Survive::Power`](crate::Survive::Power).
    pub fn failure(&self) -> Option<io::ErrorKind> {
        self.core.shared.medium.failure()
    }

    /// Moves what is in the write cache to the file, and waits until all that was stored is on the device.
    ///
    /// # Errors
    /// The system's error if something could not be written.
    pub fn sync(&self) -> io::Result<()> {
        self.core.parts.iter().for_each(Part::cool_all);
        let medium = &self.core.shared.medium;
        medium.sync(0, medium.len())
    }

    /// A copy of the value of `key`.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.get_with(key, |item| item.value.to_vec())
    }

    /// Calls `take` with the item of `key`, if there is one, and returns its result.
    #[inline]
    pub fn get_with<T>(&self, key: &[u8], take: impl FnOnce(ItemView<'_>) -> T) -> Option<T> {
        let keyed = self.keyed(key);
        let part = keyed.part;
        part.get_with(part.sought(keyed.hash, key), |value, metadata| take(part.shared.view(value, metadata)))
    }

    /// Calls `take` for each of `keys`, in order, with its number and its item; accesses to memory overlap.
    pub fn get_many_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        mut take: impl FnMut(usize, Option<ItemView<'_>>),
    ) {
        let mut first = 0;
        for keys in keys.chunks(BATCH_LEN) {
            let mut hashes = [KeyHash::default(); BATCH_LEN];
            for (hash, key) in hashes.iter_mut().zip(keys) {
                *hash = self.core.shared.hash(key.as_ref());
                self.core.part(*hash).prefetch_bucket(*hash);
            }
            for hash in &hashes[..keys.len()] {
                self.core.part(*hash).prefetch_item(*hash);
            }
            for (number, (hash, key)) in hashes.iter().zip(keys).enumerate() {
                let part = self.core.part(*hash);
                let mut take = Some(|item: Option<ItemView<'_>>| take(first + number, item));
                part.get_with(part.sought(*hash, key.as_ref()), |value, metadata| {
                    if let Some(mut take) = take.take() {
                        take(Some(part.shared.view(value, metadata)));
                    }
                });
                if let Some(mut take) = take {
                    take(None);
                }
            }
            first += keys.len();
        }
    }

    /// Copies of the values of `keys`, in their order.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Option<Vec<u8>>> {
        let mut values = Vec::with_capacity(keys.len());
        self.get_many_with(keys, |_, item| values.push(item.map(|item| item.value.to_vec())));
        values
    }

    /// Whether `key` has an item. Counts as an access of it, but not as a hit or miss.
    pub fn contains(&self, key: &[u8]) -> bool {
        let keyed = self.keyed(key);
        keyed.part.contains(keyed.part.sought(keyed.hash, key))
    }

    /// Whether an item with a value of `value_bytes` bytes, an expiry and flags fits.
    ///
    /// # Errors
    /// [`TooLarge`] if a set might refuse it.
    pub fn check_size(&self, key: &[u8], value_bytes: usize) -> Result<(), TooLarge> {
        let item_bytes_max = self.core.shared.geometry.item_units_max() * UNIT;
        let bytes = (key.len() + OVERHEAD_BYTES).saturating_add(value_bytes);
        if key.len() <= KEY_BYTES_MAX && bytes <= item_bytes_max {
            Ok(())
        } else {
            Err(TooLarge { item_bytes_max })
        }
    }

    /// Gives `key` a value that stays as long as there is room for it.
    ///
    /// # Errors
    /// [`TooLarge`]; the key keeps its former item.
    #[inline]
    pub fn set(&self, key: &[u8], value: &[u8]) -> Result<(), TooLarge> {
        self.keyed(key).set(value, Metadata::default())
    }

    keyed_writes!(self, (&self), Refused);

    fn write<'a, T, E>(
        &'a self,
        key: &'a [u8],
        write: impl FnOnce(Keyed<'a>) -> Result<T, E>,
    ) -> Result<T, E> {
        write(self.keyed(key))
    }

    /// Sets each key to its value, in order for equal keys; waits once for all that is flushed in a partition.
    ///
    /// # Errors
    /// [`TooLarge`] for an item that is too large; all others are set.
    pub fn set_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, items: &[(K, V)]) -> Result<(), TooLarge> {
        let mut outcome = Ok(());
        for items in items.chunks(BATCH_LEN) {
            let hashed: Vec<(KeyHash, &[u8], &[u8])> = items
                .iter()
                .map(|(key, value)| (self.core.shared.hash(key.as_ref()), key.as_ref(), value.as_ref()))
                .collect();
            hashed.iter().for_each(|(hash, ..)| self.core.part(*hash).prefetch_bucket(*hash));
            for part in self.parts_of(hashed.iter().map(|(hash, ..)| *hash)) {
                let own = hashed.iter().filter(|(hash, ..)| self.core.part(*hash).number == part.number);
                outcome = part.set_each(own.copied()).and(outcome);
            }
        }
        outcome
    }

    /// Removes the item of `key`; returns whether there was one.
    pub fn remove(&self, key: &[u8]) -> bool {
        let keyed = self.keyed(key);
        keyed.part.remove(keyed.part.sought(keyed.hash, key))
    }

    /// Removes the items of `keys` and returns how many there were; waits once for all that is flushed in a partition.
    pub fn remove_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> usize {
        let mut removed = 0;
        for keys in keys.chunks(BATCH_LEN) {
            let hashed: Vec<(KeyHash, &[u8])> =
                keys.iter().map(|key| (self.core.shared.hash(key.as_ref()), key.as_ref())).collect();
            hashed.iter().for_each(|(hash, _)| self.core.part(*hash).prefetch_bucket(*hash));
            for part in self.parts_of(hashed.iter().map(|(hash, _)| *hash)) {
                let own = hashed.iter().filter(|(hash, _)| self.core.part(*hash).number == part.number);
                removed += part.remove_each(own.copied());
            }
        }
        removed
    }

    /// The partitions of some hashes, each once.
    fn parts_of(&self, hashes: impl Iterator<Item = KeyHash>) -> impl Iterator<Item = &Part<FileMedium>> {
        let mut numbers: Vec<usize> = hashes.map(|hash| self.core.part(hash).number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(|number| &self.core.parts[number])
    }

    /// Removes all items.
    pub fn clear(&self) {
        self.core.parts.iter().for_each(Part::clear);
    }

    /// Visits the items of the next `buckets` buckets, some four items each. Start with `Cursor::default()`; `None`
    /// means that all were visited. An item that is present throughout a scan is visited once. Visits are not accesses.
    pub fn scan(
        &self,
        cursor: Cursor,
        buckets: usize,
        mut visit: impl FnMut(&[u8], ItemView<'_>),
    ) -> Option<Cursor> {
        let Cursor { mut partition, hash } = cursor;
        let mut bucket = usize::try_from(hash >> HASH_SHIFT).unwrap_or(usize::MAX);
        for _ in 0..buckets.max(1) {
            let part = self.core.parts.get(partition)?;
            if bucket < self.core.shared.geometry.buckets {
                part.visit(bucket, &mut |key, value, metadata| {
                    visit(key, part.shared.view(value, metadata));
                });
                bucket += 1;
            }
            if bucket >= self.core.shared.geometry.buckets {
                (partition, bucket) = (partition + 1, 0);
            }
        }
        let hash = (bucket as u64) << HASH_SHIFT;
        (partition < self.core.parts.len()).then_some(Cursor { partition, hash })
    }

    /// Copies of all items, fetched bucket by bucket while iterating.
    pub fn iter(&self) -> impl Iterator<Item = OwnedItem> + '_ {
        copies(move |cursor, visit| self.scan(cursor, 1, visit))
    }

    /// About the number of items: those of some buckets, times the number of buckets. Nothing counts them, since
    /// nothing is read when the file is opened.
    pub fn len_estimate(&self) -> u64 {
        const SAMPLES: usize = 64;
        let geometry = &self.core.shared.geometry;
        let (mut items, mut visited) = (0_u64, 0_u64);
        for part in &self.core.parts {
            let samples = (SAMPLES / geometry.partitions).max(4).min(geometry.buckets);
            for sample in 0..samples {
                part.visit(sample * geometry.buckets / samples, &mut |_, _, _| items += 1);
            }
            visited += samples as u64;
        }
        let buckets = (geometry.partitions * geometry.buckets) as u64;
        (u128::from(items) * u128::from(buckets) / u128::from(visited.max(1))) as u64
    }

    #[inline(always)]
    fn keyed<'a>(&'a self, key: &'a [u8]) -> Keyed<'a> {
        let hash = self.core.shared.hash(key);
        Keyed { part: self.core.part(hash), hash, key, flushes_each_set: self.flushes_each_set }
    }
}

impl Drop for SurvivingCache {
    /// Writes everything to the device, so that the content is there after the system has been started again. If that
    /// fails, the file is left as by a process that died.
    fn drop(&mut self) {
        let medium = &self.core.shared.medium;
        let state = if medium.failure().is_none() && self.sync().is_ok() {
            SessionState::Closed
        } else if medium.failure().is_some() {
            SessionState::Failed
        } else {
            return;
        };
        // Not on the device: the session is open then, which is true as well.
        let _ = set_session(medium, state);
    }
}

/// A key with its hash and its partition.
#[derive(Clone, Copy, Debug)]
struct Keyed<'a> {
    part: &'a Part<FileMedium>,
    hash: KeyHash,
    key: &'a [u8],
    flushes_each_set: bool,
}

impl KeyedWrites for Keyed<'_> {
    #[inline(always)]
    fn set(&self, value: &[u8], metadata: Metadata) -> Result<(), TooLarge> {
        let sought = self.part.sought(self.hash, self.key);
        if self.flushes_each_set {
            return self.part.set_flushed(sought, value, metadata);
        }
        self.part.set(sought, value, metadata)
    }

    fn change<'v>(
        &self,
        decide: impl FnOnce(Option<(ItemView<'_>, Metadata)>) -> Change<'v>,
    ) -> Result<(), TooLarge> {
        self.part.update(self.part.sought(self.hash, self.key), decide)
    }

    fn metadata(&self, options: SetOptions) -> Metadata {
        let expires_at_ms = options.time_to_live.map_or(0, |time_to_live| {
            let milliseconds = u64::try_from(time_to_live.as_millis()).unwrap_or(u64::MAX);
            self.part.shared.now_ms().saturating_add(milliseconds).max(1)
        });
        Metadata { expires_at_ms, flags: options.flags }
    }

    /// A time of the clock's unix time.
    fn metadata_until(&self, flags: u32, expires_at: Option<Duration>) -> Metadata {
        let milliseconds = |at: Duration| u64::try_from(at.as_millis()).unwrap_or(u64::MAX).max(1);
        Metadata { expires_at_ms: expires_at.map_or(0, milliseconds), flags }
    }

    fn deciding<T>(&self, decide: impl FnOnce() -> T) -> T {
        let _deciding = Deciding::about(self.part.shared.number);
        decide()
    }
}
