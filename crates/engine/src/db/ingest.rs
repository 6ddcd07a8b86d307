//! [`Ingest`]: adds many items at once, in any order, directly to tables.

use alluvium_base::{HashRange, KeyHash};
use alluvium_io::sync::atomic::Ordering;

use super::flush::settle_older;
use super::keyspace::Keyspace;
use super::large::{StoredItem, is_inline, note_hidden};
use super::write::{check_item, check_room};
use crate::blob::{Reference, StoredKey};
use crate::build::{BuildPart, shard_of_hash, shard_range};
use crate::compact::{Spill, ingest, write_spilled};
use crate::core::{HeldRecords, write_item};
use crate::error::Result;
use crate::item::Item;
use crate::metadata::Metadata;
use crate::planted_race::PlantedRace;
use crate::table::Loan;

/// If an ingest's items have at most this share of the bytes in the keyspace's levels, they take the path of ordinary
/// writes.
const SHARE_MIN: f64 = 0.2;

/// Collects many items, which [`Ingest::finish`] puts into tables of the last level. Made by [`Keyspace::ingest`].
///
/// If it is dropped without `finish`, its items are discarded.
pub struct Ingest {
    keyspace: Keyspace,
    /// The number of the shard to which all items belong, and the number of shards.
    shard: (u32, u32),
    /// Present until the ingest is finished.
    spill: Option<Spill>,
    /// Large items, which are in blob files already.
    held: HeldRecords,
    /// The memory of its buffers, within the memory limit.
    _loan: Option<Loan>,
    /// Bytes of memory counted so far.
    counted_bytes: u64,
    encoded: Vec<u8>,
    items: u64,
    bytes: u64,
    /// Bytes of the items in their stored form.
    encoded_bytes: u64,
}

/// The outcome of an ingest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ingested {
    /// Number of items added, including those that a later one of the same key replaced.
    pub items: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Whether the items were written to the log instead, because they were few compared to those present.
    pub logged: bool,
}

impl Keyspace {
    /// Starts a bulk ingest: for loading many items, in any order, at a fraction of the cost of individual writes.
    ///
    /// An item is written twice in all (to a temporary file and to its table), compared to five times and more, and
    /// takes about half the CPU time of a write. Needs up to 34 MiB of memory while items are added, and 72 MiB for
    /// each of two threads while they are sorted; and disk space for the items in temporary files as well as in their
    /// tables. Above 16 GiB of items, each is written once more.
    ///
    /// Under a memory limit, it gets an eighth of the limit while items are added, taken from the share of filters and
    /// indexes; while they are sorted, it gets another eighth and one thread. Above 6 times a limit of 16 MiB, or 25
    /// times one of 64 MiB, items are written once more.
    ///
    /// Large items go to blob files at once, like those of ordinary writes; if the ingest is given up, they become
    /// garbage there.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// let db = alluvium::Db::open(directory.path())?;
    /// let numbers = db.keyspace("numbers")?;
    /// let mut ingest = numbers.ingest()?;
    /// for number in 0..1000_u32 {
    ///     ingest.insert(number.to_le_bytes(), (number * number).to_le_bytes())?;
    /// }
    /// ingest.finish()?;
    /// assert_eq!(numbers.get(7_u32.to_le_bytes())?.as_deref(), Some(&49_u32.to_le_bytes()[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn ingest(&self) -> Result<Ingest> {
        self.ingest_shard(0, 1)
    }

    /// Like [`Keyspace::ingest`], for the items of one of `shards` shards. Tables then cover no other hashes.
    pub(super) fn ingest_shard(&self, shard: u32, shards: u32) -> Result<Ingest> {
        let shared = self.database();
        shared.check_failure()?;
        self.shared.check_present()?;
        let number = shared.next_file.fetch_add(1, Ordering::Relaxed);
        let spill_bytes = shared.memory.budget().spill_bytes;
        let spill = Spill::new(shared.storage.clone(), number, spill_bytes, shard_range(shard, shards));
        Ok(Ingest {
            keyspace: self.clone(),
            shard: (shard, shards),
            spill: Some(spill.leaving(shared.reserve.bytes())),
            _loan: shared.memory.lend(spill_bytes),
            counted_bytes: 0,
            held: HeldRecords::default(),
            encoded: Vec::new(),
            items: 0,
            bytes: 0,
            encoded_bytes: 0,
        })
    }
}

impl Ingest {
    /// Adds an item. It replaces an item added under `key` before.
    pub fn insert(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.push(&Item::value(key.as_ref(), value.as_ref()))
    }

    /// Like [`Ingest::insert`], with flags or an expiry.
    pub fn insert_with(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        metadata: Metadata,
    ) -> Result<()> {
        self.push(&metadata.item(key.as_ref(), value.as_ref()))
    }

