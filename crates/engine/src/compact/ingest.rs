//! Bulk ingest: items in any order become tables of the sorted run without passing through log and hash runs.
//!
//! Each item is written twice: to a file of its part of the hash space, and to its table.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::thread::ScopedJoinHandle;

use alluvium_base::KeyHash;
use alluvium_io::AlignedBuffer;

use super::merge::table_ranges;
use super::merge_part::write_parts;
use super::spill::{Spill, Spilled, SpilledItems};
use super::young::{AGE_MAX, YoungItems};
use crate::db::{KeyspaceShared, Shared};
use crate::error::Result;
use crate::item::{EncodedItem, Item};

/// Adjacent parts are merged together as long as they make one table of at most this, old items included.
const TABLE_BYTES_MAX: u64 = 24 << 20;
/// Threads that merge: one computes while others read and write.
const THREADS: usize = 2;
/// Memory that an item takes beside its bytes while it is sorted.
const ENTRY_BYTES: u64 = 24;

/// Merges spilled items into the sorted run, as the newest of their keys. Whatever is older lies in the sorted run too.
///
/// A failure leaves some parts of the hash space merged and others not, and fails the database.
pub(crate) fn ingest(shared: &Shared, keyspace: &KeyspaceShared, spill: Spill) -> Result<()> {
    let _only_one = shared.merge_lock.lock().expect("no panic while held");
    keyspace.check_present()?;
    // Everything younger than the items is in this segment or a later one.
    let newest_segment = shared.log.active_segment().id.saturating_sub(1);
    let ingestion = Ingestion { shared, keyspace, newest_segment };
    ingestion.run(spill).inspect_err(|error| shared.log.fail(error))
}

/// Hands spilled items to `write`, those of one key in the order in which they came.
pub(crate) fn write_spilled(
    keyspace: &KeyspaceShared,
    spill: Spill,
    mut write: impl FnMut(KeyHash, &Item<'_>) -> Result<()>,
) -> Result<()> {
    let spill = spill.finish()?;
    for part in 0..spill.parts() {
        spill.for_each(part, |bytes| {
            items(keyspace, bytes).try_for_each(|(hash, item)| write(hash, &item.item))
        })?;
        spill.remove(part)?;
    }
    Ok(())
}

/// The items that lie one after the other in `bytes`.
fn items<'b>(
    keyspace: &KeyspaceShared,
    mut bytes: &'b [u8],
) -> impl Iterator<Item = (KeyHash, EncodedItem<'b>)> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let item =
            EncodedItem::decode(bytes).expect("items were pushed, and a checksum says that they are these");
        bytes = &bytes[item.bytes.len()..];
        Some((keyspace.hasher.hash(item.item.key), item))
    })
}

struct Ingestion<'a> {
    shared: &'a Shared,
    keyspace: &'a KeyspaceShared,
    newest_segment: u64,
}

/// What a thread merges in, again and again.
#[derive(Default)]
struct Memory {
    young: YoungItems,
    bytes: AlignedBuffer,
}

