//! Bulk ingest: items in any order become tables of the last level without passing through log and hash runs.
//!
//! Each item is written twice: to a file of its part of the hash space, and to its table.

use std::collections::BTreeMap;
use std::ops::Range;

use alluvium_base::{HashRange, KeyHash};
use alluvium_io::AlignedBuffer;
use alluvium_io::sync::Mutex;
use alluvium_io::sync::atomic::Ordering;
use alluvium_io::sync::thread::ScopedJoinHandle;

use super::cut::{merged_ranges, table_ranges};
use super::flow::Flow;
use super::mass::Mass;
use super::merge_part::{AddItems, write_in_pieces, write_parts};
use super::spill::Spill;
use super::spilled::Spilled;
use super::young::{AGE_MAX, YoungItems};
use crate::db::{KeyspaceShared, Shared, UpdateBarrier};
use crate::error::Result;
use crate::item::{EncodedItem, Item};
use crate::level::Version;
use crate::table::SegmentSpan;

/// Adjacent parts are merged together as long as they make one table of at most this, old items included.
const TABLE_BYTES_MAX: u64 = 24 << 20;
/// Threads that merge: one computes while others read and write. Where memory is short there is one.
const THREADS: usize = 2;

/// Merges spilled items into the last level, as the newest of their keys. Whatever is older lies there too.
///
/// A failure leaves some parts of the hash space merged and others not, and fails the database. Updates wait for the
/// `barrier`, which was raised over the whole keyspace before the log was frozen; it is lowered part by part.
pub(crate) fn ingest(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    spill: Spill,
    barrier: &UpdateBarrier<'_>,
) -> Result<()> {
    let _only_one = shared.merge_lock.lock().expect("no panic while held");
    keyspace.check_present()?;
    // Everything younger than the items is in this segment or a later one.
    let newest = shared.log.active_segment().id.saturating_sub(1);
    // None of what lies below is taken in, where new tables lie over it.
    let segments = SegmentSpan { oldest: newest + 1, newest };
    let budget = shared.memory.budget();
    let sort_bytes_max = budget.merge_bytes.min(shared.settings.ingest_sort_bytes_max);
    let is_alone = budget.limit.is_some() || !shared.settings.background;
    let version = keyspace.version.load_full();
    let flow = Flow::of_ingest(&version.plan.plan, version.last_level());
    drop(version);
    let ingestion = Ingestion { shared, keyspace, flow, segments, sort_bytes_max, is_alone, barrier };
    ingestion.run(spill).map_err(|error| shared.note_failure(error))
}

