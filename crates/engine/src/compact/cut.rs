//! Where the tables that a merge makes begin and end.

use alluvium_model::{Growth, Plan};

use super::level_table::level_spec;
use super::mass::{Mass, cell, ranges_of_bits};
use crate::level::{Container, Level, PlacedTable};

/// Sizes to which tables of the levels below the youngest are cut.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableSizes {
    pub bytes_min: u64,
    pub bytes_max: u64,
}

impl Default for TableSizes {
    fn default() -> Self {
        Self { bytes_min: 1 << 20, bytes_max: 32 << 20 }
    }
}

/// A merge of leveling is cut into so many tables, as far as their sizes allow.
const TABLES_OF_MERGE: f64 = 8.0;

impl TableSizes {
    /// About the size of the tables that a merge of so many bytes makes.
    pub fn of_merge(&self, bytes: f64) -> f64 {
        self.clamp(bytes / TABLES_OF_MERGE)
    }

    fn clamp(&self, bytes: f64) -> f64 {
        bytes.clamp(self.bytes_min as f64, self.bytes_max as f64)
    }
}

/// Ranges of hashes for at least `tables` tables over `low..=high`, equal but at the ends.
///
/// All cuts are at multiples of one power of two. Were they at equal parts of whatever range comes, each merge would
/// cut elsewhere, and containers, which are split wherever something laid over them ends, become ever smaller.
pub(super) fn table_ranges(low: u128, high: u128, tables: u64) -> impl Iterator<Item = (u128, u128)> {
    let tables = u128::from(tables.max(1));
    let span = high - low;
    // The number of hashes, which is one more than the span, may be one more than fits.
    let width = (span / tables).checked_add((span % tables + 1) / tables);
    ranges_of_bits(low, high, width.map_or(128, |width| width.max(1).ilog2()))
}

/// The ranges of new tables that lie over what a tiering level has, of bytes that are spread over `low..=high` as
/// `mass` says.
///
/// They are those of the level's containers, of which those that would get too much are split. Where it has none,
/// containers are made for tables so large that as many as a container takes are again what was merged now: then
/// tables are equally large in all levels.
pub(super) fn pushed_ranges(
    plan: &Plan,
    number: usize,
    level: &Level,
    (low, high): (u128, u128),
    mass: &Mass,
    sizes: &TableSizes,
) -> Vec<(u128, u128)> {
    let fan_out = match level_spec(plan, number).growth {
        Growth::Tiering { runs_max, .. } => f64::from(runs_max),
        Growth::Leveling { .. } => 1.0,
    };
    let table_bytes = sizes.clamp(mass.bytes_within(low, high) / fan_out);
    let pieces = pieces_of_level(level, (low, high), mass, table_bytes, sizes.bytes_max as f64);
    join_small(&pieces, mass, sizes.bytes_min as f64)
}

/// The containers of a level in `low..=high`, and what lies between them, cut into pieces of at most so many bytes.
fn pieces_of_level(
    level: &Level,
    (low, high): (u128, u128),
    mass: &Mass,
    gap_bytes_max: f64,
    container_bytes_max: f64,
) -> Vec<(u128, u128)> {
    let mut pieces: Vec<(u128, u128)> = Vec::new();
    let mut next = Some(low);
    for container in level.within(low, high) {
        let (from, to) = (container.low.max(low), container.high.min(high));
        if let Some(gap) = next.filter(|&gap| gap < from) {
            pieces.extend(mass.split(gap, from - 1, gap_bytes_max));
        }
        pieces.extend(mass.split(from, to, container_bytes_max));
        next = to.checked_add(1);
    }
    if let Some(gap) = next.filter(|&gap| gap <= high) {
        pieces.extend(mass.split(gap, high, gap_bytes_max));
    }
    pieces
}

/// The ranges of the tables that a merge makes of bytes that are spread over `low..=high` as `mass` says, where they
/// take the place of what is there. Where data are marked, tables are cut as they were, and divided or joined where
/// that makes them too large or too small: cut elsewhere each time they would leave splinters of those they replace in
/// part.
pub(super) fn merged_ranges(
    level: &Level,
    (low, high): (u128, u128),
    mass: &Mass,
    sizes: &TableSizes,
) -> Vec<(u128, u128)> {
    let bytes = mass.bytes_within(low, high);
    let table_bytes = sizes.of_merge(bytes);
    if let Mass::Marked(_) = mass {
        let pieces = pieces_of_level(level, (low, high), mass, table_bytes, sizes.bytes_max as f64);
        return join_small(&pieces, mass, table_bytes / 2.0);
    }
    let pieces: Vec<_> = table_ranges(low, high, (bytes / table_bytes).ceil() as u64).collect();
    join_small(&pieces, mass, sizes.bytes_min as f64)
}

