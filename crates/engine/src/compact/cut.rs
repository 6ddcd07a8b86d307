//! The division of a merge's output into tables.

use alluvium_base::HashRange;
use alluvium_model::{Growth, LevelsPlan};

use super::mass::{Mass, cell, ranges_of_bits};
use crate::level::{Container, Level, PlacedTable};
use crate::table_sizes::TableSizes;

/// Ranges for at least `tables` tables over `range`, equal except at the ends.
///
/// All cuts are at multiples of one power of two. If instead each range were divided into equal parts, each merge would
/// cut elsewhere. Containers are split where a table above them ends, so they would become ever smaller.
pub(super) fn table_ranges(range: HashRange, tables: u64) -> impl Iterator<Item = HashRange> {
    let tables = u128::from(tables.max(1));
    let span = range.high - range.low;
    // The number of hashes is one more than the span, which may not fit in the type.
    let width = (span / tables).checked_add((span % tables + 1) / tables);
    ranges_of_bits(range, width.map_or(128, |width| width.max(1).ilog2()))
}

/// The ranges of new tables to be put above the content of a tiering level, for bytes distributed over `range` as in
/// `mass`.
///
/// They are the ranges of the level's containers; those that would get too much are split. Where the level has no
/// containers, the new ones are so large that as many tables as a container takes are again what was merged now. Tables
/// are then equally large in all levels.
pub(super) fn pushed_ranges(
    plan: &LevelsPlan,
    number: usize,
    level: &Level,
    range: HashRange,
    mass: &Mass,
    sizes: &TableSizes,
) -> Vec<HashRange> {
    let fan_out = match plan.levels[number].growth {
        Growth::Tiering { runs_max, .. } => f64::from(runs_max),
        Growth::Leveling { .. } => 1.0,
    };
    let table_bytes = sizes.clamp(mass.bytes_within(range) / fan_out);
    let pieces = pieces_of_level(level, range, mass, table_bytes, sizes.bytes_max as f64);
    join_small(&pieces, mass, sizes.bytes_min as f64)
}

/// The containers of a level in `range`, and the gaps between them, cut into pieces of at most `container_bytes_max`
/// and `gap_bytes_max`.
fn pieces_of_level(
    level: &Level,
    range: HashRange,
    mass: &Mass,
    gap_bytes_max: f64,
    container_bytes_max: f64,
) -> Vec<HashRange> {
    let mut pieces = Vec::new();
    let mut next = Some(range.low);
    for part in level.within(range).iter().filter_map(|container| container.range.clip(range)) {
        if let Some(gap) = next.filter(|&gap| gap < part.low) {
            pieces.extend(mass.split(HashRange::new(gap, part.low - 1), gap_bytes_max));
        }
        pieces.extend(mass.split(part, container_bytes_max));
        next = part.high.checked_add(1);
    }
    if let Some(gap) = next.filter(|&gap| gap <= range.high) {
        pieces.extend(mass.split(HashRange::new(gap, range.high), gap_bytes_max));
    }
    pieces
}

/// The ranges of the tables that a merge makes from bytes distributed over `range` as in `mass`, if they replace the
/// present ones. Where the distribution is marked, tables are cut as the present ones are, and split or joined where
/// that makes them too large or too small: if they were cut elsewhere each time, they would leave splinters of tables
/// that they replace in part.
pub(super) fn merged_ranges(
    level: &Level,
    range: HashRange,
    mass: &Mass,
    sizes: &TableSizes,
) -> Vec<HashRange> {
    let bytes = mass.bytes_within(range);
    let table_bytes = sizes.of_merge(bytes);
    if let Mass::Marked(_) = mass {
        let pieces = pieces_of_level(level, range, mass, table_bytes, sizes.bytes_max as f64);
        return join_small(&pieces, mass, table_bytes / 2.0);
    }
    let pieces: Vec<_> = table_ranges(range, (bytes / table_bytes).ceil() as u64).collect();
    join_small(&pieces, mass, sizes.bytes_min as f64)
}