impl Ingestion<'_> {
    fn run(&self, spill: Spill) -> Result<()> {
        let spill = spill.finish()?;
        self.shared.counters.spill_bytes_written.fetch_add(spill.file_bytes(), Ordering::Relaxed);
        let groups = Mutex::new(self.groups(&spill).into_iter());
        let next = || groups.lock().expect("no panic while held").next();
        let work = || {
            let mut memory = Memory::default();
            while let Some(group) = next() {
                self.merge_group(&spill, group, &mut memory)?;
            }
            Ok(())
        };
        // Others, so that some read or wait for a sync while one sorts; in order where order matters.
        let others = if self.shared.settings.background { THREADS - 1 } else { 0 };
        std::thread::scope(|scope| {
            let others: Vec<_> = (0..others).map(|_| scope.spawn(work)).collect();
            let mine = work();
            let join = |other: ScopedJoinHandle<'_, Result<()>>| {
                other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            others.into_iter().map(join).fold(mine, Result::and)
        })
    }

    /// Adjacent parts that are merged together, so that small ones don't make small tables.
    fn groups(&self, spill: &Spilled) -> Vec<Range<usize>> {
        let version = self.keyspace.version.load();
        let mut groups: Vec<Range<usize>> = Vec::new();
        let mut room = 0;
        for part in 0..spill.parts() {
            let (low, high) = spill.range(part);
            let present: u64 = version.sorted_bytes_within(low, high);
            let bytes = spill.bytes(part) + present;
            match groups.last_mut() {
                Some(group) if bytes <= room => group.end = part + 1,
                _ => {
                    groups.push(part..part + 1);
                    room = TABLE_BYTES_MAX;
                }
            }
            room = room.saturating_sub(bytes);
        }
        groups.retain(|group| group.clone().any(|part| spill.items(part) > 0));
        groups
    }

    fn merge_group(&self, spill: &Spilled, group: Range<usize>, memory: &mut Memory) -> Result<()> {
        let part_memory = |part| spill.bytes(part) + ENTRY_BYTES * spill.items(part);
        if let [part] = group.clone().collect::<Vec<_>>()[..]
            && (part_memory(part) > self.shared.settings.ingest_sort_bytes_max
                || spill.items(part) > u64::from(AGE_MAX))
        {
            return self.merge_large(spill, part);
        }
        let Memory { young, bytes: room } = memory;
        young.clear();
        let mut age = AGE_MAX;
        for part in group.clone() {
            let SpilledItems { bytes, chunks } = spill.read(part, std::mem::take(room))?;
            for chunk in chunks {
                for (hash, item) in items(self.keyspace, &bytes[chunk]) {
                    // Of two items of a key the one that came later counts.
                    young.push(hash, age, item.bytes);
                    age -= 1;
                }
            }
            *room = bytes;
        }
        self.merge(young, spill.range(group.start).0, spill.range(group.end - 1).1)?;
        group.into_iter().try_for_each(|part| spill.remove(part))
    }

    fn merge(&self, young: &mut YoungItems, low: u64, high: u64) -> Result<()> {
        young.finish();
        young.newest_segment = self.newest_segment;
        let _held = self.shared.hold_items(young.memory_bytes());
        let version = self.keyspace.version.load_full();
        let present: u64 = version.sorted_bytes_within(low, high);
        drop(version);
        let tables = (young.encoded_bytes() + present).div_ceil(2 * TABLE_BYTES_MAX);
        let references = write_parts(self.shared, self.keyspace, young, table_ranges(low, high, tables))?;
        self.shared.blobs.unhide(&references);
        Ok(())
    }

    /// A part that doesn't fit in memory: parts it again, or, when all its items have one hash, keeps the newest of
    /// each key.
    fn merge_large(&self, spill: &Spilled, part: usize) -> Result<()> {
        if spill.can_split(part) {
            let number = self.shared.next_file.fetch_add(1, Ordering::Relaxed);
            let mut finer = spill.finer(part, number);
            spill.for_each(part, |bytes| {
                items(self.keyspace, bytes)
                    .try_for_each(|(hash, item)| finer.push(hash, item.bytes).map(drop))
            })?;
            spill.remove(part)?;
            return self.run(finer);
        }
        let mut newest: BTreeMap<Vec<u8>, (KeyHash, Vec<u8>)> = BTreeMap::new();
        spill.for_each(part, |bytes| {
            for (hash, item) in items(self.keyspace, bytes) {
                newest.insert(item.item.key.to_vec(), (hash, item.bytes.to_vec()));
            }
            Ok(())
        })?;
        let mut young = YoungItems::default();
        newest.values().for_each(|(hash, bytes)| young.push(*hash, 0, bytes));
        let (low, high) = spill.range(part);
        self.merge(&mut young, low, high)?;
        spill.remove(part)
    }
}
