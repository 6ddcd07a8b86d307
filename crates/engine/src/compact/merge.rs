//! Merging hash runs into the sorted run, one unit of the hash space at a time (SILT §3.3).
//!
//! A unit is rewritten in parts of a table each. A part's new table takes the old ones' place as soon as it is
//! durable, so the space of two sorted runs is never needed, only that of two tables. The unit's hash sections stay
//! until the last part is done: until then they repeat what the new tables already hold, which is harmless.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::ScopedJoinHandle;

use alluvium_model::{Growth, Index, Plan};

use super::merged::{for_each_merged, scan_sorted};
use super::young::YoungItems;
use crate::db::{KeyspaceShared, Moment, Shared};
use crate::error::{IoContext, Result};
use crate::level::{MergeUnit, Run, RunSection, SortedTable, TableFile, Version, table_file_name};
use crate::manifest::Edit;
use crate::table::{
    READS_AHEAD_MAX, SectionScanner, SectionSpec, SortedIndex, TableWriter, UnsyncedTable, WRITES_MAX,
    pages_expected,
};

/// Sizes to which tables of the sorted run are cut: an eighth of their merge, within these bounds.
const TABLE_BYTES_MIN: u64 = 1 << 20;
const TABLE_BYTES_MAX: u64 = 32 << 20;

/// The unit most in need of merging, and how far its keyspace is over its bound: above 1 it is due.
#[derive(Debug)]
pub(crate) struct Due {
    pub keyspace: Arc<KeyspaceShared>,
    pub unit: MergeUnit,
    pub pressure: f64,
}

/// Picks the fullest unit of the keyspace that is furthest over its bound. With `all` any unit is due.
///
/// Merging the fullest unit whenever the sum is over the bound staggers the units by itself: in the steady state they
/// are evenly spread between empty and twice the mean, so memory stays near the bound instead of swinging below it.
pub(crate) fn pick(shared: &Shared, all: bool) -> Option<Due> {
    let mut best: Option<Due> = None;
    for keyspace in shared.all_keyspaces() {
        let version = keyspace.version.load();
        let units = MergeUnit::all(&version.runs);
        let Some(fullest) = units.iter().max_by_key(|unit| unit.items).copied() else { continue };
        let (runs_max, budget) = bounds(shared, &keyspace, &version);
        let tallest = units.iter().max_by_key(|unit| unit.runs).copied().unwrap_or(fullest);
        let items: u64 = units.iter().map(|unit| unit.items).sum();
        let by_items = items as f64 / budget.max(1.0);
        let by_runs = f64::from(tallest.runs) / f64::from(runs_max);
        let (unit, pressure) =
            if by_runs > by_items && by_runs > 1.0 { (tallest, by_runs) } else { (fullest, by_items) };
        let due = all || pressure > 1.0;
        if due && best.as_ref().is_none_or(|best| best.pressure < pressure) {
            best = Some(Due { keyspace, unit, pressure });
        }
    }
    best
}

/// How far the keyspaces are over their bounds: the largest pressure of any.
pub(crate) fn pressure(shared: &Shared) -> f64 {
    let pressures = shared.all_keyspaces().into_iter().map(|keyspace| {
        let version = keyspace.version.load();
        let (_, budget) = bounds(shared, &keyspace, &version);
        version.run_items() as f64 / budget.max(1.0)
    });
    pressures.fold(0.0, f64::max)
}

/// Most runs over one place, and most items in runs.
fn bounds(shared: &Shared, keyspace: &KeyspaceShared, version: &Version) -> (u32, f64) {
    let Plan::Levels { levels, .. } = &keyspace.plan else {
        unreachable!("the engine refuses chained plans")
    };
    let Growth::Tiering { runs_max, share } = levels[0].growth else {
        unreachable!("the engine refuses plans whose first level is leveled")
    };
    let present = version.sorted_items() + version.run_items();
    let share_items = share * present.max(shared.settings.expected_items) as f64;
    // A unit swings up to twice the mean: the mean stays under half of what `runs_max` full freezes hold.
    let freeze_items = freeze_items(shared, version);
    let runs_items = f64::from(runs_max) / 2.0 * freeze_items as f64;
    (runs_max, share_items.min(runs_items).max(freeze_items as f64))
}

