//! Merging hash runs into the sorted run, one unit of the hash space at a time (SILT §3.3).
//!
//! A unit is rewritten in parts of a table each. A part's new table takes the old ones' place as soon as it is
//! durable, so the space of two sorted runs is never needed, only that of two tables. The unit's hash sections stay
//! until the last part is done: until then they repeat what the new tables already hold, which is harmless.
//!
//! Where memory has no room for the unit's young items together, they are gathered in several passes, each for some
//! parts: a pass reads all hash sections, which is little beside the sorted tables that it rewrites.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::due::Due;
use super::merge_part::write_parts;
use super::young::YoungItems;
use crate::blob::ReferenceCounts;
use crate::db::{KeyspaceShared, Shared};
use crate::error::Result;
use crate::level::{MergeUnit, Run, RunSection, SortedTable};
use crate::manifest::Edit;
use crate::table::{READS_AHEAD_MAX, SectionScanner};

/// Sizes to which tables of the sorted run are cut: an eighth of their merge, within these bounds.
const TABLE_BYTES_MIN: u64 = 1 << 20;
const TABLE_BYTES_MAX: u64 = 32 << 20;

/// About the size of the tables that a merge of so many bytes makes.
pub(crate) fn merged_table_bytes(merged_bytes: u64) -> u64 {
    (merged_bytes / 8).clamp(TABLE_BYTES_MIN, TABLE_BYTES_MAX)
}

/// A hash section that is merged, with its run and its number there.
type Merged = (Arc<Run>, u32, Arc<RunSection>);

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
    let merged: Vec<Merged> = unit
        .sections(&version.runs)
        .into_iter()
        .map(|(run, shard, section)| (run.clone(), shard, section.clone()))
        .collect();
    let (low, high) = unit.range();
    let sorted = version.sorted_within(low, high);
    let young_bytes: u64 = merged.iter().map(|(_, _, section)| section.section.pages_bytes()).sum();
    let sorted_bytes: u64 = sorted.iter().map(SortedTable::bytes_estimate).sum();
    let bytes = young_bytes + sorted_bytes;
    // Held any longer, the version would keep the tables that the parts replace.
    drop(version);
    let passes = passes(shared, &merged);
    let tables = bytes.div_ceil(merged_table_bytes(bytes)).max(passes);
    let ranges: Vec<_> = table_ranges(low, high, tables).collect();
    let (mut gone, mut references) = (ReferenceCounts::default(), ReferenceCounts::default());
    for ranges in ranges.chunks(ranges.len() / passes as usize) {
        let (first, last) = (ranges[0], ranges[ranges.len() - 1]);
        let (young, young_references) = load(shared, &merged, passes, first.0, last.1)?;
        gone.merge(&young_references);
        let _held = shared.hold_items(young.memory_bytes());
        references.merge(&write_parts(shared, keyspace, &young, ranges.iter().copied())?);
    }
    references.merge(&gone);
    drop_sections(shared, keyspace, &merged, &gone)?;
    shared.blobs.unhide(&references);
    shared.counters.merges.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Equal ranges of leading hash bits for about so many tables over `low..=high`: a power of two of them.
pub(super) fn table_ranges(low: u64, high: u64, tables: u64) -> impl Iterator<Item = (u64, u64)> {
    let parts = tables.next_power_of_two().max(1);
    let width = (high - low) / parts;
    (0..parts).map(move |part| {
        let part_low = low + part * width + part;
        (part_low, if part + 1 == parts { high } else { part_low + width })
    })
}

/// How many passes keep each pass's young items within their share of memory: a power of two.
fn passes(shared: &Shared, merged: &[Merged]) -> u64 {
    let (items, bytes) = young_size(merged);
    let needed = YoungItems::memory_bytes_for(items, bytes);
    needed.div_ceil(shared.memory.budget().merge_bytes).next_power_of_two()
}

/// Items of the sections, and the bytes of their pages that are used.
fn young_size(merged: &[Merged]) -> (u64, u64) {
    merged.iter().fold((0, 0), |(items, bytes), (_, _, section)| {
        (items + section.section.item_count(), bytes + section.section.used_bytes())
    })
}

/// The sections' items whose leading hash bits lie in `low..=high`, one of `passes` equal parts of their range, and the
/// references that go with them.
fn load(
    shared: &Shared,
    merged: &[Merged],
    passes: u64,
    low: u64,
    high: u64,
) -> Result<(YoungItems, ReferenceCounts)> {
    let mut references = ReferenceCounts::default();
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
    let _held = shared.hold_items(young.memory_bytes());
    let mut scanner = SectionScanner::chain(&*shared.storage, sections().cloned(), read_bytes);
    while scanner.advance()? {
        let age = scanner.section_number() as u32;
        if let Some((hash, item)) = scanner.current_encoded()
            && (low..=high).contains(&hash.high())
        {
            references.remove(&item.item);
            young.push(hash, age, item.bytes);
        }
    }
    young.finish();
    young.newest_segment = sections().map(|section| section.newest_segment()).max().unwrap_or(0);
    Ok((young, references))
}

/// Lets go of the merged hash sections: all their items are in the sorted run. Sections that joined the unit during
/// the merge are younger and stay.
fn drop_sections(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    merged: &[Merged],
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
