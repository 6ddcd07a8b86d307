//! Makes tables of a level as its plan specifies.

use std::sync::Arc;

use alluvium_base::HashRange;
use alluvium_model::{Filter, Index, LevelSpec, TableLayout};

use crate::error::Result;
use crate::level::{Level, PlacedTable, Run};
use crate::table::{
    BucketFilter, ClusterSpec, CoveringSpec, FilterKind, Head, Section, SectionSpec, SortedIndex,
    TableWriter, pages_expected,
};

/// Bits of a Bloom filter per item (Wu's thesis, Table 4.1).
const BLOOM_BITS: u8 = 16;
/// Items of a column of filters on flash: as data grow, later tables have more in the same column, and the columns of
/// 90 such tables fit in one page.
const COLUMN_ITEMS_ON_FLASH: u64 = 16;
/// Items of a column in memory: the overhead of a column is then less than a bit per eight items.
const COLUMN_ITEMS_IN_MEMORY: u64 = 128;
/// Items of a column in a section of the youngest level, whose filter no other one takes over.
const COLUMN_ITEMS_ALONE: u64 = 1024;
/// Maximum number of tables for which a filter that names one of them answers.
const COVERED_MAX: usize = alluvium_index::multi_level_filter::RUNS_MAX as usize;
/// Maximum number of tables that share a filter in memory. Each repeats on flash the filters of those below it, so with
/// more tables disk space is lost, while hardly any memory is saved: with four the overhead of a column is an eighth of
/// a bit per item.
const TABLES_IN_MEMORY_MAX: usize = 4;
/// In a level whose filters are on flash, one in this many items of a container has its filter in memory: those of the
/// youngest tables, whose filters are taken over together.
const SHARE_IN_MEMORY: u64 = 8;

/// Bits of a tag in the cuckoo filter of a single table of the level, or `None` if its tables have no such filter.
pub(crate) fn tag_bits(level: &LevelSpec) -> Option<u32> {
    match level.filter {
        // The index makes the filter.
        _ if level.index == Index::Offsets => None,
        Filter::Cuckoo { tag_bits } => Some(tag_bits),
        Filter::None
        | Filter::BloomCluster { .. }
        | Filter::MultiLevelCuckoo { .. }
        | Filter::Static { .. }
        | Filter::Fragments { .. } => None,
    }
}

/// The index that finds pages in the level's tables, if their layout is sorted.
pub(crate) fn sorted_index(level: &LevelSpec) -> SortedIndex {
    match level.index {
        Index::Trie => SortedIndex::Trie,
        Index::TrieDense => SortedIndex::DenseTrie,
        Index::ThreeLevel => SortedIndex::ThreeLevel,
        Index::Offsets => {
            let Filter::Cuckoo { tag_bits } = level.filter else {
                unreachable!("refused when the plan is made")
            };
            SortedIndex::SlotPages { tag_bits }
        }
        Index::Fences | Index::Implicit => SortedIndex::FENCES,
    }
}

/// Begins the section of a table of the level for approximately `items` items of `bytes` bytes in total, which arrive
/// in the order of their hashes. It will be above `below`.
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
            like: below.like,
        };
        writer.begin_bucketed_section(spec, BucketFilter::Clustered(cluster), items);
        return;
    }
    writer.begin_sorted_section(spec, sorted_index(level), pages_expected(items, bytes));
    match level.filter {
        _ if level.index == Index::Offsets => {}
        Filter::Cuckoo { tag_bits } => writer.gather_filter(FilterKind::Tags(tag_bits), items),
        Filter::Static { bits } => writer.gather_filter(FilterKind::Static(bits), items),
        Filter::Fragments { bits } => writer.gather_filter(FilterKind::Fragments(bits), items),
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
    /// Young to old, each with all tables that its filter covers.
    heads: Vec<Head>,
    /// If one filter names the table of a key: all tables that it will cover, young to old.
    tables: Vec<Arc<Section>>,
    /// Whether the new table is one of the few whose filters are in memory although those of the level are on flash.
    is_young: bool,
    /// In that case, the youngest table whose filter is on flash.
    like: Option<Arc<Section>>,
}

impl Below {
    /// The tables below a new section of the youngest level: the sections of `runs`, young to old, of the same shard.
    pub fn of_runs(spec: &LevelSpec, runs: &[Arc<Run>], shard_bits: u32, shard: usize) -> Result<Self> {
        let Filter::MultiLevelCuckoo { .. } = spec.filter else { return Ok(Self::default()) };
        let runs = runs.iter().take_while(|run| run.shard_bits == shard_bits);
        let sections =
            runs.filter_map(|run| run.sections.get(shard)?.as_ref()).map(|section| &section.section);
        Ok(Self { tables: covered_by_first(sections)?, ..Self::default() })
    }

    /// The tables below a new table over `range` of the level `present`. A table over parts of several containers takes
    /// over no filters: the tables below it differ from place to place.
    ///
    /// In memory a table takes over the filters of up to three tables below it, so that one of four answers for all. On
    /// flash that would rewrite the filters of a hundred tables for each new one, or cost a read for each four. The
    /// youngest tables, with one in eight items, therefore share a filter in memory; when they would have more, all
    /// filters are taken over into one on flash. Each filter is rewritten some eight times, however many tables the
    /// container has, and a lookup reads one column.
    ///
    /// `items` is the expected number of items of the new table.
    pub fn of(spec: &LevelSpec, present: &Level, range: HashRange, items: u64) -> Result<Self> {
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
        let items_of = |tables: &[PlacedTable]| {
            let items = |table: &PlacedTable| {
                table.section.item_count() as f64 * table.section.share_within(container.range)
            };
            tables.iter().map(items).sum::<f64>() as u64
        };
        let mut heads = Vec::new();
        let (mut young, mut young_items) = (0, items);
        let mut tables = &container.tables[..];
        while let Some((first, rest)) = tables.split_first() {
            let Some((files, on_flash)) = first.section.clustered()? else { break };
            let covered = rest.iter().zip(&files[1..]).take_while(|(table, file)| table.file.id == **file);
            let covered = covered.count();
            // The oldest may be gone, but no other table may be where one of them was.
            if covered + 1 < files.len() && covered < rest.len() {
                break;
            }
            if heads.is_empty() && !on_flash {
                young = covered + 1;
                young_items += items_of(&tables[..young]);
            }
            heads.push(Head { section: first.section.clone(), tables: covered + 1 });
            tables = &rest[covered..];
        }
        if !stays_on_flash(spec) {
            heads.truncate(usize::from(young < TABLES_IN_MEMORY_MAX));
            return Ok(Self { heads, ..Self::default() });
        }
        let is_young = young_items * SHARE_IN_MEMORY <= items + items_of(&container.tables);
        let mut like = None;
        if is_young {
            like = heads.get(usize::from(young > 0)).map(|head| head.section.clone());
            heads.truncate(usize::from(young > 0));
        }
        Ok(Self { heads, is_young, like, ..Self::default() })
    }
}

/// Those of `tables`, which are above each other, young to old, for which the filter of the first answers, if that
/// filter names one table and can cover one more. Older ones may no longer exist.
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
