//! `get` and `multi_get`: log stores first, then runs, then the levels below.

use std::sync::Arc;

use alluvium_base::KeyHash;
use alluvium_io::sync::atomic::{AtomicU64, Ordering};
use alluvium_io::{AlignedBuffer, ReadRequest};

use super::keyspace::{Keyspace, KeyspaceShared};
use super::metadata::{Metadata, Moment};
use super::shared::Shared;
use crate::blob::{LargeValue, Reference, StoredKey};
use crate::error::{Error, IoContext, Result};
use crate::item::Item;
use crate::level::{Lookup, Version};
use crate::table::{PAGE_BYTES, PageRead, Section};

/// Maximum number of large values that one `multi_get` reads together: each takes at most one mebibyte of buffer.
const LARGE_IN_FLIGHT_MAX: usize = 16;

impl Keyspace {
    /// The value of `key`; `None` if it is absent.
    ///
    /// Costs no read for an item that is still in the log, otherwise one read of a page (on average at most 1.005),
    /// whether the key is absent or present. A large item costs one more sequential read, of its bytes.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>> {
        let key = key.as_ref();
        self.read(key, |view, item| item.map(|item| view.value(key, item)).transpose())
    }

    /// The value of `key` and its metadata; `None` if the key is absent. Costs as much as [`Keyspace::get`].
    pub fn get_with_metadata(&self, key: impl AsRef<[u8]>) -> Result<Option<(Vec<u8>, Metadata)>> {
        let key = key.as_ref();
        self.read(key, |view, item| view.with_metadata(key, item))
    }

    /// Whether `key` is present. Costs as much as [`Keyspace::get`] of a small item; if the key is longer than 1 KiB,
    /// also a read of the key.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        let key = key.as_ref();
        self.read(key, |view, item| item.map_or(Ok(false), |item| view.is_of_key(key, item)))
    }

    /// The values of many keys, in their order. All page reads are in flight together, then the reads of up to 16 large
    /// values at a time.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        let shared = self.database();
        self.shared.check_present()?;
        let keyspace = &*self.shared;
        retry_when_moved(keyspace, |version| {
            View { shared, keyspace, version, moment: Moment::Now(shared) }.multi_get(keys)
        })
    }

    /// Calls `found` with the item of `key` if it is live, otherwise with `None`.
    #[inline]
    pub(super) fn read<R>(
        &self,
        key: &[u8],
        found: impl Fn(&View<'_>, Option<&Item<'_>>) -> Result<R>,
    ) -> Result<R> {
        let shared = self.database();
        self.shared.check_present()?;
        let keyspace = &*self.shared;
        retry_when_moved(keyspace, |version| {
            View { shared, keyspace, version, moment: Moment::Now(shared) }.read(key, &found)
        })
    }
}

/// Reads from the current version. If a blob file is gone to which a reader of that version found a reference, its
/// items were moved meanwhile, and a later version knows where they are.
#[inline]
pub(super) fn retry_when_moved<R>(
    keyspace: &KeyspaceShared,
    read: impl Fn(&Version) -> Result<R>,
) -> Result<R> {
    loop {
        let version = keyspace.version.load();
        match read(&version) {
            Err(Error::MissingFile { .. }) if !Arc::ptr_eq(&version, &keyspace.version.load()) => {}
            Err(error @ Error::MissingFile { .. }) => {
                // The last version of a dropped keyspace has a log store, but no files.
                keyspace.check_present()?;
                return Err(error);
            }
            outcome => return outcome,
        }
    }
}

/// A keyspace in a version, at a moment.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub shared: &'a Shared,
    pub keyspace: &'a KeyspaceShared,
    pub version: &'a Version,
    pub moment: Moment<'a>,
}

