//! Drops the oldest items of a database that is a cache, instead of refusing writes at the disk limit
//! ([`crate::Builder::drop_oldest`]).
//!
//! A piece is the oldest table of the last level that has tables, or the oldest run if only the youngest level has
//! something: nothing older is uncovered by it, so a key has its youngest item afterwards, or none. Merges are not in
//! progress meanwhile. Rows stay: what the row cache has of a dropped item is what the item was, and the next write of
//! its key replaces it.

use std::sync::Arc;

use alluvium_base::HashRange;
use alluvium_io::sync::atomic::Ordering;

use super::merge::{Merged, drop_sections};
use crate::blob::ReferenceCounts;
use crate::core::{KeyspaceShared, Shared};
use crate::error::Result;
use crate::level::{Container, Oldest, PlacedTable, Run};
use crate::manifest::Edit;
use crate::table::{READS_AHEAD_MAX, Section, SectionScanner};

/// Drops one piece if the limit would soon refuse writes; returns whether it did.
pub(crate) fn drop_oldest(shared: &Shared) -> Result<bool> {
    if !shared.can_drop_oldest() {
        return Ok(false);
    }
    // Also of keyspaces that nobody has used since the opening: theirs may be the oldest.
    let keyspaces = shared.opened_keyspaces()?;
    let _only_one = shared.merge_lock.lock().expect("no panic while held");
    let oldest = keyspaces.into_iter().filter_map(|keyspace| {
        let oldest = keyspace.version.load().body.oldest()?;
        Some((keyspace, oldest))
    });
    let Some((keyspace, oldest)) = oldest.min_by_key(|(_, oldest)| oldest.newest_segment()) else {
        return Ok(false);
    };
    match oldest {
        Oldest::Run(run) => drop_run(shared, &keyspace, &run)?,
        Oldest::Table { level, table } => drop_table(shared, &keyspace, level, &table)?,
    }
    Ok(true)
}

fn drop_run(shared: &Shared, keyspace: &KeyspaceShared, run: &Arc<Run>) -> Result<()> {
    let sections = (0..).zip(&run.sections);
    let merged: Vec<Merged> =
        sections.filter_map(|(shard, section)| Some((run.clone(), shard, section.clone()?))).collect();
    let sections = || merged.iter().map(|(_, _, section)| &section.section);
    let references = references_in(shared, keyspace, sections(), &[HashRange::ALL])?;
    drop_sections(shared, keyspace, &merged, &references)?;
    shared.blobs.unhide(&references);
    sections().for_each(|section| count(shared, section, section.item_count()));
    Ok(())
}

fn drop_table(shared: &Shared, keyspace: &KeyspaceShared, number: usize, table: &PlacedTable) -> Result<()> {
    let (id, range) = (table.file.id, table.section.range());
    let version = keyspace.version.load_full();
    let containers: Vec<Container<PlacedTable>> = {
        let within = version.body.level(number).within(range).iter();
        let has_it =
            |container: &&Container<PlacedTable>| container.tables.iter().any(|table| table.file.id == id);
        within.filter(has_it).cloned().collect()
    };
    drop(version);
    let ranges: Vec<HashRange> = containers.iter().map(|container| container.range).collect();
    let references = references_in(shared, keyspace, [&table.section].into_iter(), &ranges)?;
    let mut edits = Vec::new();
    for Container { range, tables } in containers {
        edits.push(Edit::DropSorted { keyspace: keyspace.id, level: number, range });
        let kept = tables.iter().rev().filter(|table| table.file.id != id);
        edits.extend(kept.enumerate().map(|(place, table)| Edit::AddSorted {
            keyspace: keyspace.id,
            file: table.file.id,
            range,
            level: number,
            over: place > 0,
            repeats: table.repeats,
            items: table.section.item_count(),
        }));
    }
    edits.extend(references.edits(keyspace.id));
    shared.append_edits(&edits)?;
    shared.blobs.count_gains(&references);
    keyspace.update_version(|version| {
        let mut next = version.clone();
        next.body.replace_level(number, range, |level| level.without(id));
        next.blobs = version.blobs.with_counts(&references);
        next
    });
    shared.blobs.count_losses(&references);
    shared.blobs.unhide(&references);
    let items: f64 = ranges.iter().map(|range| table.items_within(*range)).sum();
    count(shared, &table.section, items as u64);
    Ok(())
}

/// The references to blobs that go with the items of the sections in these ranges. Reads the sections, unless the
/// keyspace has no references.
fn references_in<'s>(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    sections: impl Iterator<Item = &'s Arc<Section>>,
    ranges: &[HashRange],
) -> Result<ReferenceCounts> {
    let mut references = ReferenceCounts::default();
    if keyspace.version.load().blobs.live.is_empty() {
        return Ok(references);
    }
    let read_bytes = shared.memory.budget().read_bytes;
    let _buffers = shared.hold_buffers((read_bytes * READS_AHEAD_MAX) as u64);
    let mut scanner = SectionScanner::chain(&*shared.storage, sections.cloned(), read_bytes);
    while scanner.advance()? {
        shared.check_open()?;
        if let Some((hash, item)) = scanner.current_encoded()
            && ranges.iter().any(|range| range.contains(hash.0))
        {
            references.remove(&item.item);
        }
    }
    Ok(references)
}

/// Counts what was dropped, durably: a section that is still in use must not count as space that readers hold.
fn count(shared: &Shared, section: &Arc<Section>, items: u64) {
    let counters = &shared.counters;
    counters.oldest_items_dropped.fetch_add(items, Ordering::Relaxed);
    counters.oldest_bytes_dropped.fetch_add(section.extent_bytes(), Ordering::Relaxed);
    shared.disk_quota.note_dropped(section);
}
