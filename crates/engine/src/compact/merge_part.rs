//! The parts of a merge: a new table for each, written while the one before becomes durable and takes its place.

use std::sync::atomic::Ordering;
use std::thread::ScopedJoinHandle;

use alluvium_model::{Index, Plan};

use super::merged::{for_each_merged, scan_sorted};
use super::young::YoungItems;
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
        while let Some(part) = next {
            let written = part.write(shared, keyspace, young)?;
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

/// A part of a merge, its old items being read.
struct Part {
    low: u64,
    high: u64,
    old_tables: bool,
    items_estimate: u64,
    item_bytes: u64,
    newest_segment: u64,
    sorted: Option<SectionScanner>,
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
    fn open(
        keyspace: &KeyspaceShared,
        young: &YoungItems,
        low: u64,
        high: u64,
        read_bytes: usize,
    ) -> Result<Self> {
        let version = keyspace.version.load_full();
        let sorted = version.sorted_within(low, high);
        let overlap =
            |table: &SortedTable| (table.items_estimate() as f64 * table.share_within(low, high)) as u64;
        Ok(Self {
            low,
            high,
            old_tables: !sorted.is_empty(),
            items_estimate: young.range(low, high).len() as u64 + sorted.iter().map(overlap).sum::<u64>(),
            item_bytes: mean_item_bytes(young, sorted),
            newest_segment: sorted
                .iter()
                .map(|table| table.section.newest_segment())
                .fold(young.newest_segment, u64::max),
            sorted: scan_sorted(sorted, low, high, read_bytes)?,
        })
    }

    /// Writes the part's table; `None` when it needs none. Tombstones and expired items end here: nothing is older.
    fn write(
        self,
        shared: &Shared,
        keyspace: &KeyspaceShared,
        young: &YoungItems,
    ) -> Result<Option<WrittenPart>> {
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
        let moment = Moment::At(shared.now_ms());
        let (mut read, mut references) = (ReferenceCounts::default(), ReferenceCounts::default());
        let read_sorted = |item: &EncodedItem<'_>| read.remove(&item.item);
        for_each_merged(young.range(low, high), self.sorted, read_sorted, |hash, item| {
            if moment.is_live(&item.item) {
                references.add(&item.item);
                shared.merge_rate.pay(item.bytes.len() as u64, &*shared.clock);
                writer.push(hash, item)?;
            }
            Ok(())
        })?;
        references.merge(&read);
        writer.finish_section()?;
        Ok(Some(WrittenPart { low, high, table: writer.finish()?, references }))
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
fn mean_item_bytes(young: &YoungItems, sorted: &[SortedTable]) -> u64 {
    let items: u64 = sorted.iter().map(|table| table.section.item_count()).sum::<u64>() + young.len() as u64;
    let bytes: u64 = sorted
        .iter()
        .map(|table| table.section.used_bytes().saturating_sub(table.section.item_count()))
        .sum::<u64>()
        + young.encoded_bytes();
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
