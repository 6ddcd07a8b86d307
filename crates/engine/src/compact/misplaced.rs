//! Rewrites tables that do not match their keyspace's plan because they were made for an earlier one.
//!
//! A change of plan moves no data: tables are then in the levels of the new plan, each level holds the same items in
//! the same order of age ([`crate::level::relevelled`]), and every table itself says how it is read. Tables that differ
//! from what the plan specifies are merged like others when they are due, and are rewritten for that reason alone when
//! nothing else is due.

use std::sync::Arc;

use alluvium_model::{Filter, Growth, Index, LevelSpec, TableLayout};

use super::cut::ranges_within;
use super::drain::{drain, is_to_drain};
use super::due::Due;
use super::garbage::rewrite;
use super::make_indexes::index_target;
use super::merge::merge;
use crate::core::{KeyspaceShared, Shared};
use crate::error::Result;
use crate::level::{Container, Level, Levels, MergeUnit, Place, PlacedTable, RunSection, Version};
use crate::manifest::Edit;
use crate::table::{IndexKind, Layout, Section};

/// Number of tables to be rewritten, and the bytes of their pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    pub tables: usize,
    pub bytes: u64,
}

/// Whether the section was made for an earlier plan and does not match this level.
fn is_misfit(section: &Section, level: &LevelSpec, plan_number: u16) -> bool {
    section.plan_number() != plan_number && !fits(section, level)
}

/// Whether the section is built as the level specifies, or can get the level's index as it is.
fn fits(section: &Section, level: &LevelSpec) -> bool {
    let entry = section.entry();
    let layout = match level.table {
        TableLayout::Hash => Layout::Hash,
        TableLayout::Bucketed => Layout::Bucketed,
        TableLayout::Sorted => Layout::Sorted,
    };
    let index_fits = match (index_target(level), level.index) {
        (Some(target), _) => section.can_have(target),
        (None, Index::ThreeLevel) => entry.index_kind == IndexKind::ThreeLevel,
        (None, Index::Offsets) => entry.index_kind == IndexKind::SlotPages,
        (None, _) => true,
    };
    let filter_fits = match level.filter {
        // Fragments are a part of the index.
        Filter::None => entry.filter.len == 0 || entry.filter_is_fragments,
        Filter::Fragments { .. } => true,
        Filter::Cuckoo { tag_bits } => {
            let is_tags = !entry.filter_covers && !entry.filter_is_static && !entry.filter_is_fragments;
            u32::from(entry.filter_tag_bits) == tag_bits && is_tags
        }
        Filter::Static { bits } => u32::from(entry.filter_tag_bits) == bits && entry.filter_is_static,
        Filter::MultiLevelCuckoo { tag_bits } => {
            u32::from(entry.filter_tag_bits) == tag_bits && entry.filter_covers
        }
        // The youngest tables of a level whose filters are on flash have theirs in memory.
        Filter::BloomCluster { on_flash } => !entry.filter_is_static && (on_flash || !entry.filter_on_flash),
    };
    entry.index_kind == IndexKind::None || entry.layout == layout && index_fits && filter_fits
}

/// The containers of the level that have to be rewritten: a table does not match the level, or several tables are above
/// each other although the level is one run.
fn containers<'v>(
    levels: &'v Levels,
    number: usize,
    level: &'v Level,
) -> impl Iterator<Item = &'v Container<PlacedTable>> {
    let (spec, plan_number) = (levels.plan().levels[number], levels.plan_state().number);
    let is_one_run = matches!(spec.growth, Growth::Leveling { .. });
    level.containers().iter().filter(move |container| {
        is_one_run && container.tables.len() > 1
            || container.tables.iter().any(|table| is_misfit(&table.section, &spec, plan_number))
    })
}

/// Sections of the youngest level that do not match it.
fn run_sections(levels: &Levels) -> impl Iterator<Item = &Arc<RunSection>> {
    let (spec, plan_number) = (levels.plan().levels[0], levels.plan_state().number);
    levels.run_sections().filter(move |section| is_misfit(&section.section, &spec, plan_number))
}

