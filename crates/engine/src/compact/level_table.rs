//! How tables of a level are made, as the plan says.

use std::sync::Arc;

use alluvium_base::HashRange;
use alluvium_model::{Filter, Index, LevelSpec, Plan, TableLayout};

use crate::error::Result;
use crate::level::{Level, Run};
use crate::table::{
    BucketFilter, ClusterSpec, CoveringSpec, FilterKind, Section, SectionSpec, SortedIndex, TableWriter,
    pages_expected,
};

/// Bits of a Bloom filter for each item (Wu's thesis, Table 4.1).
const BLOOM_BITS: u8 = 16;
/// Items of a column of filters on flash: those of 56 tables lie on one page.
const COLUMN_ITEMS_ON_FLASH: u64 = 32;
/// Items of a column in memory: what a column takes besides is then less than a bit for eight items.
const COLUMN_ITEMS_IN_MEMORY: u64 = 128;
/// Items of a column of a section of the youngest level, whose filter no other one takes over.
const COLUMN_ITEMS_ALONE: u64 = 1024;
/// Tables for which a filter that names one of them answers, at most.
const COVERED_MAX: usize = alluvium_index::multi_level_filter::RUNS_MAX as usize;
/// Tables that share a filter in memory. Each repeats the filters of those below it on flash, so with more of them disk
/// is lost, while memory hardly is: what a column takes besides is an eighth of a bit for an item with four.
const TABLES_IN_MEMORY_MAX: usize = 4;
/// Of a level whose filters are on flash, one table in so many over a place has its filter in memory: the youngest,
/// whose filters are taken over together.
const SHARE_IN_MEMORY: usize = 8;

/// The level of this number. The engine executes plans of levels only, and counts levels by the plan.
pub(crate) fn level_spec(plan: &Plan, number: usize) -> &LevelSpec {
    match plan {
        Plan::Levels { levels, .. } => &levels[number],
        Plan::Chained(_) => unreachable!("the engine refuses chained plans"),
    }
}

/// Bits of a tag in the cuckoo filters that tables of the level have for themselves; `None` where they have none.
pub(crate) fn tag_bits(level: &LevelSpec) -> Option<u32> {
    match level.filter {
        Filter::Cuckoo { tag_bits } => Some(tag_bits),
        Filter::None
        | Filter::BloomCluster { .. }
        | Filter::MultiLevelCuckoo { .. }
        | Filter::Static { .. } => None,
    }
}

/// How pages of the level's tables are found, where their layout is sorted.
pub(crate) fn sorted_index(level: &LevelSpec) -> SortedIndex {
    match level.index {
        Index::Trie => SortedIndex::Trie,
        Index::ThreeLevel => SortedIndex::ThreeLevel,
        Index::Fences | Index::Implicit => SortedIndex::FENCES,
    }
}

/// Begins the section of a table of the level whose items come by their hashes, for so many of so many bytes, about.
/// It will lie over `below`.
pub(crate) fn begin_ordered(
    writer: &mut TableWriter,
    level: &LevelSpec,
    spec: SectionSpec,
    (items, bytes): (u64, u64),
    below: Below,
) {
    if level.table == TableLayout::Bucketed {
        if let Filter::Static { bits } = level.filter {
            writer.begin_bucketed_section(spec, BucketFilter::Static { bits }, items);
            return;
        }
        let column_items = match (spec.level, stays_on_flash(level)) {
            (0, false) => COLUMN_ITEMS_ALONE,
            (_, false) => COLUMN_ITEMS_IN_MEMORY,
            (_, true) => COLUMN_ITEMS_ON_FLASH,
        };
        let cluster = ClusterSpec {
            bits_per_key: BLOOM_BITS,
            column_items,
            on_flash: stays_on_flash(level) && !below.is_young,
            below: below.heads,
        };
        writer.begin_bucketed_section(spec, BucketFilter::Clustered(cluster), items);
        return;
    }
    writer.begin_sorted_section(spec, sorted_index(level), pages_expected(items, bytes));
    match level.filter {
        Filter::Cuckoo { tag_bits } => writer.gather_filter(FilterKind::Tags(tag_bits), items),
        Filter::Static { bits } => writer.gather_filter(FilterKind::Static(bits), items),
        Filter::MultiLevelCuckoo { tag_bits } => {
            let spec = CoveringSpec { fingerprint_bits: tag_bits, below: below.tables };
            writer.gather_covering_filter(spec, items);
        }
        Filter::None | Filter::BloomCluster { .. } => {}
    }
}