impl View<'_> {
    /// Calls `found` with the item of `key` if it is live, otherwise with `None`. Counts as a get.
    pub fn read<R>(
        &self,
        key: &[u8],
        found: impl FnOnce(&Self, Option<&Item<'_>>) -> Result<R>,
    ) -> Result<R> {
        self.shared.counters.gets.fetch_add(1, Ordering::Relaxed);
        let key = StoredKey::of(key);
        self.find(self.keyspace.hasher.hash(&key), &key, found)
    }

    /// Like [`View::read`], for a key in its stored form whose hash is known. Does not count as a get.
    pub fn find<R>(
        &self,
        hash: KeyHash,
        key: &[u8],
        found: impl FnOnce(&Self, Option<&Item<'_>>) -> Result<R>,
    ) -> Result<R> {
        self.shared.check_open()?;
        let found = find(self.version, &self.shared.counters.page_reads, hash, key, |item| {
            found(self, item.filter(|item| self.moment.is_live(item)))
        });
        found.and_then(|found| found).map_err(|error| self.shared.closed_or(error))
    }

    /// The value of `key`; `None` if it is absent.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.read(key, |view, item| item.map(|item| view.value(key, item)).transpose())
    }

    /// The value of an item of `key` with its metadata.
    pub fn with_metadata(&self, key: &[u8], item: Option<&Item<'_>>) -> Result<Option<(Vec<u8>, Metadata)>> {
        item.map(|item| Ok((self.value(key, item)?, Metadata::of(item)))).transpose()
    }

    /// The values of many keys, in their order, with all page reads in flight together.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        let Self { shared, keyspace, version, moment } = *self;
        shared.check_open()?;
        shared.counters.gets.fetch_add(keys.len() as u64, Ordering::Relaxed);
        // Large values wait until all pages are read, and are then read together.
        let mut large: Vec<(usize, Reference)> = Vec::new();
        let mut live_value = |index: usize, item: Item<'_>| {
            let live = Some(&item).filter(|item| moment.is_live(item));
            if let Some(item) = live.filter(|item| item.is_reference()) {
                let Some(reference) = LargeValue::required(item)?.single() else {
                    // Several records of one value are read together anyway.
                    return self.value(keys[index].as_ref(), item).map(Some);
                };
                large.push((index, reference));
                return Ok::<_, Error>(None);
            }
            Ok(live.map(|item| item.value.to_vec()))
        };
        let mut values = vec![None; keys.len()];
        let in_flight_max = shared.memory.budget().pages_in_flight;
        let mut waiting = Vec::new();
        for (index, key) in keys.iter().enumerate() {
            let key = StoredKey::of(key.as_ref());
            let hash = keyspace.hasher.hash(&key);
            match find_in_log(version, hash, &key)? {
                Some(item) => values[index] = live_value(index, item)?,
                None => waiting.push((index, Lookup::new(version, hash))),
            }
        }
        let in_flight_max = in_flight_max.min(waiting.len());
        let room = (!waiting.is_empty())
            .then(|| shared.memory.operations.buffers.hold((in_flight_max * PAGE_BYTES) as u64));
        let mut buffers: Vec<AlignedBuffer> = Vec::new();
        let mut reading: Vec<Reading<'_>> = Vec::new();
        loop {
            while reading.len() < in_flight_max
                && let Some((index, mut lookup)) = waiting.pop()
            {
                if let Some((section, read)) = lookup.next_read()? {
                    reading.push((index, lookup, section, read));
                }
            }
            if reading.is_empty() {
                break;
            }
            while buffers.len() < reading.len() {
                buffers.push(AlignedBuffer::zeroed(PAGE_BYTES));
            }
            read_pages(shared, &reading, &mut buffers)?;
            for ((index, mut lookup, section, read), buffer) in reading.drain(..).zip(&mut buffers) {
                let key = StoredKey::of(keys[index].as_ref());
                match lookup.search(section, read, buffer, &key)? {
                    Some(item) => values[index] = live_value(index, item)?,
                    None => waiting.push((index, lookup)),
                }
            }
        }
        drop((buffers, room));
        for large in large.chunks(shared.memory.budget().large_in_flight(LARGE_IN_FLIGHT_MAX)) {
            let items: Vec<_> =
                large.iter().map(|&(index, reference)| (keys[index].as_ref(), reference)).collect();
            for (&(index, _), value) in large.iter().zip(self.large_values(&items)?) {
                values[index] = Some(value);
            }
        }
        Ok(values)
    }
}

/// A lookup in progress with the number of its key, and what it reads next.
type Reading<'v> = (usize, Lookup<'v>, &'v Section, PageRead);

fn read_pages(shared: &Shared, reading: &[Reading<'_>], buffers: &mut [AlignedBuffer]) -> Result<()> {
    let mut requests: Vec<ReadRequest<'_>> = reading
        .iter()
        .zip(buffers)
        .filter_map(|((_, _, section, read), buffer)| {
            buffer.resize_unspecified(read.count as usize * PAGE_BYTES);
            let (file, offset) = (&**section.file(), section.page_offset(read.page));
            let is_kept = section.copy_kept(read.page, buffer);
            (!is_kept).then_some(ReadRequest { file, offset, buffer, result: Ok(0) })
        })
        .collect();
    shared.counters.page_reads.fetch_add(requests.len() as u64, Ordering::Relaxed);
    shared.storage.read_batch(&mut requests);
    for request in requests {
        request.result.context(|| format!("reading table {}", request.file.name()))?;
    }
    Ok(())
}

/// The newest item of a key in the log.
#[inline]
pub(super) fn find_in_log<'v>(version: &'v Version, hash: KeyHash, key: &[u8]) -> Result<Option<Item<'v>>> {
    for store in &version.log_stores {
        if let Some(item) = store.get(hash, key)? {
            return Ok(Some(item));
        }
    }
    Ok(None)
}

/// Calls `found` with the newest item of `key`, which is in its stored form, tombstones included; or with `None`. Adds
/// the number of pages that it reads to `reads`.
pub(crate) fn find<R>(
    version: &Version,
    reads: &AtomicU64,
    hash: KeyHash,
    key: &[u8],
    found: impl FnOnce(Option<&Item<'_>>) -> R,
) -> Result<R> {
    match find_in_log(version, hash, key)? {
        Some(item) => Ok(found(Some(&item))),
        None => find_in_tables(version, reads, hash, key, found),
    }
}

/// Like [`find`], without the log.
pub(crate) fn find_in_tables<R>(
    version: &Version,
    reads: &AtomicU64,
    hash: KeyHash,
    key: &[u8],
    found: impl FnOnce(Option<&Item<'_>>) -> R,
) -> Result<R> {
    find_by(Lookup::new(version, hash), reads, key, found)
}

/// Like [`find_in_tables`], in the tables that `lookup` visits.
pub(crate) fn find_by<R>(
    mut lookup: Lookup<'_>,
    reads: &AtomicU64,
    key: &[u8],
    found: impl FnOnce(Option<&Item<'_>>) -> R,
) -> Result<R> {
    let mut buffer = None;
    while let Some((section, read)) = lookup.next_read()? {
        let buffer = buffer.get_or_insert_with(AlignedBuffer::new);
        buffer.resize_unspecified(read.count as usize * PAGE_BYTES);
        if !section.copy_kept(read.page, buffer) {
            reads.fetch_add(1, Ordering::Relaxed);
            section
                .file()
                .read_at(buffer, section.page_offset(read.page))
                .context(|| format!("reading table {}", section.file().name()))?;
        }
        if let Some(item) = lookup.search(section, read, buffer, key)? {
            return Ok(found(Some(&item)));
        }
    }
    Ok(found(None))
}