/// What to rewrite next, young levels first, so that what is merged down with them is not written twice.
fn next_of(levels: &Levels) -> Option<Place> {
    if levels.plan().log.chained.is_some() {
        // Items below a chained log stay where they are until something replaces them.
        return None;
    }
    let run_section = run_sections(levels).next();
    let unit = run_section.and_then(|section| {
        let low = section.section.range().low;
        let holds_it = |unit: &MergeUnit| unit.range().contains(low);
        levels.units().into_iter().find(holds_it)
    });
    unit.map(Place::Unit).or_else(|| {
        levels.numbered_levels().find_map(|(number, level)| {
            let &Container { range, .. } = containers(levels, number, level).next()?;
            Some(Place::Container { level: number, range })
        })
    })
}

/// What remains to be rewritten in each level, the youngest first, if the plan of the version changed; otherwise empty.
/// A table above several containers counts only with its parts in those that have to be rewritten.
pub(crate) fn left_to_move(levels: &Levels) -> Vec<Left> {
    if !levels.plan_state().is_moving() {
        return Vec::new();
    }
    let mut young = Left::default();
    for section in run_sections(levels) {
        young.tables += 1;
        young.bytes += section.section.pages_bytes();
    }
    let of_level = |(number, level)| {
        let mut left = Left::default();
        let mut files = std::collections::BTreeSet::new();
        for container in containers(levels, number, level) {
            left.bytes += container.bytes() as u64;
            files.extend(container.tables.iter().map(|table| table.file.id));
        }
        left.tables = files.len();
        left
    };
    std::iter::once(young).chain(levels.numbered_levels().map(of_level)).collect()
}

/// Whether some keyspace's data do not follow its plan yet.
pub(crate) fn is_moving(shared: &Shared) -> bool {
    shared.all_keyspaces().iter().any(|keyspace| keyspace.version.load().body.plan_state().is_moving())
}

/// Rewrites one unit or container that does not match its keyspace's plan, or records that there is none left. Returns
/// whether there was anything to do.
pub(crate) fn follow_plan(shared: &Shared) -> Result<bool> {
    let moving = |keyspace: &Arc<KeyspaceShared>| keyspace.version.load().body.plan_state().is_moving();
    let Some(keyspace) = shared.all_keyspaces().into_iter().find(moving) else { return Ok(false) };
    shared.open_tables_of(&keyspace)?;
    let version = keyspace.version.load_full();
    if is_to_drain(&version) {
        drop(version);
        return drain(shared);
    }
    match next_of(&version.body) {
        None => note_arrival(shared, &keyspace)?,
        Some(Place::Container { level, range }) => {
            let (is_semi_sorted, sizes) = (keyspace.hasher.is_semi_sorted(), &shared.settings.table_sizes);
            let ranges = ranges_within(version.body.level(level), range, is_semi_sorted, sizes);
            // If held longer, the version would keep the tables that are replaced.
            drop(version);
            rewrite(shared, &keyspace, level, ranges.into_iter())?;
        }
        Some(place @ Place::Unit(_)) => {
            drop(version);
            merge(shared, &Due { keyspace, place, pressure: 0.0, collects: false })?;
        }
    }
    Ok(true)
}

/// Records that everything matches the plan, if it does.
fn note_arrival(shared: &Shared, keyspace: &KeyspaceShared) -> Result<()> {
    let _no_conversion = shared.convert_lock.lock().expect("no panic while held");
    let _no_merge = shared.merge_lock.lock().expect("no panic while held");
    let version = keyspace.version.load_full();
    if keyspace.check_present().is_err()
        || !version.body.plan_state().is_moving()
        || next_of(&version.body).is_some()
        || is_to_drain(&version)
    {
        return Ok(());
    }
    let arrived = version.body.plan_state().arrived();
    shared.append_edits(&[Edit::SetPlan { keyspace: keyspace.id, plan: arrived.clone() }])?;
    keyspace.update_version(|version| Version {
        body: version.body.with_plan(arrived.clone()),
        ..version.clone()
    });
    Ok(())
}
