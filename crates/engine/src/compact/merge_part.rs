//! The parts of a merge: a new table for each, written while the one before becomes durable and takes its place.

use std::sync::atomic::Ordering;
use std::thread::ScopedJoinHandle;

use alluvium_model::{Index, Plan};

use super::merged::{for_each_merged, scan_sorted};
use super::young::{YoungItems, YoungRange};
use crate::blob::ReferenceCounts;
use crate::db::{KeyspaceShared, Moment, Shared};
use crate::error::{IoContext, Result};
use crate::item::EncodedItem;
use crate::level::{SortedTable, TableFile, Version, table_file_name};
use crate::manifest::Edit;
use crate::table::{
    READS_AHEAD_MAX, SectionScanner, SectionSpec, SortedIndex, TableWriter, UnsyncedTable, WRITES_MAX,
    pages_expected,
};

/// Writes a table for each of the ranges of leading hash bits and puts it in place of the old ones. Returns the
/// references to blobs that came and went.
///
/// With background threads the sync and the switch of a part overlap with the merge of the next.
pub(super) fn write_parts(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    young: &YoungItems,
    mut ranges: impl Iterator<Item = (u64, u64)>,
) -> Result<ReferenceCounts> {
    let mut references = ReferenceCounts::default();
    let budget = shared.memory.budget();
    let buffers = budget.read_bytes * READS_AHEAD_MAX + budget.write_bytes * WRITES_MAX;
    let _buffers = shared.hold_buffers(buffers as u64);
    std::thread::scope(|scope| {
        let mut finishing: Option<ScopedJoinHandle<'_, Result<()>>> = None;
        let join = |handle: ScopedJoinHandle<'_, Result<()>>| {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let mut open_next = || {
            let range = ranges.next();
            range.map(|(low, high)| Part::open(keyspace, young, low, high, budget.read_bytes)).transpose()
        };
        let mut next = open_next()?;
        while let Some((part, sorted)) = next {
            let writing = part.begin(shared, keyspace)?;
            let written = writing.map(|mut writing| {
                writing.add(shared, young.range(writing.low, writing.high), sorted)?;
                writing.end()
            });
            let written = written.transpose()?;
            next = open_next()?;
            finishing.take().map_or(Ok(()), join)?;
            let Some(written) = written else { continue };
            references.merge(&written.references);
            if shared.settings.background {
                finishing = Some(scope.spawn(move || written.finish(shared, keyspace)));
            } else {
                written.finish(shared, keyspace)?;
            }
        }
        finishing.map_or(Ok(()), join)
    })?;
    Ok(references)
}

/// Takes young items of a range of leading hash bits, behind those of earlier calls.
pub(super) type AddItems<'a> = dyn FnMut(&YoungItems, u64, u64) -> Result<()> + 'a;

