//! [`Levels`]: the body of a keyspace, which is everything that it has below its log, as a plan of levels stores it.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_base::{HashRange, KeyHash, SegmentId, TableId};
use alluvium_model::{Filter, LevelSpec, LevelsPlan};

use super::container::relevelled;
use super::lookup::Lookup;
use super::placed_level::Level;
use super::placed_table::PlacedTable;
use super::run::{MergeUnit, Run, RunSection};
use super::table_file::TableFile;
use crate::manifest::PlanState;
use crate::table::{Section, SectionRange};

/// The youngest level's runs and the levels below them; immutable, and cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Levels {
    /// The plan that the levels follow, and for which new tables are made.
    pub(super) plan: Arc<PlanState>,
    /// The youngest level, level 0. Young to old.
    pub(super) runs: Vec<Arc<Run>>,
    /// The levels below it, level 1 first: as many as the plan says.
    pub(super) levels: Vec<Level>,
}

/// A part of a body in a range of hashes.
#[derive(Debug)]
pub(crate) enum Source<'b> {
    /// A section in which the items of the range are anywhere.
    Scattered(&'b Arc<Section>),
    /// Ascending parts of tables.
    Ordered(Vec<SectionRange>),
}

/// The oldest items of a body.
#[derive(Debug, Clone)]
pub(crate) enum Oldest {
    /// A run of the youngest level; no level below has tables.
    Run(Arc<Run>),
    /// A table of the level of this number.
    Table { level: usize, table: PlacedTable },
}

impl Oldest {
    /// The newest log segment from which its items come: what is older was written before.
    pub fn newest_segment(&self) -> SegmentId {
        match self {
            Self::Run(run) => {
                let sections = run.sections.iter().flatten();
                sections.map(|section| section.section.segments().newest).max().unwrap_or_default()
            }
            Self::Table { table, .. } => table.section.segments().newest,
        }
    }
}

/// What a level contains.
#[derive(Debug)]
pub(crate) struct LevelContent<'b> {
    /// Maximum number of runs over one hash.
    pub runs: usize,
    pub items: u64,
    /// Bytes of pages.
    pub bytes: u64,
    /// All sections, each once.
    pub sections: Vec<&'b Section>,
}

impl Levels {
    /// Levels without tables.
    pub fn new(plan: PlanState) -> Self {
        let levels = vec![Level::default(); plan.levels()];
        Self { plan: Arc::new(plan), runs: Vec::new(), levels }
    }

    pub fn plan(&self) -> &LevelsPlan {
        &self.plan.plan
    }

    /// Whether every level with tables has filters: then a lookup of an absent key usually ends without a read.
    pub fn has_filters(&self) -> bool {
        let is_filtered = |level: &LevelSpec| level.filter != Filter::None;
        let Some((youngest, below)) = self.plan.plan.levels.split_first() else { return false };
        let mut below = below.iter().zip(&self.levels);
        (self.runs.is_empty() || is_filtered(youngest))
            && below.all(|(spec, level)| level.containers().is_empty() || is_filtered(spec))
    }

    pub fn plan_state(&self) -> &Arc<PlanState> {
        &self.plan
    }

    /// The runs of the youngest level, young to old.
    pub fn runs(&self) -> &[Arc<Run>] {
        &self.runs
    }

    /// The sections of all runs.
    pub fn run_sections(&self) -> impl Iterator<Item = &Arc<RunSection>> {
        self.runs.iter().flat_map(|run| run.sections.iter().flatten())
    }

    /// The parts of the youngest level that are merged together.
    pub fn units(&self) -> Vec<MergeUnit> {
        MergeUnit::all(&self.runs)
    }

    /// The levels below the youngest, level 1 first.
    pub fn levels(&self) -> &[Level] {
        &self.levels
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

    /// Whether there is a level of this number with a table in `range`.
    pub fn has_tables_in(&self, number: usize, range: HashRange) -> bool {
        let level = number.checked_sub(1).and_then(|index| self.levels.get(index));
        level.is_some_and(|level| !level.within(range).is_empty())
    }

    /// Whether a level below the one of this number has a table in `range`.
    pub fn has_tables_below(&self, number: usize, range: HashRange) -> bool {
        self.levels[number..].iter().any(|level| !level.within(range).is_empty())
    }

    /// A lookup of a key with this hash.
    #[inline]
    pub fn lookup(&self, hash: KeyHash) -> Lookup<'_> {
        Lookup::new(&self.runs, &self.levels, hash)
    }

