//! How tables of a level are made, as the plan says.

use alluvium_model::{Filter, Index, LevelSpec, Plan};

use crate::table::{SectionSpec, SortedIndex, TableWriter, pages_expected};

/// The level of this number. The engine executes plans of levels only, and counts levels by the plan.
pub(crate) fn level_spec(plan: &Plan, number: usize) -> &LevelSpec {
    match plan {
        Plan::Levels { levels, .. } => &levels[number],
        Plan::Chained(_) => unreachable!("the engine refuses chained plans"),
    }
}

/// Bits of a tag in the cuckoo filters of the level; `None` where it has none.
pub(crate) fn tag_bits(level: &LevelSpec) -> Option<u32> {
    match level.filter {
        Filter::Cuckoo { tag_bits } => Some(tag_bits),
        Filter::None => None,
        Filter::MultiLevelCuckoo { .. } | Filter::BloomCluster { .. } => {
            unreachable!("the engine refuses plans with other filters")
        }
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

/// Begins the section of a table of the level, for so many items of so many bytes, about.
pub(crate) fn begin_sorted(
    writer: &mut TableWriter,
    level: &LevelSpec,
    spec: SectionSpec,
    (items, bytes): (u64, u64),
) {
    writer.begin_sorted_section(spec, sorted_index(level), pages_expected(items, bytes));
    if let Some(tag_bits) = tag_bits(level) {
        writer.gather_filter(tag_bits, items);
    }
}
