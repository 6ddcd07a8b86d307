//! Makes the indexes that a plan asks for from the pages of tables that are stored with other ones.
//!
//! Tries of any granularity, and fences, find pages of the same layout, so a change of index alone rewrites no table
//! (LIM §3.1.6). What is made is in memory; tables that merges write anyway are stored with the new index. After an
//! opening it is made again, when nothing else is due and as far as memory has room. Until then, and where memory is
//! short, lookups use the stored index.

use std::sync::Arc;

use alluvium_model::{Filter, Index, LevelSpec, TableLayout};

use super::level_table::sorted_index;
use crate::core::{KeyspaceShared, Shared};
use crate::error::Result;
use crate::level::Levels;
use crate::table::{IndexTarget, Made, Section};

/// The index of the level's tables, if it is one of those that can be made from pages.
pub(super) fn index_target(level: &LevelSpec) -> Option<IndexTarget> {
    let is_of_slots = level.index == Index::Offsets;
    if level.table != TableLayout::Sorted || level.index == Index::ThreeLevel || is_of_slots {
        return None;
    }
    let fragment_bits = match level.filter {
        Filter::Fragments { bits } => Some(bits),
        _ => None,
    };
    Some(IndexTarget { index: sorted_index(level), fragment_bits })
}

/// Sections that lack the index of their level, and for which it can be made now, young levels first.
fn lacking(levels: &Levels) -> impl Iterator<Item = (&Arc<Section>, IndexTarget)> {
    let young = levels.run_sections().map(|section| (0, &section.section));
    let old = levels
        .numbered_levels()
        .flat_map(|(number, level)| level.tables().map(move |table| (number, &table.section)));
    young.chain(old).filter_map(|(number, section)| {
        let target = index_target(&levels.plan().levels[number])?;
        section.lacks_index(target).then_some((section, target))
    })
}

/// Number of sections that lack the index of their level, and for which it can be made now.
pub(crate) fn indexes_left(keyspace: &KeyspaceShared) -> usize {
    lacking(&keyspace.version.load().body).count()
}

fn next(shared: &Shared) -> Option<(Arc<Section>, IndexTarget)> {
    shared.all_keyspaces().iter().find_map(|keyspace| {
        let version = keyspace.version.load();
        let (section, target) = lacking(&version.body).next()?;
        Some((section.clone(), target))
    })
}

/// Whether an index is to be made.
pub(crate) fn is_index_due(shared: &Shared) -> bool {
    next(shared).is_some()
}

/// Makes the next index that is due; returns `false` if there is none. Pays for the pages read as if they were written.
pub(crate) fn make_next_index(shared: &Shared) -> Result<bool> {
    let Some((section, target)) = next(shared) else { return Ok(false) };
    if let Made::Index { bytes_read } = section.make_index(target)? {
        shared.merge_rate.pay(bytes_read, &*shared.clock);
    }
    Ok(true)
}
