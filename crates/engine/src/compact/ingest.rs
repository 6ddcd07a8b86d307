//! Bulk ingest: items in any order become tables of the last level without passing through the log and hash runs.
//!
//! Each item is written twice: to the file of its part of the hash space, and to its table.

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
use crate::core::{KeyspaceShared, Shared, UpdateBarrier};
use crate::error::Result;
use crate::item::{EncodedItem, Item};
use crate::level::Version;
use crate::merge::{AGE_MAX, YoungItems};
use crate::table::SegmentSpan;

/// Adjacent parts are merged together while they make one table of at most this size, including old items.
const TABLE_BYTES_MAX: u64 = 24 << 20;
/// Threads that merge: one computes while the other reads and writes. If memory is short there is one.
const THREADS: usize = 2;

/// Merges spilled items into the last level, as the newest versions of their keys. All older versions are there as
/// well.
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
    let newest = shared.log.active_segment().id.back(1);
    // Where new tables are put above the level's content, they contain none of it.
    let segments = SegmentSpan { oldest: newest.next(), newest };
    let budget = shared.memory.budget();
    let sort_bytes_max = budget.merge_bytes.min(shared.settings.ingest_sort_bytes_max);
    let is_alone = budget.limit.is_some() || !shared.settings.background;
    let version = keyspace.version.load_full();
    let flow = Flow::of_ingest(version.body.plan(), version.body.last_level());
    drop(version);
    let ingestion = Ingestion { shared, keyspace, flow, segments, sort_bytes_max, is_alone, barrier };
    ingestion.run(spill).map_err(|error| shared.note_failure(error))
}

/// Passes spilled items to `write`, those of one key in the order in which they arrived.
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

/// The items stored one after the other in `bytes`.
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

/// Bytes of memory of a part's items while they are sorted.
fn sort_bytes(spill: &Spilled, part: usize) -> u64 {
    YoungItems::memory_bytes_for(spill.items(part), spill.bytes(part))
}

struct Ingestion<'a> {
    shared: &'a Shared,
    keyspace: &'a KeyspaceShared,
    /// Moves items into the last level.
    flow: Flow,
    segments: SegmentSpan,
    /// Maximum bytes of memory of the items that are sorted together.
    sort_bytes_max: u64,
    /// Whether one thread does all the work.
    is_alone: bool,
    barrier: &'a UpdateBarrier<'a>,
}

/// Memory that a merging thread reuses.
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
        // Other threads, so that some read or wait for a sync while one sorts. None under a memory limit, or without
        // background threads, where the order of operations matters.
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

    /// Adjacent parts that are merged together, so that small parts do not make small tables.
    fn groups(&self, spill: &Spilled) -> Vec<Range<usize>> {
        let version = self.keyspace.version.load();
        let mut groups: Vec<Range<usize>> = Vec::new();
        let mut room = 0;
        for part in spill.bounded_parts() {
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

    /// Passes the items of some pieces to `add` in order, as many at a time as fit in memory.
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
                self.feed(&finer, self.pieces(&finer, finer.bounded_parts()), memory, add)?;
            } else {
                add(&self.newest(spill, piece.start)?, range)?;
                spill.remove(piece.start)?;
            }
        }
        Ok(())
    }

    /// Whether a part does not fit in memory.
    fn is_large(&self, spill: &Spilled, part: usize) -> bool {
        sort_bytes(spill, part) > self.sort_bytes_max || spill.items(part) > u64::from(AGE_MAX)
    }

    /// Groups of adjacent parts that fit in memory together.
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

    /// Gathers the items of some parts and sorts them.
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
                    // Of two items of a key the one that arrived later counts.
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
        let inputs = self.flow.inputs(&version.body, range);
        let mass = Mass::marked(young.marks()).and(Mass::of_sections(inputs.streams.iter().flatten()));
        if self.flow.pushes {
            return mass.split(range, 2.0 * TABLE_BYTES_MAX as f64);
        }
        let level = version.body.level(self.flow.to);
        merged_ranges(level, range, &mass, &self.shared.settings.table_sizes)
    }

    /// Bytes in `range` that new tables will contain in addition to new items.
    fn present_bytes(&self, version: &Version, range: HashRange) -> u64 {
        if self.flow.pushes {
            return 0;
        }
        version.body.level(self.flow.to).bytes_within(range) as u64
    }

    /// Divides the items of a part again, by further bits of their hashes.
    fn split(&self, spill: &Spilled, part: usize) -> Result<Spill> {
        let number = self.shared.next_file.fetch_add(1, Ordering::Relaxed);
        let mut finer = spill.finer(part, number);
        spill.for_each(part, &mut AlignedBuffer::default(), |bytes| {
            items(self.keyspace, bytes).try_for_each(|(hash, item)| finer.push(hash, item.bytes).map(drop))
        })?;
        spill.remove(part)?;
        Ok(finer)
    }

    /// The newest item of each key of a part whose items all have one hash: these are few, or of few keys.
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