/// Items of one freeze: as many as the log's index holds, and under a memory limit, where segments are small, as many
/// as a segment holds.
fn freeze_items(shared: &Shared, version: &Version) -> u64 {
    let by_index = (version.active().entries_max() as u64) << version.active().shard_bits();
    let budget = shared.memory.budget();
    if budget.limit.is_none() {
        return by_index;
    }
    let sections = version.runs.iter().flat_map(|run| run.sections.iter().flatten());
    let young = sections.map(|section| (section.section.item_count(), section.section.used_bytes()));
    let old = version.sorted.iter().map(|table| (table.section.item_count(), table.section.used_bytes()));
    let (items, bytes) = young.chain(old).fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1));
    let item_bytes = bytes.checked_div(items).unwrap_or(0).max(1);
    by_index.min((budget.segment_bytes / item_bytes).max(1))
}

/// Merges one unit, in one pass or, where its young items don't fit in memory together, in several over parts of it.
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
    let (low, high) = unit.range();
    let sorted = version.sorted_within(low, high);
    let young_bytes: u64 = merged.iter().map(|(_, _, section)| section.section.pages_bytes()).sum();
    let sorted_bytes: u64 = sorted.iter().map(SortedTable::bytes_estimate).sum();
    let bytes = young_bytes + sorted_bytes;
    let table_bytes = (bytes / 8).clamp(TABLE_BYTES_MIN, TABLE_BYTES_MAX);
    let passes = passes(shared, &merged);
    let parts = bytes.div_ceil(table_bytes).next_power_of_two().max(passes);
    // Held any longer, the version would keep the tables that the parts replace.
    drop(version);
    let width = (high - low) / parts;
    let part_low = |part: u64| low + part * width + part;
    let part_high = |part: u64| if part + 1 == parts { high } else { part_low(part) + width };
    let parts_per_pass = parts / passes;
    for pass in 0..passes {
        let (first, end) = (pass * parts_per_pass, (pass + 1) * parts_per_pass);
        let young = load(shared, &merged, passes, part_low(first), part_high(end - 1))?;
        let ranges = (first..end).map(|part| (part_low(part), part_high(part)));
        write_parts(shared, keyspace, &young, ranges)?;
        shared.merge_buffer_bytes.store(0, Ordering::Relaxed);
    }
    drop_sections(shared, keyspace, &merged)?;
    shared.counters.merges.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Rewrites the tables of the sorted runs that hold items with an expiry, without those that have expired.
pub(crate) fn drop_expired(shared: &Shared) -> Result<()> {
    let _only_one = shared.merge_lock.lock().expect("no panic while held");
    for keyspace in shared.all_keyspaces() {
        let sorted = keyspace.version.load().sorted.clone();
        let expiring = sorted.iter().filter(|table| table.section.expiring_count() > 0);
        let ranges: Vec<_> = expiring.map(|table| (table.low, table.high)).collect();
        drop(sorted);
        write_parts(shared, &keyspace, &YoungItems::default(), ranges.into_iter())?;
    }
    Ok(())
}

/// How many passes keep each pass's young items within their share of memory: a power of two.
fn passes(shared: &Shared, merged: &[(Arc<Run>, u32, Arc<RunSection>)]) -> u64 {
    let (items, bytes) = young_size(merged);
    let needed = YoungItems::memory_bytes_for(items, bytes);
    needed.div_ceil(shared.memory.budget().merge_bytes).next_power_of_two()
}

/// Items of the sections, and the bytes of their pages that are used.
fn young_size(merged: &[(Arc<Run>, u32, Arc<RunSection>)]) -> (u64, u64) {
    merged.iter().fold((0, 0), |(items, bytes), (_, _, section)| {
        (items + section.section.item_count(), bytes + section.section.used_bytes())
    })
}

