//! The version of a keyspace: log stores, runs and levels, young to old.

use std::sync::Arc;

use alluvium_base::HashRange;

use super::container::relevelled;
use super::levels::Level;
use super::placed_table::PlacedTable;
use super::run::Run;
use super::table_file::TableFile;
use crate::blob::VersionBlobs;
use crate::log::LogStore;
use crate::manifest::PlanState;
use crate::table::{Section, SectionRange};

/// Everything a reader of one keyspace needs; immutable except for the youngest log store. A lookup visits the parts in
/// order and stops at the first item, which is the newest.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    /// The plan that the levels follow, and for which new tables are made.
    pub plan: Arc<PlanState>,
    /// Young to old; the first is the active one.
    pub log_stores: Vec<Arc<LogStore>>,
    /// The youngest level, level 0. Young to old.
    pub runs: Vec<Arc<Run>>,
    /// The levels below it, level 1 first: as many as the plan says.
    pub levels: Vec<Level>,
    /// Large items, stored in blob files.
    pub blobs: Arc<VersionBlobs>,
    /// Grows when items change without a write to the log: a witness of another epoch proves nothing. Not stored.
    pub epoch: u64,
}

impl Version {
    pub fn active(&self) -> &Arc<LogStore> {
        &self.log_stores[0]
    }

    /// The level of this number in the plan, at least 1.
    pub fn level(&self, number: usize) -> &Level {
        &self.levels[number - 1]
    }

    /// The number of the last level.
    pub fn last_level(&self) -> usize {
        self.levels.len()
    }

    /// The levels below the youngest with their numbers, young to old.
    pub fn numbered_levels(&self) -> impl Iterator<Item = (usize, &Level)> {
        (1..).zip(&self.levels)
    }

    /// Replaces the level of this number by the result of `change`, which affects `range` only. Tables that are in no
    /// container any more are removed once their last reader is gone: the manifest no longer names them.
    pub fn replace_level(&mut self, number: usize, range: HashRange, change: impl FnOnce(&Level) -> Level) {
        let level = &mut self.levels[number - 1];
        let changed = change(level);
        changed.set_obsolete_since(level, range);
        *level = changed;
    }

    /// The version with its tables in the levels of another plan.
    pub fn with_plan(&self, plan: PlanState) -> Self {
        let containers: Vec<_> = self.levels.iter().map(|level| level.containers().to_vec()).collect();
        let levels = relevelled(&containers, plan.levels());
        let levels = levels.into_iter().map(Level::from_containers).collect();
        Self { plan: Arc::new(plan), levels, ..self.clone() }
    }

    /// The same number of levels, all empty.
    pub fn empty_levels(&self) -> Vec<Level> {
        vec![Level::default(); self.levels.len()]
    }

    /// Whether there is a level of this number with a table in `range`.
    pub fn lies_in(&self, number: usize, range: HashRange) -> bool {
        let level = number.checked_sub(1).and_then(|index| self.levels.get(index));
        level.is_some_and(|level| !level.within(range).is_empty())
    }

    /// Whether a level below the one of this number has a table in `range`.
    pub fn lies_below(&self, number: usize, range: HashRange) -> bool {
        self.levels[number..].iter().any(|level| !level.within(range).is_empty())
    }

    /// The content of the levels below the youngest in `range`, as [`Level::streams_within`] returns it.
    pub fn streams_within(&self, range: HashRange) -> Vec<Vec<SectionRange>> {
        self.levels.iter().flat_map(|level| level.streams_within(range)).collect()
    }

    /// All tables below the youngest level. A table that covers several containers is listed once for each.
    pub fn tables(&self) -> impl Iterator<Item = &PlacedTable> {
        self.levels.iter().flat_map(Level::tables)
    }

    /// All sections, those of runs first. Those of levels may be listed several times.
    pub fn sections(&self) -> impl Iterator<Item = &Arc<Section>> {
        let in_runs = self.runs.iter().flat_map(|run| run.sections.iter().flatten());
        in_runs.map(|section| &section.section).chain(self.tables().map(|table| &table.section))
    }

    /// All table files. Some may be listed several times.
    pub fn files(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        self.runs.iter().map(|run| &run.file).chain(self.tables().map(|table| &table.file))
    }

    /// Items in log stores and runs, including tombstones and obsolete versions.
    pub fn young_items(&self) -> u64 {
        let logs: u64 = self.log_stores.iter().map(|store| store.len() as u64).sum();
        logs + self.run_items()
    }

    /// Estimated number of obsolete versions that are replaced by items in runs; 0 if the plan's share bounds them
    /// anyway.
    pub fn garbage_estimate(&self) -> f64 {
        self.runs.iter().map(|run| run.item_count() as f64 * run.repeats).sum()
    }

    /// Items in runs.
    pub fn run_items(&self) -> u64 {
        self.runs.iter().map(|run| run.item_count()).sum()
    }

    /// Items in the levels below the youngest. A table used only in part counts by its share of the range.
    pub fn level_items(&self) -> u64 {
        self.levels.iter().map(Level::items).sum()
    }

    /// Bytes of pages in the levels below the youngest.
    pub fn level_bytes(&self) -> u64 {
        self.levels.iter().map(Level::bytes).sum()
    }
}