    pub(super) fn push(&mut self, item: &Item<'_>) -> Result<()> {
        self.keyspace.database().check_open()?;
        check_item(item)?;
        self.keyspace.shared.check_key(item.key)?;
        let hash = self.keyspace.shared.hasher.hash(&StoredKey::of(item.key));
        let (shard, shards) = self.shard;
        let found = shard_of_hash(hash.high(), shards);
        if found != shard {
            return Err(BuildPart::Key.mismatch("item", shard, found));
        }
        if is_inline(self.keyspace.database(), item) {
            self.push_stored(hash, item)?;
        } else {
            let keyspace = self.keyspace.clone();
            let shared = keyspace.database();
            shared.check_failure()?;
            check_room(shared, item)?;
            let stored = StoredItem::store(shared, keyspace.shared.id, item)?;
            self.push_stored(hash, &stored.item())?;
            stored.into_record().into_iter().for_each(|record| self.held.hold(record));
        }
        self.items += 1;
        self.bytes += (item.key.len() + item.value.len()) as u64;
        Ok(())
    }

    /// Adds an item in its stored form.
    fn push_stored(&mut self, hash: KeyHash, item: &Item<'_>) -> Result<()> {
        self.encoded.clear();
        item.encode(&mut self.encoded);
        self.encoded_bytes += self.encoded.len() as u64;
        let spill = self.spill.as_mut().expect("it is there until it is finished");
        let pushed = spill.push(hash, &self.encoded);
        if pushed.map_err(|error| self.keyspace.database().note_failure(error))? {
            let memory_bytes = spill.memory_bytes();
            self.count_memory(memory_bytes);
            self.keyspace.database().check_failure()?;
            self.keyspace.database().check_room()?;
        }
        Ok(())
    }

    /// Makes the items visible, durably. They replace all items written under their keys before this call; a concurrent
    /// write counts as before or after it. Updates, increments, conditional batches and transactions of keys that it
    /// has not reached yet wait for it; everything else continues.
    ///
    /// The items become visible in many steps, a part of the keyspace at a time. After an error or a crash, some parts
    /// have them and others do not: ingesting the same items again completes it.
    pub fn finish(mut self) -> Result<Ingested> {
        let keyspace = self.keyspace.clone();
        let shared = keyspace.database();
        shared.check_failure()?;
        keyspace.shared.check_present()?;
        let mut ingested = Ingested { items: self.items, bytes: self.bytes, logged: false };
        let Some(spill) = self.spill.take().filter(|_| self.items > 0) else { return Ok(ingested) };
        if self.is_small() {
            ingested.logged = true;
            write_spilled(&keyspace.shared, spill, |hash, item| {
                shared.check_room()?;
                note_hidden(shared, &keyspace.shared, hash, item)?;
                shared.throttle.pay(1, &*shared.clock);
                let references = Reference::all_of(item);
                // Counted before the log refers to it, so that the count is never too low.
                references.iter().for_each(|reference| shared.blobs.remember(reference));
                let written = write_item(shared, &keyspace.shared, hash, item, None);
                if written.is_err() {
                    references.iter().for_each(|reference| shared.blobs.forget(reference));
                }
                written.map(drop)
            })?;
            shared.log.commit_all().map_err(|error| shared.note_failure(error))?;
            return Ok(ingested);
        }
        // An update must not read an item from before and then write behind the freeze, replacing an ingested item.
        let barrier = match shared.planted_bugs.has(PlantedRace::IngestWithoutEpoch) {
            false => keyspace.shared.hold_back_updates(HashRange::ALL),
            true => keyspace.shared.raise_barrier(HashRange::ALL),
        };
        if shared.planted_bugs.has(PlantedRace::IngestWithoutBarrier) {
            barrier.lower(HashRange::ALL);
        }
        shared.log_unlogged(&keyspace.shared, &barrier)?;
        // A flush does not freeze a log without items: the record may still be in the active segment afterwards.
        shared.log.commit_all().map_err(|error| shared.note_failure(error))?;
        settle_older(shared, &keyspace.shared)?;
        shared.blobs.sync().map_err(|error| shared.note_failure(error))?;
        ingest(shared, &keyspace.shared, spill, &barrier)?;
        drop(barrier);
        shared.counters.puts.fetch_add(self.items, Ordering::Relaxed);
        shared.counters.bytes_put.fetch_add(self.bytes, Ordering::Relaxed);
        Ok(ingested)
    }

    /// Whether the items are so few, compared to those present, that it is better to write them to the log.
    fn is_small(&self) -> bool {
        let version = self.keyspace.shared.version.load();
        // Tables are below a chained log, whose items are older.
        if version.chain.is_some() {
            return true;
        }
        let present = version.body.level_bytes();
        self.encoded_bytes as f64 <= SHARE_MIN * present as f64
    }

    /// Number of leading hash bits by which items become visible in order. In a semi-sorted keyspace, one part becomes
    /// several tables, in the order of whole hashes.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn part_bits(&self) -> u32 {
        match self.keyspace.shared.hasher.is_semi_sorted() && !self.is_small() {
            true => 128,
            false => self.spill.as_ref().map_or(0, Spill::part_bits),
        }
    }

    fn count_memory(&mut self, bytes: u64) {
        let counter = &self.keyspace.database().merge_buffer_bytes;
        counter.fetch_add(bytes.wrapping_sub(self.counted_bytes), Ordering::Relaxed);
        self.counted_bytes = bytes;
    }
}

impl Drop for Ingest {
    fn drop(&mut self) {
        self.count_memory(0);
    }
}

impl std::fmt::Debug for Ingest {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Ingest")
            .field("items", &self.items)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