/// The sections' items whose leading hash bits lie in `low..=high`, one of `passes` equal parts of their range.
fn load(
    shared: &Shared,
    merged: &[(Arc<Run>, u32, Arc<RunSection>)],
    passes: u64,
    low: u64,
    high: u64,
) -> Result<YoungItems> {
    let sections = || merged.iter().map(|(_, _, section)| &section.section);
    let (items, bytes) = young_size(merged);
    // Hashes are uniform: a part of n items expected has four standard deviations more about never.
    let share = |whole: u64, item: u64| {
        let items = whole as f64 / item as f64 / passes as f64;
        let spread = if passes > 1 { 4.0 * items.sqrt() + 16.0 } else { 0.0 };
        ((items + spread) * item as f64) as usize
    };
    let item_bytes = bytes.checked_div(items).unwrap_or(0).max(1);
    let mut young = YoungItems::with_capacity(share(items, 1), share(bytes, item_bytes));
    let read_bytes = shared.memory.budget().read_bytes;
    let _buffers = shared.hold_buffers((read_bytes * READS_AHEAD_MAX) as u64);
    shared.merge_buffer_bytes.store(young.memory_bytes(), Ordering::Relaxed);
    let mut scanner = SectionScanner::chain(&*shared.storage, sections().cloned(), read_bytes);
    while scanner.advance()? {
        let age = scanner.section_number() as u32;
        if let Some((hash, item)) = scanner.current_encoded()
            && hash.high() >= low
            && hash.high() <= high
        {
            young.push(hash, age, item.bytes);
        }
    }
    young.finish();
    shared.merge_buffer_bytes.store(young.memory_bytes(), Ordering::Relaxed);
    young.newest_segment = sections().map(|section| section.newest_segment()).max().unwrap_or(0);
    Ok(young)
}

/// Writes a table for each of the ranges of leading hash bits and puts it in place of the old ones.
///
/// With background threads the sync and the switch of a part overlap with the merge of the next.
fn write_parts(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    young: &YoungItems,
    mut ranges: impl Iterator<Item = (u64, u64)>,
) -> Result<()> {
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
            if shared.settings.background {
                finishing = Some(scope.spawn(move || written.finish(shared, keyspace)));
            } else {
                written.finish(shared, keyspace)?;
            }
        }
        finishing.map_or(Ok(()), join)
    })
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
        let overlap = |table: &SortedTable| {
            let span = (table.high.min(high) - table.low.max(low)) as f64;
            let share = span / ((table.high - table.low) as f64).max(1.0);
            (table.items_estimate() as f64 * share) as u64
        };
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
        for_each_merged(young.range(low, high), self.sorted, |hash, item| {
            if moment.is_live(&item.item) {
                shared.merge_rate.pay(item.bytes.len() as u64, &*shared.clock);
                writer.push(hash, item)?;
            }
            Ok(())
        })?;
        writer.finish_section()?;
        Ok(Some(WrittenPart { low, high, table: writer.finish()? }))
    }
}

impl WrittenPart {
    fn finish(self, shared: &Shared, keyspace: &KeyspaceShared) -> Result<()> {
        let Self { low, high, table } = self;
        let info = table.sync()?;
        let number = info.file_number;
        shared.counters.sorted_bytes_written.fetch_add(info.file_bytes, Ordering::Relaxed);
        shared.storage.sync_directory().context(|| "syncing the database directory".to_owned())?;
        let file = TableFile::open(&shared.reclaimer, number)?;
        file.load_indexes()?;
        shared.append_edits(&[Edit::AddSorted { keyspace: keyspace.id, file: number, low, high }])?;
        let section = file.table.sections()[0].clone();
        let table = SortedTable { low, high, section, file };
        keyspace.update_version(|version| {
            let sorted = version.with_sorted(table.clone());
            mark_obsolete(&version.sorted, &sorted);
            Version { sorted, ..version.clone() }
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
) -> Result<()> {
    let mut by_file: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
    for (run, shard, _) in merged {
        by_file.entry(run.file.number).or_default().push(*shard);
    }
    let edits: Vec<_> = by_file
        .iter()
        .map(|(&file, shards)| Edit::DropShards { keyspace: keyspace.id, file, shards: shards.clone() })
        .collect();
    shared.append_edits(&edits)?;
    keyspace.update_version(|version| {
        let mut next = version.clone();
        for run in &mut next.runs {
            if let Some(shards) = by_file.get(&run.file.number) {
                *run = Arc::new(run.without(shards));
            }
        }
        next.runs.retain(|run| !run.is_empty());
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