fn stays_on_flash(level: &LevelSpec) -> bool {
    matches!(level.filter, Filter::BloomCluster { on_flash: true })
}

/// The tables below a new one whose filters it takes over.
#[derive(Debug, Default)]
pub(crate) struct Below {
    /// Young to old, each with all that its filter covers.
    heads: Vec<Arc<Section>>,
    /// Where one filter names the table of a key: all that it is to cover, young to old.
    tables: Vec<Arc<Section>>,
    /// Whether the new table is one of the few whose filters are in memory though those of the level are not.
    is_young: bool,
}

impl Below {
    /// Of a new section of the youngest level, over those of `runs`, young to old, that are of the same shard.
    pub fn of_runs(spec: &LevelSpec, runs: &[Arc<Run>], shard_bits: u32, shard: usize) -> Result<Self> {
        let Filter::MultiLevelCuckoo { .. } = spec.filter else { return Ok(Self::default()) };
        let runs = runs.iter().take_while(|run| run.shard_bits == shard_bits);
        let sections =
            runs.filter_map(|run| run.sections.get(shard)?.as_ref()).map(|section| &section.section);
        Ok(Self { tables: covered_by_first(sections)?, ..Self::default() })
    }

    /// Of a new table over `range` of the level `present`. A table that lies over parts of several containers takes
    /// over none: what is below it is not the same everywhere.
    ///
    /// In memory a table takes over what up to three below it have, so that one of four answers for all. On flash that
    /// would rewrite the filters of a hundred tables for each new one, or take a read for each four. So the youngest
    /// tables, one in eight, share a filter in memory, and when they would be more all filters are taken over into one
    /// on flash: each is rewritten some eight times over a place however many tables that has, and a lookup reads one
    /// column.
    pub fn of(spec: &LevelSpec, present: &Level, range: HashRange) -> Result<Self> {
        let [container] = present.within(range) else { return Ok(Self::default()) };
        if !container.range.covers(range) {
            return Ok(Self::default());
        }
        if let Filter::MultiLevelCuckoo { .. } = spec.filter {
            let tables = container.tables.iter().map(|table| &table.section);
            return Ok(Self { tables: covered_by_first(tables)?, ..Self::default() });
        }
        if spec.table != TableLayout::Bucketed {
            return Ok(Self::default());
        }
        let mut heads = Vec::new();
        let mut young = 0;
        let mut tables = &container.tables[..];
        while let Some((first, rest)) = tables.split_first() {
            let Some((files, on_flash)) = first.section.clustered()? else { break };
            let covered =
                rest.iter().zip(&files[1..]).take_while(|(table, file)| table.file.number == **file);
            let covered = covered.count();
            if covered + 1 < files.len() {
                break;
            }
            if heads.is_empty() && !on_flash {
                young = files.len();
            }
            heads.push(first.section.clone());
            tables = &rest[covered..];
        }
        if !stays_on_flash(spec) {
            heads.truncate(usize::from(young < TABLES_IN_MEMORY_MAX));
            return Ok(Self { heads, ..Self::default() });
        }
        let is_young = young < (container.tables.len() + 1) / SHARE_IN_MEMORY;
        if is_young {
            heads.truncate(usize::from(young > 0));
        }
        Ok(Self { heads, is_young, ..Self::default() })
    }
}

/// Of `tables`, which lie one over the other, young to old, all for which the filter of the first answers, if that is
/// one that names a table and can cover one more. Older ones may be gone.
fn covered_by_first<'t>(tables: impl Iterator<Item = &'t Arc<Section>> + Clone) -> Result<Vec<Arc<Section>>> {
    let Some(first) = tables.clone().next() else { return Ok(Vec::new()) };
    let Some(files) = first.names_tables()? else { return Ok(Vec::new()) };
    let covered: Vec<_> =
        tables.zip(&files).take_while(|(table, file)| table.file_number() == **file).collect();
    if covered.len() >= COVERED_MAX {
        return Ok(Vec::new());
    }
    Ok(covered.into_iter().map(|(table, _)| table.clone()).collect())
}
