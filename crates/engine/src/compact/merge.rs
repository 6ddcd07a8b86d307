//! Merges a unit of runs (SILT §3.3) or a container (LSM-trie, Wu's thesis §4.2.3) into the level below.
//!
//! A unit or container is rewritten in parts of one table each. The new table of a part counts as soon as it is
//! durable; at the same moment the tables that it replaces cease to count in that part. The space and time of rewriting
//! a whole unit or container are therefore never needed at once, and an interrupted merge keeps what it has done. A
//! unit's sections stay until the last part is done. Until then they repeat what the new tables already contain, which
//! is harmless.
//!
//! If the young items of the unit do not fit in memory together, they are gathered in several passes, each for some
//! parts. A pass reads all hash sections, which is little compared with the sorted tables that it rewrites.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_base::{HashRange, TableId};
use alluvium_io::sync::atomic::Ordering;

use super::cut::{grouped, merged_ranges, pushed_ranges, ranges_within};
use super::due::Due;
use super::flow::Flow;
use super::mass::Mass;
use super::merge_part::{MergeCounts, write_parts};
use crate::blob::ReferenceCounts;
use crate::core::{KeyspaceShared, Shared};
use crate::error::Result;
use crate::level::{MergeUnit, Place, Run, RunSection, Version};
use crate::manifest::Edit;
use crate::merge::YoungItems;
use crate::planted_race::PlantedRace;
use crate::table::{READS_AHEAD_MAX, SectionScanner, SegmentSpan};

/// A section of a run that is merged, with its run and its number in the run.
pub(super) type Merged = (Arc<Run>, u32, Arc<RunSection>);

