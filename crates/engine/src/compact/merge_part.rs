//! The parts of a merge: a new table for each, written while the previous one becomes durable and is put in position.

use alluvium_base::{HashRange, KeyHasher, TableId};
use alluvium_io::KeptBuffers;
use alluvium_io::sync::atomic::Ordering;
use alluvium_io::sync::thread::ScopedJoinHandle;

use super::flow::{Flow, Inputs};
use super::level_table::{Below, begin_ordered};
use super::repeats::Samples;
use super::unplaced_table::UnplacedTable;
use crate::blob::ReferenceCounts;
use crate::core::{HeldMemory, KeyspaceShared, Moment, Shared};
use crate::error::{IoContext, Result};
use crate::file_names::table_file_name;
use crate::item::{EncodedItem, Item};
use crate::level::{PlacedTable, TableFile, Version};
use crate::manifest::Edit;
use crate::merge::{YoungItems, YoungRange, for_each_merged, scan_streams};
use crate::table::{
    GROUP_BYTES, Layout, READS_AHEAD_MAX, SectionRange, SectionScanner, SectionSpec, SegmentSpan,
    TableWriter, UnsyncedTable, WRITES_MAX,
};

/// References to blobs that were added and removed by a merge.
#[derive(Debug, Default)]
pub(super) struct MergeCounts {
    /// Those of new tables minus those of tables that they replace.
    pub placed: ReferenceCounts,
    /// Those of runs' sections of sorted layout, which are dropped when the merge is done.
    pub of_runs: ReferenceCounts,
}

impl MergeCounts {
    fn merge(&mut self, other: &Self) {
        self.placed.merge(&other.placed);
        self.of_runs.merge(&other.of_runs);
    }
}

/// Writes a table for each of the ranges and puts it into the destination of the flow.
///
/// With background threads the sync and the switch of a part overlap with the merge of the next.
pub(super) fn write_parts(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    flow: &Flow,
    young: &YoungItems,
    mut ranges: impl Iterator<Item = HashRange>,
) -> Result<MergeCounts> {
    let mut counts = MergeCounts::default();
    let _kept = KeptBuffers::in_this_thread(shared.memory.budget().merge_buffer_bytes());
    alluvium_io::sync::thread::scope(|scope| {
        let mut finishing: Option<ScopedJoinHandle<'_, Result<()>>> = None;
        let join = |handle: ScopedJoinHandle<'_, Result<()>>| {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let mut open_next =
            || ranges.next().map(|range| Part::open(shared, keyspace, flow, young, range)).transpose();
        let mut next = open_next()?;
        while let Some((part, inputs)) = next {
            let writing = part.begin(shared, keyspace, flow)?;
            let written = writing.map(|mut writing| {
                writing.add(shared, young.range(writing.part.range), inputs)?;
                writing.end()
            });
            let written = written.transpose()?;
            next = open_next()?;
            finishing.take().map_or(Ok(()), join)?;
            let Some(written) = written else { continue };
            counts.merge(&written.counts);
            if shared.settings.background {
                finishing = Some(scope.spawn(move || written.finish(shared, keyspace, flow)));
            } else {
                written.finish(shared, keyspace, flow)?;
            }
        }
        finishing.map_or(Ok(()), join)
    })?;
    Ok(counts)
}

/// Receives young items of a range that follow those of earlier calls.
pub(super) type AddItems<'a> = dyn FnMut(&YoungItems, HashRange) -> Result<()> + 'a;

/// Writes one table for `range` from young items that arrive in pieces because memory has no room for all of them, and
/// puts it into the destination of the flow. `feed` passes the pieces to its argument. The number, bytes and log
/// segments of the young items are known beforehand. Returns the references to blobs that were added and removed.
pub(super) fn write_in_pieces(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    flow: &Flow,
    range: HashRange,
    (items, bytes, segments): (u64, u64, SegmentSpan),
    feed: impl FnOnce(&mut AddItems<'_>) -> Result<()>,
) -> Result<ReferenceCounts> {
    let version = keyspace.version.load_full();
    let inputs = flow.inputs(&version.body, range);
    let part = Part::of(&inputs, range, (items, items, bytes), segments);
    let Some(mut writing) = part.begin(shared, keyspace, flow)? else {
        return Ok(ReferenceCounts::default());
    };
    feed(&mut |young, range| {
        let inputs = OpenInputs::scan(shared, &flow.inputs(&version.body, range))?;
        writing.add(shared, young.range(range), inputs)
    })?;
    drop(version);
    let written = writing.end()?;
    let references = written.counts.placed.clone();
    written.finish(shared, keyspace, flow)?;
    Ok(references)
}

/// A part of a merge.
#[derive(Debug, Clone, Copy)]
struct Part {
    range: HashRange,
    /// Whether it certainly has no input.
    is_empty: bool,
    /// Whether the new table hides older items.
    hides: bool,
    items_estimate: u64,
    item_bytes: u64,
    segments: SegmentSpan,
}

/// The input of a part, and its memory.
struct OpenInputs<'s> {
    scanners: Vec<SectionScanner>,
    /// The number of those that read runs.
    of_runs: usize,
    _buffers: HeldMemory<'s>,
}