/// Writes one table for `low..=high` from young items that come in pieces, for want of the memory for all of them, and
/// puts it in place of the old ones: `feed` hands the pieces to its argument. Of young items it is known how many come,
/// of how many bytes and up to which log segment. Returns the references to blobs that came and went.
pub(super) fn write_in_pieces(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    (low, high): (u64, u64),
    (items, bytes, newest_segment): (u64, u64, u64),
    feed: impl FnOnce(&mut AddItems<'_>) -> Result<()>,
) -> Result<ReferenceCounts> {
    let budget = shared.memory.budget();
    let buffers = budget.read_bytes * READS_AHEAD_MAX + budget.write_bytes * WRITES_MAX;
    let _buffers = shared.hold_buffers(buffers as u64);
    let version = keyspace.version.load_full();
    let part = Part::of(&version, low, high, (items, items, bytes), newest_segment);
    let Some(mut writing) = part.begin(shared, keyspace)? else { return Ok(ReferenceCounts::default()) };
    feed(&mut |young, low, high| {
        let sorted = scan_sorted(version.sorted_within(low, high), low, high, budget.read_bytes)?;
        writing.add(shared, young.range(low, high), sorted)
    })?;
    drop(version);
    let written = writing.end()?;
    let references = written.references.clone();
    written.finish(shared, keyspace)?;
    Ok(references)
}

/// A part of a merge.
struct Part {
    low: u64,
    high: u64,
    old_tables: bool,
    items_estimate: u64,
    item_bytes: u64,
    newest_segment: u64,
}

/// A part whose table is being written.
struct WritingPart {
    low: u64,
    high: u64,
    writer: TableWriter,
    moment: Moment<'static>,
    /// References to blobs in the new table less those in the old ones.
    references: ReferenceCounts,
}

/// A part whose table is written, but neither durable nor in place.
struct WrittenPart {
    low: u64,
    high: u64,
    table: UnsyncedTable,
    /// References to blobs in the new table less those in the old ones.
    references: ReferenceCounts,
}

impl Part {
    /// With its old items, which are being read.
    fn open(
        keyspace: &KeyspaceShared,
        young: &YoungItems,
        low: u64,
        high: u64,
        read_bytes: usize,
    ) -> Result<(Self, Option<SectionScanner>)> {
        let version = keyspace.version.load_full();
        let sizes = (young.range(low, high).len() as u64, young.len() as u64, young.encoded_bytes());
        let part = Self::of(&version, low, high, sizes, young.newest_segment);
        Ok((part, scan_sorted(version.sorted_within(low, high), low, high, read_bytes)?))
    }

    /// For so many young items, of which so many others of so many bytes are an example, and what is in `version`.
    fn of(
        version: &Version,
        low: u64,
        high: u64,
        (items, example_items, example_bytes): (u64, u64, u64),
        newest_segment: u64,
    ) -> Self {
        let sorted = version.sorted_within(low, high);
        let overlap =
            |table: &SortedTable| (table.items_estimate() as f64 * table.share_within(low, high)) as u64;
        Self {
            low,
            high,
            old_tables: !sorted.is_empty(),
            items_estimate: items + sorted.iter().map(overlap).sum::<u64>(),
            item_bytes: mean_item_bytes(example_items, example_bytes, sorted),
            newest_segment: sorted
                .iter()
                .map(|table| table.section.newest_segment())
                .fold(newest_segment, u64::max),
        }
    }

    /// Begins the part's table; `None` when it needs none.
    fn begin(self, shared: &Shared, keyspace: &KeyspaceShared) -> Result<Option<WritingPart>> {
        let Self { low, high, .. } = self;
        if self.items_estimate == 0 && !self.old_tables {
            return Ok(None);
        }
        let number = shared.next_file.fetch_add(1, Ordering::Relaxed);
        let write_bytes = shared.memory.budget().write_bytes;
        let name = table_file_name(number);
        let mut writer = TableWriter::create_with(&*shared.storage, &name, number, write_bytes)?;
        writer.set_newest_segment(self.newest_segment);
        let spec =
            SectionSpec { keyspace: keyspace.id, hasher: keyspace.hasher, range_low: low, range_high: high };
        let pages = pages_expected(self.items_estimate, self.item_bytes * self.items_estimate);
        writer.begin_sorted_section(spec, sorted_index(&keyspace.plan), pages);
        let (moment, references) = (Moment::At(shared.now_ms()), ReferenceCounts::default());
        Ok(Some(WritingPart { low, high, writer, moment, references }))
    }
}

impl WritingPart {
    /// Merges items into the table, behind those of earlier calls. Tombstones and expired items end here: nothing is
    /// older.
    fn add(&mut self, shared: &Shared, young: YoungRange<'_>, sorted: Option<SectionScanner>) -> Result<()> {
        let Self { writer, moment, references, .. } = self;
        let mut read = ReferenceCounts::default();
        let read_sorted = |item: &EncodedItem<'_>| read.remove(&item.item);
        for_each_merged(young, sorted, read_sorted, |hash, item| {
            if moment.is_live(&item.item) {
                references.add(&item.item);
                shared.merge_rate.pay(item.bytes.len() as u64, &*shared.clock);
                writer.push(hash, item)?;
            }
            Ok(())
        })?;
        references.merge(&read);
        Ok(())
    }

    fn end(self) -> Result<WrittenPart> {
        let Self { low, high, mut writer, references, .. } = self;
        writer.finish_section()?;
        Ok(WrittenPart { low, high, table: writer.finish()?, references })
    }
}

impl WrittenPart {
    fn finish(self, shared: &Shared, keyspace: &KeyspaceShared) -> Result<()> {
        let Self { low, high, table, references } = self;
        let info = table.sync()?;
        let number = info.file_number;
        shared.counters.sorted_bytes_written.fetch_add(info.file_bytes, Ordering::Relaxed);
        shared.storage.sync_directory().context(|| "syncing the database directory".to_owned())?;
        let file = TableFile::open(&shared.reclaimer, number)?;
        file.load_indexes()?;
        let mut edits = vec![Edit::AddSorted { keyspace: keyspace.id, file: number, low, high }];
        edits.extend(references.edits(keyspace.id));
        shared.append_edits(&edits)?;
        shared.blobs.apply(&references);
        let section = file.table.sections()[0].clone();
        let table = SortedTable { low, high, section, file };
        keyspace.update_version(|version| {
            let sorted = version.with_sorted(table.clone());
            mark_obsolete(&version.sorted, &sorted);
            Version { sorted, blobs: version.blobs.with_counts(&references), ..version.clone() }
        });
        Ok(())
    }
}

/// Mean encoded size of the items, tags excluded.
fn mean_item_bytes(young_items: u64, young_bytes: u64, sorted: &[SortedTable]) -> u64 {
    let items: u64 = sorted.iter().map(|table| table.section.item_count()).sum::<u64>() + young_items;
    let bytes: u64 = sorted
        .iter()
        .map(|table| table.section.used_bytes().saturating_sub(table.section.item_count()))
        .sum::<u64>()
        + young_bytes;
    bytes / items.max(1)
}

/// Tables of which no part counts any more are removed once their last reader is gone.
fn mark_obsolete(before: &[SortedTable], after: &[SortedTable]) {
    for table in before {
        if !after.iter().any(|kept| kept.file.number == table.file.number) {
            table.file.set_obsolete();
        }
    }
}

/// How pages of tables of the sorted run are found.
pub(crate) fn sorted_index(plan: &Plan) -> SortedIndex {
    match plan {
        Plan::Levels { levels, .. } if levels.last().is_some_and(|level| level.index == Index::Trie) => {
            SortedIndex::Trie
        }
        _ => SortedIndex::FENCES,
    }
}
