//! Merging hash runs into the sorted run, one unit of the hash space at a time (SILT §3.3).
//!
//! A unit is rewritten in parts of a table each. A part's new table takes the old ones' place as soon as it is
//! durable, so the space of two sorted runs is never needed, only that of two tables. The unit's hash sections stay
//! until the last part is done: until then they repeat what the new tables already hold, which is harmless.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::ScopedJoinHandle;

use alluvium_model::{Index, Plan};

use super::due::Due;
use super::merged::{for_each_merged, scan_sorted};
use super::young::YoungItems;
use crate::blob::ReferenceCounts;
use crate::db::{KeyspaceShared, Moment, Shared};
use crate::error::{IoContext, Result};
use crate::item::EncodedItem;
use crate::level::{MergeUnit, Run, RunSection, SortedTable, TableFile, Version, table_file_name};
use crate::manifest::Edit;
use crate::table::{SectionScanner, SectionSpec, SortedIndex, TableWriter, UnsyncedTable, pages_expected};

/// Sizes to which tables of the sorted run are cut: an eighth of their merge, within these bounds.
const TABLE_BYTES_MIN: u64 = 1 << 20;
const TABLE_BYTES_MAX: u64 = 32 << 20;

/// About the size of the tables that a merge of so many bytes makes.
pub(crate) fn merged_table_bytes(merged_bytes: u64) -> u64 {
    (merged_bytes / 8).clamp(TABLE_BYTES_MIN, TABLE_BYTES_MAX)
}

/// Merges one unit.
pub(crate) fn merge(shared: &Shared, due: &Due) -> Result<()> {
    let _only_one = shared.merge_lock.lock().expect("no panic while held");
    let keyspace = &due.keyspace;
    let version = keyspace.version.load_full();
    // The unit may have been merged, or the keyspace cleared, since it was picked.
    let Some(unit) = MergeUnit::all(&version.runs)
        .into_iter()
        .find(|unit| unit.bits == due.unit.bits && unit.index == due.unit.index)
    else {
        return Ok(());
    };
    let merged: Vec<(Arc<Run>, u32, Arc<RunSection>)> = unit
        .sections(&version.runs)
        .into_iter()
        .map(|(run, shard, section)| (run.clone(), shard, section.clone()))
        .collect();
    let (young, mut references) = load(shared, &merged)?;
    let _buffers = shared.reserve_merge_buffers(young.memory_bytes());
    let (low, high) = unit.range();
    let sorted = version.sorted_within(low, high);
    let young_bytes: u64 = merged.iter().map(|(_, _, section)| section.section.pages_bytes()).sum();
    let sorted_bytes: u64 = sorted.iter().map(SortedTable::bytes_estimate).sum();
    let bytes = young_bytes + sorted_bytes;
    // Held any longer, the version would keep the tables that the parts replace.
    drop(version);
    let table_bytes = merged_table_bytes(bytes);
    let gone = references.clone();
    let ranges = table_ranges(low, high, bytes.div_ceil(table_bytes));
    references.merge(&write_parts(shared, keyspace, &young, ranges)?);
    drop_sections(shared, keyspace, &merged, &gone)?;
    shared.blobs.unhide(&references);
    shared.counters.merges.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Equal ranges of leading hash bits for about so many tables over `low..=high`.
pub(super) fn table_ranges(low: u64, high: u64, tables: u64) -> impl Iterator<Item = (u64, u64)> {
    let parts = tables.next_power_of_two().max(1);
    let width = (high - low) / parts;
    (0..parts).map(move |part| {
        let part_low = low + part * width + part;
        (part_low, if part + 1 == parts { high } else { part_low + width })
    })
}

/// The sections' items, and the references that go with the sections.
fn load(
    shared: &Shared,
    merged: &[(Arc<Run>, u32, Arc<RunSection>)],
) -> Result<(YoungItems, ReferenceCounts)> {
    let mut references = ReferenceCounts::default();
    let sections = || merged.iter().map(|(_, _, section)| &section.section);
    let items: u64 = sections().map(|section| section.item_count()).sum();
    let bytes: u64 = sections().map(|section| section.used_bytes()).sum();
    let mut young = YoungItems::with_capacity(items as usize, bytes as usize);
    let mut scanner = SectionScanner::chain(&*shared.storage, sections().cloned());
    while scanner.advance()? {
        let age = scanner.section_number() as u32;
        if let Some((hash, item)) = scanner.current_encoded() {
            references.remove(&item.item);
            young.push(hash, age, item.bytes);
        }
    }
    young.finish();
    young.newest_segment = sections().map(|section| section.newest_segment()).max().unwrap_or(0);
    Ok((young, references))
}

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
    std::thread::scope(|scope| {
        let mut finishing: Option<ScopedJoinHandle<'_, Result<()>>> = None;
        let join = |handle: ScopedJoinHandle<'_, Result<()>>| {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let mut open_next = || {
            let range = ranges.next();
            range.map(|(low, high)| Part::open(keyspace, young, low, high)).transpose()
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
    fn open(keyspace: &KeyspaceShared, young: &YoungItems, low: u64, high: u64) -> Result<Self> {
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
            sorted: scan_sorted(sorted, low, high)?,
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
        let mut writer = TableWriter::create(&*shared.storage, &table_file_name(number), number)?;
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

/// Lets go of the merged hash sections: all their items are in the sorted run. Sections that joined the unit during
/// the merge are younger and stay.
fn drop_sections(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    merged: &[(Arc<Run>, u32, Arc<RunSection>)],
    references: &ReferenceCounts,
) -> Result<()> {
    let mut by_file: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for (run, shard, _) in merged {
        by_file.entry(run.file.number).or_default().push(*shard);
    }
    let mut edits: Vec<_> = by_file
        .iter()
        .map(|(&file, shards)| Edit::DropShards { keyspace: keyspace.id, file, shards: shards.clone() })
        .collect();
    edits.extend(references.edits(keyspace.id));
    shared.append_edits(&edits)?;
    shared.blobs.apply(references);
    keyspace.update_version(|version| {
        let mut next = version.clone();
        for run in &mut next.runs {
            if let Some(shards) = by_file.get(&run.file.number) {
                *run = Arc::new(run.without(shards));
            }
        }
        next.runs.retain(|run| !run.is_empty());
        next.blobs = version.blobs.with_counts(references);
        next
    });
    for (run, _, section) in merged {
        section.set_merged();
        if !shared.is_file_named(run.file.number) {
            run.file.set_obsolete();
        }
    }
    Ok(())
}