/// A part whose table is being written.
struct WritingPart<'s> {
    part: Part,
    writer: TableWriter,
    unplaced: UnplacedTable<'s>,
    /// The edit that records that the table is in the directory of young levels, if it is.
    placed: Option<Edit>,
    moment: Moment<'static>,
    counts: MergeCounts,
    samples: Samples,
    /// Room for a tombstone that replaces an expired item.
    tombstone: Vec<u8>,
    /// Items of this prefix are left out.
    left_out: Option<(KeyHasher, Vec<u8>)>,
    _buffers: HeldMemory<'s>,
}

/// A part whose table is written, but neither durable nor in position.
struct WrittenPart<'s> {
    part: Part,
    table: UnsyncedTable,
    unplaced: UnplacedTable<'s>,
    placed: Option<Edit>,
    counts: MergeCounts,
    samples: Samples,
}

impl<'s> OpenInputs<'s> {
    fn scan(shared: &'s Shared, inputs: &Inputs) -> Result<Self> {
        let sequences = inputs.streams.len();
        let read_bytes = shared.memory.budget().read_bytes_each(sequences);
        let of_buckets = |stream: &&Vec<SectionRange>| {
            stream.iter().any(|range| range.section.layout() == Layout::Bucketed)
        };
        let groups = inputs.streams.iter().filter(of_buckets).count() * GROUP_BYTES;
        let _buffers = shared.hold_buffers((sequences * read_bytes * READS_AHEAD_MAX + groups) as u64);
        let scanners = scan_streams(&*shared.storage, &inputs.streams, read_bytes)?;
        Ok(Self { scanners, of_runs: inputs.of_runs, _buffers })
    }
}

impl Part {
    /// Opens the part with the old items to be read.
    fn open<'s>(
        shared: &'s Shared,
        keyspace: &KeyspaceShared,
        flow: &Flow,
        young: &YoungItems,
        range: HashRange,
    ) -> Result<(Self, OpenInputs<'s>)> {
        let inputs = flow.inputs(&keyspace.version.load().body, range);
        let sizes = (young.range(range).len() as u64, young.len() as u64, young.encoded_bytes());
        let part = Self::of(&inputs, range, sizes, young.segments);
        Ok((part, OpenInputs::scan(shared, &inputs)?))
    }

    /// A part for `items` young items, with `example_items` of them of `example_bytes` as a sample, and the other
    /// input.
    fn of(
        inputs: &Inputs,
        range: HashRange,
        (items, example_items, example_bytes): (u64, u64, u64),
        segments: SegmentSpan,
    ) -> Self {
        let (old_items, old_bytes) = inputs.size();
        let all_items = old_items + example_items as f64;
        // Without tags.
        let all_bytes = (old_bytes - old_items).max(0.0) + example_bytes as f64;
        Self {
            range,
            is_empty: items == 0 && inputs.streams.is_empty(),
            hides: inputs.hides,
            items_estimate: items + old_items as u64,
            item_bytes: (all_bytes / all_items.max(1.0)) as u64,
            segments: inputs.above_older(segments.join(inputs.segments())),
        }
    }

    /// Begins the part's table. Returns `None` if it needs none.
    fn begin<'s>(
        self,
        shared: &'s Shared,
        keyspace: &KeyspaceShared,
        flow: &Flow,
    ) -> Result<Option<WritingPart<'s>>> {
        if self.is_empty {
            return Ok(None);
        }
        let number = TableId(shared.next_file.fetch_add(1, Ordering::Relaxed));
        let options = shared.output_of_merges();
        let name = table_file_name(number);
        let placed = shared.place_table(number, flow.to);
        let unplaced = UnplacedTable::new(shared, number);
        let mut writer = TableWriter::create_with(&*shared.storage, &name, number, options)?;
        writer.set_segments(self.segments);
        let (keyspace_id, hasher) = (keyspace.id, keyspace.hasher);
        let plan = keyspace.plan_state();
        let (level, plan_number) = (flow.to, plan.number);
        let range = self.range;
        let spec = SectionSpec { keyspace: keyspace_id, hasher, range, level, plan_number };
        let size = (self.items_estimate, self.item_bytes * self.items_estimate);
        let level = &plan.plan.levels[flow.to];
        let below = match flow.pushes {
            true => {
                Below::of(level, keyspace.version.load().body.level(flow.to), range, self.items_estimate)?
            }
            false => Below::default(),
        };
        begin_ordered(&mut writer, level, spec, size, below);
        let samples = match flow.counts_old_values(&plan.plan) {
            true => Samples::of(self.items_estimate),
            false => Samples::default(),
        };
        Ok(Some(WritingPart {
            part: self,
            writer,
            unplaced,
            placed,
            moment: Moment::At(shared.now_ms()),
            counts: MergeCounts::default(),
            samples,
            tombstone: Vec::new(),
            left_out: flow.left_out.clone().map(|prefix| (keyspace.hasher, prefix)),
            _buffers: shared.hold_buffers((options.write_bytes * WRITES_MAX) as u64),
        }))
    }
}