/// The ranges of the tables that merging the container `low..=high` of a level into itself makes.
///
/// They are the level's containers from then on, so they are cut by what the level holds and not by what is merged, or
/// they would be smaller each time. Containers beside it are merged with it while all together make less than half a
/// table: so those that were cut for a smaller level, or of which much was removed, become one again.
pub(super) fn ranges_within(
    level: &Level,
    (low, high): (u128, u128),
    is_semi_sorted: bool,
    sizes: &TableSizes,
) -> Vec<(u128, u128)> {
    let table_bytes = sizes.of_merge(level.bytes() as f64);
    let (mut low, mut high) = (low, high);
    if is_semi_sorted {
        for container in level.within(high, u128::MAX) {
            if level.bytes_within(low, container.high) > table_bytes / 2.0 {
                break;
            }
            high = high.max(container.high);
        }
        let mass = Mass::of_containers(level.within(low, high));
        return mass.split(low, high, table_bytes);
    }
    for bits in 128 - (low ^ high).leading_zeros()..=128 {
        let wider = cell(low, bits);
        let within = level.within(wider.0, wider.1);
        let reaches_out =
            |container: &Container<PlacedTable>| container.low < wider.0 || container.high > wider.1;
        let bytes = level.bytes_within(wider.0, wider.1);
        if bytes > table_bytes / 2.0 || within.iter().any(reaches_out) {
            break;
        }
        (low, high) = wider;
    }
    table_ranges(low, high, (level.bytes_within(low, high) / table_bytes).ceil() as u64).collect()
}

/// Adjacent ranges together as long as their tables would be smaller than `bytes_min`: one table then lies over several
/// containers.
fn join_small(ranges: &[(u128, u128)], mass: &Mass, bytes_min: f64) -> Vec<(u128, u128)> {
    let mut joined: Vec<(u128, u128)> = Vec::new();
    for &(low, high) in ranges {
        match joined.last_mut() {
            Some(last) if mass.bytes_within(last.0, high) <= bytes_min => last.1 = high,
            _ => joined.push((low, high)),
        }
    }
    joined
}

/// Adjacent ranges in groups that cover about one of `groups` equal parts each, at most where a range isn't more.
pub(super) fn grouped(ranges: &[(u128, u128)], groups: u64) -> Vec<Vec<(u128, u128)>> {
    let (Some(&(low, _)), Some(&(_, high))) = (ranges.first(), ranges.last()) else { return Vec::new() };
    if groups <= 1 {
        return vec![ranges.to_vec()];
    }
    let width = (high - low) / u128::from(groups) + 1;
    let mut grouped: Vec<Vec<(u128, u128)>> = Vec::new();
    for &(low, high) in ranges {
        for (low, high) in table_ranges(low, high, ((high - low) / width + 1) as u64) {
            match grouped.last_mut() {
                Some(group) if high - group[0].0 < width => group.push((low, high)),
                _ => grouped.push(vec![(low, high)]),
            }
        }
    }
    grouped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_aligned(&(low, high): &(u128, u128)) -> bool {
        (high - low)
            .checked_add(1)
            .is_none_or(|hashes| hashes.is_power_of_two() && low.is_multiple_of(hashes))
    }

    fn tile(ranges: &[(u128, u128)], low: u128, high: u128) {
        assert_eq!((ranges[0].0, ranges[ranges.len() - 1].1), (low, high));
        assert!(ranges.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0));
        assert!(ranges.iter().all(|(low, high)| low <= high));
    }

    proptest! {
        #[test]
        fn ranges_cover_what_is_merged(
            low: u128, high: u128, tables in 0u64..3000, groups in 0u32..6, bytes in 0.0..1e10,
        ) {
            let (low, high) = (low.min(high), low.max(high));
            let ranges: Vec<_> = table_ranges(low, high, tables).collect();
            tile(&ranges, low, high);
            prop_assert!(ranges.iter().skip(1).rev().skip(1).all(is_aligned));
            let widest = ranges.iter().map(|(low, high)| high - low).max().unwrap();
            prop_assert!(widest <= (high - low) / u128::from(tables.max(1)));
            let all = grouped(&ranges, 1 << groups);
            tile(&all.concat(), low, high);
            prop_assert!(groups > 0 || all == [ranges]);
            let sizes = TableSizes::default();
            let mass = Mass::even((low, high), bytes);
            let pushed = pushed_ranges(&Plan::lsm_trie(), 1, &Level::default(), (low, high), &mass, &sizes);
            tile(&pushed, low, high);
            let whole = (high - low) as f64;
            for (low, high) in pushed {
                let table_bytes = (high - low) as f64 / whole.max(1.0) * bytes;
                prop_assert!(table_bytes < 1.5 * sizes.bytes_max as f64, "{table_bytes}");
            }
        }
    }

    #[test]
    fn what_was_cut_once_is_cut_so_again() {
        let sizes = TableSizes::default();
        let pushed = |range: (u128, u128), bytes: f64| {
            let mass = Mass::even(range, bytes);
            pushed_ranges(&Plan::lsm_trie(), 1, &Level::default(), range, &mass, &sizes)
        };
        let ranges = pushed((0, u128::MAX), 64e6);
        assert_eq!(ranges.len(), 16);
        let again = pushed(ranges[3], 7.6e6);
        // No smaller than the least table.
        assert_eq!(again.len(), 8);
    }
}