    /// A lookup in the level of this number, at least 1, and in the levels below it.
    pub fn lookup_from_level(&self, number: usize, hash: KeyHash) -> Lookup<'_> {
        Lookup::new(&[], &self.levels[number - 1..], hash)
    }

    /// All tables below the youngest level. A table that covers several containers is listed once for each.
    fn tables(&self) -> impl Iterator<Item = &PlacedTable> {
        self.levels.iter().flat_map(Level::tables)
    }

    /// All sections, those of runs first. Those of levels may be listed several times.
    pub fn sections(&self) -> impl Iterator<Item = &Arc<Section>> {
        let in_runs = self.run_sections().map(|section| &section.section);
        in_runs.chain(self.tables().map(|table| &table.section))
    }

    /// All table files. Some may be listed several times.
    pub fn files(&self) -> impl Iterator<Item = &Arc<TableFile>> {
        self.runs.iter().map(|run| &run.file).chain(self.tables().map(|table| &table.file))
    }

    /// The content of all levels in `range` as ascending sequences of parts of tables, the youngest first.
    pub fn streams_within(&self, range: HashRange) -> Vec<Vec<SectionRange>> {
        let runs = self.runs.iter().map(|run| run.stream_within(range)).filter(|ranges| !ranges.is_empty());
        runs.chain(self.deep_streams_within(range)).collect()
    }

    /// The same without the youngest level.
    pub fn deep_streams_within(&self, range: HashRange) -> Vec<Vec<SectionRange>> {
        self.levels.iter().flat_map(|level| level.streams_within(range)).collect()
    }

    /// The content of all levels in the narrow `range`, young to old.
    pub fn sources_within(&self, range: HashRange) -> Vec<Source<'_>> {
        let mut sources = Vec::new();
        for run in &self.runs {
            let sections = run.sections_within(range);
            let (scattered, ordered): (Vec<_>, Vec<_>) = sections.partition(|section| section.is_scattered());
            sources.extend(scattered.into_iter().map(Source::Scattered));
            let ordered = ordered.into_iter().filter_map(|section| SectionRange::of(section, range));
            sources.push(Source::Ordered(ordered.collect()));
        }
        sources.extend(self.deep_streams_within(range).into_iter().map(Source::Ordered));
        sources
    }

    /// Maximum number of sections over one hash, each of which a scan reads.
    pub fn sequences(&self) -> usize {
        self.runs.len() + self.levels.iter().map(Level::runs).sum::<usize>()
    }

    /// The sections of runs in this part of the hash space that no section reaches out of, young to old.
    pub fn unit_sections(
        &self,
        bits: u32,
        index: u64,
    ) -> impl Iterator<Item = (&Arc<Run>, u32, &Arc<RunSection>)> {
        self.runs.iter().filter(move |run| run.shard_bits >= bits).flat_map(move |run| {
            let shards = run.shards_within(bits, index);
            shards.filter_map(move |shard| Some((run, shard as u32, run.sections[shard].as_ref()?)))
        })
    }

    /// Numbers of leading hash bits by which runs are split.
    pub fn shard_bits(&self) -> impl Iterator<Item = u32> {
        self.runs.iter().map(|run| run.shard_bits)
    }

    /// Sections over `hash` in which the items of a narrow range are anywhere, each with the number of leading hash
    /// bits that its items share.
    pub fn scattered_sections(&self, hash: KeyHash) -> impl Iterator<Item = (&Arc<Section>, u32)> {
        let sections =
            self.runs.iter().filter_map(move |run| Some((&run.section(hash)?.section, run.shard_bits)));
        sections.filter(|(section, _)| section.is_scattered())
    }

    /// Whether a table may have an item, a tombstone included. `false` is certain, while [`items`](Self::items) may
    /// round the last item of a table down to none.
    pub fn may_have_items(&self) -> bool {
        self.sections().any(|section| section.item_count() > 0)
    }

    /// Items in all levels, including tombstones and obsolete versions. An estimate: a table used only in part counts
    /// by its share of the range.
    pub fn items(&self) -> u64 {
        self.run_items() + self.level_items()
    }

    /// Items in runs.
    pub fn run_items(&self) -> u64 {
        self.runs.iter().map(|run| run.item_count()).sum()
    }

    /// Items in the levels below the youngest.
    pub fn level_items(&self) -> u64 {
        self.levels.iter().map(Level::items).sum()
    }

    /// Estimated items in `range`.
    pub fn items_within(&self, range: HashRange) -> f64 {
        let of_run = |run: &Arc<Run>| -> f64 {
            let items = |section: &Arc<Section>| section.item_count() as f64 * section.share_within(range);
            run.sections_within(range).map(items).sum()
        };
        self.runs.iter().map(of_run).sum::<f64>() + self.deep_items_within(range)
    }

    /// Estimated items in `range` in the levels below the youngest.
    pub fn deep_items_within(&self, range: HashRange) -> f64 {
        self.levels.iter().map(|level| level.items_within(range)).sum()
    }

    /// Bytes of pages in the levels below the youngest.
    pub fn level_bytes(&self) -> u64 {
        self.levels.iter().map(Level::bytes).sum()
    }

    /// Bytes of the largest container with several tables, which stay until all of it is merged.
    pub fn largest_pile(&self) -> u64 {
        let containers = self.levels.iter().flat_map(|level| level.containers());
        let piles = containers.filter(|container| container.tables.len() > 1);
        piles.map(|container| container.bytes() as u64).max().unwrap_or(0)
    }

    /// Estimated number of obsolete versions that are replaced by items in runs; 0 if the plan's share bounds them
    /// anyway.
    pub fn garbage_estimate(&self) -> f64 {
        self.runs.iter().map(|run| run.item_count() as f64 * run.repeats).sum()
    }

    /// The content of each level, the youngest first.
    pub fn content(&self) -> impl Iterator<Item = LevelContent<'_>> {
        let sections: Vec<&Section> = self.run_sections().map(|section| &*section.section).collect();
        let young = LevelContent {
            runs: self.runs.len(),
            items: self.run_items(),
            bytes: sections.iter().map(|section| section.pages_bytes()).sum(),
            sections,
        };
        let deep = self.levels.iter().map(|level| {
            // A table over several containers is listed once.
            let tables: BTreeMap<TableId, &Section> =
                level.tables().map(|table| (table.file.id, &*table.section)).collect();
            let sections = tables.into_values().collect();
            LevelContent { runs: level.runs(), items: level.items(), bytes: level.bytes(), sections }
        });
        std::iter::once(young).chain(deep)
    }

    /// What can be dropped without uncovering older items: the oldest table of the last level that has tables, or the
    /// oldest run if no level has.
    pub fn oldest(&self) -> Option<Oldest> {
        let last = self.numbered_levels().filter(|(_, level)| !level.containers().is_empty()).last();
        match last {
            Some((level, tables)) => {
                tables.oldest().map(|table| Oldest::Table { level, table: table.clone() })
            }
            None => self.runs.last().map(|run| Oldest::Run(run.clone())),
        }
    }

    /// The same plan without tables.
    pub fn emptied(&self) -> Self {
        let levels = vec![Level::default(); self.levels.len()];
        Self { plan: self.plan.clone(), runs: Vec::new(), levels }
    }

    /// The tables in the levels of another plan.
    pub fn with_plan(&self, plan: PlanState) -> Self {
        let containers: Vec<_> = self.levels.iter().map(|level| level.containers().to_vec()).collect();
        let levels = relevelled(&containers, plan.levels());
        let levels = levels.into_iter().map(Level::from_containers).collect();
        Self { plan: Arc::new(plan), levels, runs: self.runs.clone() }
    }

    /// The runs of both, those of `self` on top, and the levels of `opened`.
    pub fn over(&self, opened: &Self) -> Self {
        let runs = self.runs.iter().chain(&opened.runs).cloned().collect();
        Self { plan: self.plan.clone(), runs, levels: opened.levels.clone() }
    }

    /// Puts a run on top of all others.
    pub fn push_run(&mut self, run: Arc<Run>) {
        self.runs.insert(0, run);
    }

    /// Removes these shards of the runs in these files, and the runs of which nothing is left.
    pub fn drop_shards(&mut self, by_file: &BTreeMap<TableId, Vec<u32>>) {
        for run in &mut self.runs {
            if let Some(shards) = by_file.get(&run.file.id) {
                *run = Arc::new(run.without(shards));
            }
        }
        self.runs.retain(|run| !run.is_empty());
    }

    /// Replaces the level of this number by the result of `change`, which affects `range` only. Tables that are in no
    /// container any more are removed once their last reader is gone: the manifest no longer names them.
    pub fn replace_level(&mut self, number: usize, range: HashRange, change: impl FnOnce(&Level) -> Level) {
        let level = &mut self.levels[number - 1];
        let changed = change(level);
        changed.set_obsolete_since(level, range);
        *level = changed;
    }

    /// Gives back the space of all tables, which the manifest no longer names for this keyspace. Runs of other
    /// keyspaces are stored in the same files: of files that are still named, only the sections' space can be freed.
    pub fn give_back(&self, is_named: impl Fn(TableId) -> bool) {
        self.run_sections().for_each(|section| section.set_merged());
        for file in self.files().filter(|file| !is_named(file.id)) {
            file.set_obsolete();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alluvium_base::HashRange;
    use alluvium_io::SimulatedStorage;

    use crate::{Db, Environment};

    /// Seed 2053305 of the threaded simulation: a tombstone was dropped, as the only item below it was in a table of
    /// which half was used.
    #[test]
    fn the_last_item_of_a_table_used_in_part_counts() {
        let environment = Environment::over(Arc::new(SimulatedStorage::new(3)));
        let db = Db::builder("half").background(false).environment(environment).open().unwrap();
        let items = db.keyspace("items").unwrap();
        items.insert("key", "value").unwrap();
        db.compact().unwrap();
        let version = items.shared.version.load();
        let mut body = version.body.clone();
        assert_eq!((body.items(), body.may_have_items()), (1, true));
        let halves = [HashRange::new(0, u128::MAX / 2), HashRange::new(u128::MAX / 2 + 1, u128::MAX)];
        let hash = items.shared.hasher.hash(b"key");
        let other = halves.into_iter().find(|half| !half.contains(hash.0)).unwrap();
        for level in &mut body.levels {
            *level = level.with_replaced(other, None);
        }
        assert!(body.lookup(hash).next_read().unwrap().is_some());
        assert_eq!((body.items(), body.may_have_items()), (0, true));
    }
}