/// Hands spilled items to `write`, those of one key in the order in which they came.
pub(crate) fn write_spilled(
    keyspace: &KeyspaceShared,
    spill: Spill,
    mut write: impl FnMut(KeyHash, &Item<'_>) -> Result<()>,
) -> Result<()> {
    let spill = spill.finish()?;
    let mut room = AlignedBuffer::default();
    for part in 0..spill.parts() {
        spill.for_each(part, &mut room, |bytes| {
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

/// Memory that the items of a part take while they are sorted.
fn sort_bytes(spill: &Spilled, part: usize) -> u64 {
    YoungItems::memory_bytes_for(spill.items(part), spill.bytes(part))
}

struct Ingestion<'a> {
    shared: &'a Shared,
    keyspace: &'a KeyspaceShared,
    /// Into the last level.
    flow: Flow,
    segments: SegmentSpan,
    /// Memory of the items that are sorted together.
    sort_bytes_max: u64,
    /// Whether one thread does everything.
    is_alone: bool,
    barrier: &'a UpdateBarrier<'a>,
}

/// What a thread merges in, again and again.
#[derive(Default)]
struct Memory {
    young: YoungItems,
    room: AlignedBuffer,
}

impl Ingestion<'_> {
    fn run(&self, spill: Spill) -> Result<()> {
        let spill = spill.finish()?;
        self.count(&spill);
        let groups = Mutex::new(self.groups(&spill).into_iter());
        let next = || groups.lock().expect("no panic while held").next();
        let work = || {
            let mut memory = Memory::default();
            while let Some(group) = next() {
                let range = spill.range_of(&group);
                self.merge_group(&spill, group, &mut memory)?;
                self.barrier.lower(range);
                self.shared.memory.trim();
            }
            Ok(())
        };
        // Others, so that some read or wait for a sync while one sorts; in order where order matters.
        let others = if self.is_alone { 0 } else { THREADS - 1 };
        alluvium_io::sync::thread::scope(|scope| {
            let others: Vec<_> = (0..others).map(|_| scope.spawn(work)).collect();
            let mine = work();
            let join = |other: ScopedJoinHandle<'_, Result<()>>| {
                other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            others.into_iter().map(join).fold(mine, Result::and)
        })
    }

    fn count(&self, spill: &Spilled) {
        self.shared.counters.spill_bytes_written.fetch_add(spill.file_bytes(), Ordering::Relaxed);
    }

    /// Adjacent parts that are merged together, so that small ones don't make small tables.
    fn groups(&self, spill: &Spilled) -> Vec<Range<usize>> {
        let version = self.keyspace.version.load();
        let mut groups: Vec<Range<usize>> = Vec::new();
        let mut room = 0;
        for part in 0..spill.parts() {
            let present = self.present_bytes(&version, spill.range(part));
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
        let range = spill.range_of(&group);
        let pieces = self.pieces(spill, group.clone());
        if let [piece] = &pieces[..] {
            if !self.is_large(spill, piece.start) {
                self.gather(spill, piece.clone(), memory)?;
                self.merge(&memory.young, range)?;
                return group.into_iter().try_for_each(|part| spill.remove(part));
            }
            if spill.bytes(piece.start) > TABLE_BYTES_MAX && spill.can_split(piece.start) {
                // Its parts will need memory of their own.
                *memory = Memory::default();
                return self.run(self.split(spill, piece.start)?);
            }
        }
        let sum = |of: fn(&Spilled, usize) -> u64| group.clone().map(|part| of(spill, part)).sum::<u64>();
        let sizes = (sum(Spilled::items), sum(Spilled::bytes), self.segments);
        let _held = self.shared.hold_items(self.sort_bytes_max);
        let feed = |add: &mut AddItems<'_>| self.feed(spill, pieces, memory, add);
        let references = write_in_pieces(self.shared, self.keyspace, &self.flow, range, sizes, feed)?;
        self.shared.blobs.unhide(&references);
        Ok(())
    }

    /// Hands the items of some pieces to `add`, as many at a time as fit in memory, in order.
    fn feed(
        &self,
        spill: &Spilled,
        pieces: Vec<Range<usize>>,
        memory: &mut Memory,
        add: &mut AddItems<'_>,
    ) -> Result<()> {
        for piece in pieces {
            let range = spill.range_of(&piece);
            if !self.is_large(spill, piece.start) {
                self.gather(spill, piece.clone(), memory)?;
                add(&memory.young, range)?;
                piece.into_iter().try_for_each(|part| spill.remove(part))?;
            } else if spill.can_split(piece.start) {
                *memory = Memory::default();
                let finer = self.split(spill, piece.start)?.finish()?;
                self.count(&finer);
                self.feed(&finer, self.pieces(&finer, 0..finer.parts()), memory, add)?;
            } else {
                add(&self.newest(spill, piece.start)?, range)?;
                spill.remove(piece.start)?;
            }
        }
        Ok(())
    }

    /// Whether a part doesn't fit in memory.
    fn is_large(&self, spill: &Spilled, part: usize) -> bool {
        sort_bytes(spill, part) > self.sort_bytes_max || spill.items(part) > u64::from(AGE_MAX)
    }

    /// Adjacent parts that fit in memory together.
    fn pieces(&self, spill: &Spilled, group: Range<usize>) -> Vec<Range<usize>> {
        let mut pieces: Vec<Range<usize>> = Vec::new();
        let (mut bytes, mut items) = (0, 0);
        for part in group {
            (bytes, items) = (bytes + sort_bytes(spill, part), items + spill.items(part));
            match pieces.last_mut() {
                Some(piece) if bytes <= self.sort_bytes_max && items <= u64::from(AGE_MAX) => {
                    piece.end = part + 1;
                }
                _ => {
                    pieces.push(part..part + 1);
                    (bytes, items) = (sort_bytes(spill, part), spill.items(part));
                }
            }
        }
        pieces
    }

    /// Gathers the items of some parts, sorted.
    fn gather(&self, spill: &Spilled, parts: Range<usize>, memory: &mut Memory) -> Result<()> {
        let Memory { young, room } = memory;
        young.clear();
        let sum = |of: fn(&Spilled, usize) -> u64| parts.clone().map(|part| of(spill, part)).sum::<u64>();
        young.reserve(sum(Spilled::items) as usize, sum(Spilled::bytes) as usize);
        let mut age = AGE_MAX;
        for part in parts {
            self.shared.check_open()?;
            spill.for_each(part, room, |bytes| {
                for (hash, item) in items(self.keyspace, bytes) {
                    // Of two items of a key the one that came later counts.
                    young.push(hash, age, item.bytes);
                    age -= 1;
                }
                Ok(())
            })?;
        }
        young.finish();
        young.segments = self.segments;
        Ok(())
    }

    fn merge(&self, young: &YoungItems, range: HashRange) -> Result<()> {
        let _held = self.shared.hold_items(young.memory_bytes());
        let version = self.keyspace.version.load_full();
        let present = self.present_bytes(&version, range);
        drop(version);
        let tables = (young.encoded_bytes() + present).div_ceil(2 * TABLE_BYTES_MAX);
        let ranges = if self.keyspace.hasher.is_semi_sorted() {
            self.marked_ranges(young, range)
        } else {
            table_ranges(range, tables).collect()
        };
        let counts = write_parts(self.shared, self.keyspace, &self.flow, young, ranges.into_iter())?;
        self.shared.blobs.unhide(&counts.placed);
        Ok(())
    }

    /// The ranges of new tables in a semi-sorted keyspace.
    fn marked_ranges(&self, young: &YoungItems, range: HashRange) -> Vec<HashRange> {
        let version = self.keyspace.version.load();
        let inputs = self.flow.inputs(&version, range);
        let mass = Mass::marked(young.marks()).and(Mass::of_sections(inputs.streams.iter().flatten()));
        if self.flow.pushes {
            return mass.split(range, 2.0 * TABLE_BYTES_MAX as f64);
        }
        let level = version.level(self.flow.to);
        merged_ranges(level, range, &mass, &self.shared.settings.table_sizes)
    }

    /// Bytes in `range` that new tables will hold besides what is new.
    fn present_bytes(&self, version: &Version, range: HashRange) -> u64 {
        if self.flow.pushes {
            return 0;
        }
        version.level(self.flow.to).bytes_within(range) as u64
    }

    /// Parts the items of a part again, by more bits of their hashes.
    fn split(&self, spill: &Spilled, part: usize) -> Result<Spill> {
        let number = self.shared.next_file.fetch_add(1, Ordering::Relaxed);
        let mut finer = spill.finer(part, number);
        spill.for_each(part, &mut AlignedBuffer::default(), |bytes| {
            items(self.keyspace, bytes).try_for_each(|(hash, item)| finer.push(hash, item.bytes).map(drop))
        })?;
        spill.remove(part)?;
        Ok(finer)
    }

    /// The items of a part, the newest of each key, where all have one hash: then they are few or of few keys.
    fn newest(&self, spill: &Spilled, part: usize) -> Result<YoungItems> {
        let mut newest: BTreeMap<Vec<u8>, (KeyHash, Vec<u8>)> = BTreeMap::new();
        spill.for_each(part, &mut AlignedBuffer::default(), |bytes| {
            for (hash, item) in items(self.keyspace, bytes) {
                newest.insert(item.item.key.to_vec(), (hash, item.bytes.to_vec()));
            }
            Ok(())
        })?;
        let mut young = YoungItems::default();
        newest.values().for_each(|(hash, bytes)| young.push(*hash, 0, bytes));
        young.finish();
        young.segments = self.segments;
        Ok(young)
    }
}