/// Merges one unit or container.
pub(crate) fn merge(shared: &Shared, due: &Due) -> Result<()> {
    let planted = shared.planted_bugs.has(PlantedRace::MergeTwiceAtOnce);
    let _only_one = (!planted).then(|| shared.merge_lock.lock().expect("no panic while held"));
    let keyspace = &due.keyspace;
    match due.place {
        Place::Unit(unit) => merge_unit(shared, keyspace, &unit, due.collects)?,
        Place::Container { level, range } => {
            merge_container(shared, keyspace, level, range, due.collects)?;
        }
    }
    shared.counters.merges.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// Merges a unit of runs into level 1; also merges that level's content there if obsolete versions are collected.
fn merge_unit(shared: &Shared, keyspace: &KeyspaceShared, unit: &MergeUnit, collects: bool) -> Result<()> {
    let version = keyspace.version.load_full();
    // Since it was picked, the unit may have been merged or the keyspace cleared.
    let Some(unit) = version
        .body
        .units()
        .into_iter()
        .find(|present| present.bits == unit.bits && present.index == unit.index)
    else {
        return Ok(());
    };
    let merged: Vec<Merged> = version
        .body
        .unit_sections(unit.bits, unit.index)
        .map(|(run, shard, section)| (run.clone(), shard, section.clone()))
        .collect();
    let mut flow = Flow::into_level(version.body.plan(), 1);
    if collects {
        flow = flow.collecting();
    }
    let whole = unit.range();
    let bytes: u64 = merged.iter().map(|(_, _, section)| section.section.pages_bytes()).sum();
    // Sections in slot order are sorted in memory; sorted ones are merged as they are read.
    let is_sorted = merged.iter().all(|(_, _, section)| section.section.layout().is_ordered());
    if is_sorted {
        for of_run in merged.chunk_by(|(one, ..), (other, ..)| Arc::ptr_eq(one, other)) {
            flow.runs.push(of_run.iter().map(|(_, _, section)| section.section.clone()).collect());
        }
    }
    let passes = if is_sorted { 1 } else { passes(shared, &merged) };
    let ranges = ranges_of(shared, keyspace, &version, &flow, whole, bytes as f64);
    // If held longer, the version would keep the tables that the parts replace.
    drop(version);
    let (mut gone, mut references) = (ReferenceCounts::default(), ReferenceCounts::default());
    for ranges in grouped(&ranges, passes) {
        let range = HashRange::new(ranges[0].low, ranges[ranges.len() - 1].high);
        let share = (range.high - range.low) as f64 / ((whole.high - whole.low) as f64).max(1.0);
        let young = if is_sorted {
            YoungItems::default()
        } else {
            let (young, references) = load(shared, &merged, share, range)?;
            gone.merge(&references);
            young
        };
        let _held = shared.hold_items(young.memory_bytes());
        let MergeCounts { placed, of_runs } =
            write_parts(shared, keyspace, &flow, &young, ranges.iter().copied())?;
        references.merge(&placed);
        gone.merge(&of_runs);
    }
    references.merge(&gone);
    drop_sections(shared, keyspace, &merged, &gone)?;
    shared.blobs.unhide(&references);
    Ok(())
}

/// Merges a container into the next level, and that level's content there if obsolete versions are collected. A
/// container of the last level is merged into itself.
fn merge_container(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    level: usize,
    range: HashRange,
    collects: bool,
) -> Result<()> {
    let version = keyspace.version.load_full();
    // Since it was picked, it may have been merged, or the keyspace cleared or its plan changed.
    if !version.body.has_tables_in(level, range) {
        return Ok(());
    }
    let of_level = version.body.level(level);
    let (flow, ranges) = if level == version.body.last_level() {
        let is_semi_sorted = keyspace.hasher.is_semi_sorted();
        let sizes = &shared.settings.table_sizes;
        (Flow::within_level(level), ranges_within(of_level, range, is_semi_sorted, sizes))
    } else {
        let mut flow = Flow { from: vec![level], ..Flow::into_level(version.body.plan(), level + 1) };
        if collects {
            flow = flow.collecting();
        }
        let bytes = of_level.bytes_within(range);
        let ranges = ranges_of(shared, keyspace, &version, &flow, range, bytes);
        (flow, ranges)
    };
    drop(version);
    let counts = write_parts(shared, keyspace, &flow, &YoungItems::default(), ranges.into_iter())?;
    shared.blobs.unhide(&counts.placed);
    Ok(())
}

/// The ranges of the tables made by a merge of `bytes` in `range` and of the destination level's content there.
fn ranges_of(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    version: &Version,
    flow: &Flow,
    range: HashRange,
    bytes: f64,
) -> Vec<HashRange> {
    let sizes = &shared.settings.table_sizes;
    let to = version.body.level(flow.to);
    let mass = if keyspace.hasher.is_semi_sorted() {
        Mass::of_sections(flow.inputs(&version.body, range).streams.iter().flatten())
    } else if flow.pushes {
        Mass::even(range, bytes)
    } else {
        Mass::even(range, bytes + to.bytes_within(range))
    };
    if flow.pushes {
        return pushed_ranges(version.body.plan(), flow.to, to, range, &mass, sizes);
    }
    merged_ranges(to, range, &mass, sizes)
}

/// Number of passes, a power of two, with which the young items of each pass stay within their share of memory.
fn passes(shared: &Shared, merged: &[Merged]) -> u64 {
    let (items, bytes) = young_size(merged);
    let needed = YoungItems::memory_bytes_for(items, bytes);
    needed.div_ceil(shared.memory.budget().merge_bytes).next_power_of_two()
}

/// Number of items in the sections, and the bytes that their pages use.
fn young_size(merged: &[Merged]) -> (u64, u64) {
    merged.iter().fold((0, 0), |(items, bytes), (_, _, section)| {
        (items + section.section.item_count(), bytes + section.section.used_bytes())
    })
}

/// The sections' items whose hashes are in `range`, which is the share `part` of the sections' own range, and the
/// references removed with them.
fn load(
    shared: &Shared,
    merged: &[Merged],
    part: f64,
    range: HashRange,
) -> Result<(YoungItems, ReferenceCounts)> {
    let mut references = ReferenceCounts::default();
    let sections = || merged.iter().map(|(_, _, section)| &section.section);
    let (items, bytes) = young_size(merged);
    // Hashes are uniform: a part with n expected items practically never has four standard deviations more.
    let share = |whole: u64, item: u64| {
        let items = whole as f64 / item as f64 * part.min(1.0);
        let spread = if part < 1.0 { 4.0 * items.sqrt() + 16.0 } else { 0.0 };
        ((items + spread) * item as f64) as usize
    };
    let item_bytes = bytes.checked_div(items).unwrap_or(0).max(1);
    let mut young = YoungItems::with_capacity(share(items, 1), share(bytes, item_bytes));
    let read_bytes = shared.memory.budget().read_bytes;
    let _buffers = shared.hold_buffers((read_bytes * READS_AHEAD_MAX) as u64);
    let _held = shared.hold_items(young.memory_bytes());
    let mut scanner = SectionScanner::chain(&*shared.storage, sections().cloned(), read_bytes);
    while scanner.advance()? {
        shared.check_open()?;
        let age = scanner.section_number() as u32;
        if let Some((hash, item)) = scanner.current_encoded()
            && range.contains(hash.0)
        {
            references.remove(&item.item);
            young.push(hash, age, item.bytes);
        }
    }
    young.finish();
    young.segments = sections().map(|section| section.segments()).fold(SegmentSpan::EMPTY, SegmentSpan::join);
    Ok((young, references))
}

/// Drops the merged sections: all their items are in tables of level 1. Sections that joined the unit during the merge
/// are younger and stay.
pub(super) fn drop_sections(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    merged: &[Merged],
    references: &ReferenceCounts,
) -> Result<()> {
    let mut by_file: BTreeMap<TableId, Vec<u32>> = BTreeMap::new();
    for (run, shard, _) in merged {
        by_file.entry(run.file.id).or_default().push(*shard);
    }
    let mut edits: Vec<_> = by_file
        .iter()
        .map(|(&file, shards)| Edit::DropShards { keyspace: keyspace.id, file, shards: shards.clone() })
        .collect();
    edits.extend(references.edits(keyspace.id));
    let is_late = shared.planted_bugs.has(PlantedRace::PublishBeforeManifest);
    if !is_late {
        shared.append_edits(&edits)?;
    }
    shared.blobs.count_gains(references);
    keyspace.update_version(|version| {
        let mut next = version.clone();
        next.body.drop_shards(&by_file);
        next.blobs = version.blobs.with_counts(references);
        next
    });
    shared.blobs.count_losses(references);
    for (run, _, section) in merged {
        section.set_merged();
        if is_late || shared.planted_bugs.has(PlantedRace::ReaderWithoutPin) {
            section.give_back();
        }
        if !shared.is_file_named(run.file.id) {
            run.file.set_obsolete();
        }
    }
    if is_late {
        shared.append_edits(&edits)?;
    }
    Ok(())
}