/// The ranges of the tables made by merging the container `range` of a level into itself.
///
/// They become the level's containers. They are therefore cut by what the level holds and not by what is merged;
/// otherwise they would become smaller each time. Adjacent containers are merged with it while all together make less
/// than half a table, so that containers cut for a smaller level, or of which much was removed, become one again.
pub(super) fn ranges_within(
    level: &Level,
    range: HashRange,
    is_semi_sorted: bool,
    sizes: &TableSizes,
) -> Vec<HashRange> {
    let table_bytes = sizes.of_merge(level.bytes() as f64);
    let mut range = range;
    if is_semi_sorted {
        for container in level.within(HashRange::new(range.high, u128::MAX)) {
            let wider = HashRange::new(range.low, container.range.high);
            if level.bytes_within(wider) > table_bytes / 2.0 {
                break;
            }
            range.high = range.high.max(wider.high);
        }
        return Mass::of_containers(level.within(range)).split(range, table_bytes);
    }
    for bits in 128 - (range.low ^ range.high).leading_zeros()..=128 {
        let wider = cell(range.low, bits);
        let reaches_out = |container: &Container<PlacedTable>| !wider.covers(container.range);
        let bytes = level.bytes_within(wider);
        if bytes > table_bytes / 2.0 || level.within(wider).iter().any(reaches_out) {
            break;
        }
        range = wider;
    }
    table_ranges(range, (level.bytes_within(range) / table_bytes).ceil() as u64).collect()
}

/// Joins adjacent ranges while their tables would be smaller than `bytes_min`. One table is then above several
/// containers.
fn join_small(ranges: &[HashRange], mass: &Mass, bytes_min: f64) -> Vec<HashRange> {
    let mut joined: Vec<HashRange> = Vec::new();
    for &range in ranges {
        match joined.last_mut() {
            Some(last) if mass.bytes_within(HashRange::new(last.low, range.high)) <= bytes_min => {
                last.high = range.high;
            }
            _ => joined.push(range),
        }
    }
    joined
}

/// Groups adjacent ranges so that each group covers approximately one of `groups` equal parts. A larger range is a
/// group of its own.
pub(super) fn grouped(ranges: &[HashRange], groups: u64) -> Vec<Vec<HashRange>> {
    let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return Vec::new() };
    if groups <= 1 {
        return vec![ranges.to_vec()];
    }
    let width = (last.high - first.low) / u128::from(groups) + 1;
    let mut grouped: Vec<Vec<HashRange>> = Vec::new();
    for &range in ranges {
        for range in table_ranges(range, ((range.high - range.low) / width + 1) as u64) {
            match grouped.last_mut() {
                Some(group) if range.high - group[0].low < width => group.push(range),
                _ => grouped.push(vec![range]),
            }
        }
    }
    grouped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plan() -> LevelsPlan {
        alluvium_model::Plan::lsm_trie().try_into().unwrap()
    }

    fn is_aligned(&HashRange { low, high }: &HashRange) -> bool {
        (high - low)
            .checked_add(1)
            .is_none_or(|hashes| hashes.is_power_of_two() && low.is_multiple_of(hashes))
    }

    fn tile(ranges: &[HashRange], whole: HashRange) {
        assert_eq!(HashRange::new(ranges[0].low, ranges[ranges.len() - 1].high), whole);
        assert!(ranges.windows(2).all(|pair| pair[0].meets(pair[1])));
        assert!(ranges.iter().all(|range| range.low <= range.high));
    }

    proptest! {
        #[test]
        fn ranges_cover_what_is_merged(
            ends: (u128, u128), tables in 0u64..3000, groups in 0u32..6, bytes in 0.0..1e10,
        ) {
            let whole = HashRange::new(ends.0.min(ends.1), ends.0.max(ends.1));
            let span = |range: HashRange| range.high - range.low;
            let ranges: Vec<_> = table_ranges(whole, tables).collect();
            tile(&ranges, whole);
            prop_assert!(ranges.iter().skip(1).rev().skip(1).all(is_aligned));
            let widest = ranges.iter().copied().map(span).max().unwrap();
            prop_assert!(widest <= span(whole) / u128::from(tables.max(1)));
            let all = grouped(&ranges, 1 << groups);
            tile(&all.concat(), whole);
            prop_assert!(groups > 0 || all == [ranges]);
            let sizes = TableSizes::default();
            let mass = Mass::even(whole, bytes);
            let pushed = pushed_ranges(&plan(), 1, &Level::default(), whole, &mass, &sizes);
            tile(&pushed, whole);
            for range in pushed {
                let table_bytes = span(range) as f64 / (span(whole) as f64).max(1.0) * bytes;
                prop_assert!(table_bytes < 1.5 * sizes.bytes_max as f64, "{table_bytes}");
            }
        }
    }

    #[test]
    fn what_was_cut_once_is_cut_so_again() {
        let sizes = TableSizes::default();
        let pushed = |range: HashRange, bytes: f64| {
            let mass = Mass::even(range, bytes);
            pushed_ranges(&plan(), 1, &Level::default(), range, &mass, &sizes)
        };
        let ranges = pushed(HashRange::ALL, 64e6);
        assert_eq!(ranges.len(), 16);
        let again = pushed(ranges[3], 1.9e6);
        // No smaller than the minimum table.
        assert_eq!(again.len(), 8);
    }
}