impl<'s> WritingPart<'s> {
    /// Merges items into the table, which follow those of earlier calls. Tombstones and expired items are dropped
    /// unless they hide something older.
    fn add(&mut self, shared: &Shared, young: YoungRange<'_>, mut inputs: OpenInputs<'_>) -> Result<()> {
        let Self { part, writer, moment, counts, samples, tombstone, left_out, .. } = self;
        let is_left_out = |key: &[u8]| {
            let is_of = |(hasher, prefix): &(KeyHasher, Vec<u8>)| hasher.prefix_of(key) == Some(prefix);
            left_out.as_ref().is_some_and(is_of)
        };
        let mut read = MergeCounts::default();
        let of_runs = inputs.of_runs;
        let read_old = |number: usize, item: &EncodedItem<'_>| {
            if number < of_runs { &mut read.of_runs } else { &mut read.placed }.remove(&item.item);
        };
        for_each_merged(young, &mut inputs.scanners, read_old, |hash, item| {
            // A merge may be large; an interrupted one keeps what it has done.
            shared.check_open()?;
            if is_left_out(item.item.key) {
                return Ok(());
            }
            if moment.is_live(&item.item) {
                counts.placed.add(&item.item);
                samples.offer(hash, item.item.key);
                shared.merge_rate.pay(item.bytes.len() as u64, &*shared.clock);
                writer.push(hash, item)?;
            } else if part.hides && item.item.is_tombstone() {
                writer.push(hash, item)?;
            } else if part.hides {
                tombstone.clear();
                Item::tombstone(item.item.key).encode(tombstone);
                let item = EncodedItem::decode(tombstone).expect("an item was encoded");
                writer.push(hash, &item)?;
            }
            Ok(())
        })?;
        counts.merge(&read);
        Ok(())
    }

    fn end(self) -> Result<WrittenPart<'s>> {
        let Self { part, mut writer, unplaced, placed, counts, samples, .. } = self;
        writer.finish_section()?;
        Ok(WrittenPart { part, table: writer.finish()?, unplaced, placed, counts, samples })
    }
}

impl WrittenPart<'_> {
    fn finish(self, shared: &Shared, keyspace: &KeyspaceShared, flow: &Flow) -> Result<()> {
        let Self { part: Part { range, .. }, table, unplaced, placed: edit, counts, samples } = self;
        let (keyspace_id, references) = (keyspace.id, &counts.placed);
        let mut edits = Vec::new();
        let mut placed = None;
        let unplaced_table;
        if flow.pushes && table.item_count() == 0 {
            // No item of the merge is left, and there is nothing to replace.
            drop(unplaced);
            unplaced_table = None;
        } else {
            let info = table.sync()?;
            shared.counters.sorted_bytes_written.fetch_add(info.file_bytes, Ordering::Relaxed);
            shared.storage.sync_directory().context(|| "syncing the database directory".to_owned())?;
            let file = TableFile::open(&shared.reclaimer, info.file_number)?;
            let sections = file.all_sections()?;
            file.load_indexes(&sections)?;
            shared.counters.count_table(flow.to, info.file_bytes, &sections);
            let repeats = samples.share_from_level(shared, keyspace, flow.hidden_from())?;
            shared.count_if_young(info.file_number, info.file_bytes);
            edits.extend(edit);
            let (file_number, level, over) = (info.file_number, flow.to, flow.pushes);
            let items = file.table.sections().iter().map(|section| section.item_count()).sum();
            edits.push(Edit::AddSorted {
                keyspace: keyspace_id,
                file: file_number,
                range,
                level,
                over,
                repeats,
                items,
            });
            let section = sections[0].clone();
            placed = Some(PlacedTable { section, file, repeats });
            unplaced_table = Some(unplaced);
        }
        for &level in &flow.from {
            edits.push(Edit::DropSorted { keyspace: keyspace_id, level, range });
        }
        edits.extend(references.edits(keyspace_id));
        shared.append_edits(&edits)?;
        unplaced_table.into_iter().for_each(UnplacedTable::place);
        shared.blobs.count_gains(references);
        keyspace.update_version(|version| {
            let blobs = version.blobs.with_counts(references);
            let epoch = version.epoch + u64::from(flow.changes_items);
            let mut next = Version { blobs, epoch, ..version.clone() };
            for &from in &flow.from {
                next.body.replace_level(from, range, |level| level.with_replaced(range, None));
            }
            next.body.replace_level(flow.to, range, |level| match &placed {
                Some(table) if flow.pushes => level.with_pushed(range, table),
                Some(table) => level.with_replaced(range, Some(table.clone())),
                None => level.clone(),
            });
            next
        });
        shared.blobs.count_losses(references);
        if let Some(table) = &placed {
            keyspace.version.load().body.level(flow.to).set_covered_by(table);
        }
        Ok(())
    }
}
