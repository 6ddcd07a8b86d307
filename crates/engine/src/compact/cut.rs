//! Where the tables that a merge makes begin and end.

use alluvium_model::{Growth, Plan};

use super::level_table::level_spec;
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

/// Ranges of leading hash bits for at least `tables` tables over `low..=high`, equal but at the ends.
///
/// All cuts are at multiples of one power of two. Were they at equal parts of whatever range comes, each merge would
/// cut elsewhere, and containers, which are split wherever something laid over them ends, become ever smaller.
pub(super) fn table_ranges(low: u64, high: u64, tables: u64) -> impl Iterator<Item = (u64, u64)> {
    let hashes = u128::from(high - low) + 1;
    let width = (hashes / u128::from(tables.max(1))).max(1);
    ranges_of_bits(low, high, width.ilog2())
}

/// The parts of `low..=high` that begin at multiples of two to the power of `bits`.
fn ranges_of_bits(low: u64, high: u64, bits: u32) -> impl Iterator<Item = (u64, u64)> {
    // No bits are left of what is shifted by all.
    let number = |hash: u64| hash.checked_shr(bits).unwrap_or(0);
    (number(low)..=number(high)).map(move |part| {
        let (first, last) = cell(part.checked_shl(bits).unwrap_or(0), bits);
        (first.max(low), last.min(high))
    })
}

/// The range with `hash` that begins at a multiple of two to the power of `bits` and is so long.
fn cell(hash: u64, bits: u32) -> (u64, u64) {
    let rest = 1u64.checked_shl(bits).map_or(u64::MAX, |length| length - 1);
    (hash & !rest, hash | rest)
}

/// The ranges of new tables that lie over what a tiering level has, made of `bytes` in `low..=high`.
///
/// They are those of the level's containers, of which those that would get too much are split. Where it has none,
/// containers are made for tables so large that as many as a container takes are again what was merged now: then
/// tables are equally large in all levels.
pub(super) fn pushed_ranges(
    plan: &Plan,
    number: usize,
    level: &Level,
    (low, high): (u64, u64),
    bytes: f64,
    sizes: &TableSizes,
) -> Vec<(u64, u64)> {
    let fan_out = match level_spec(plan, number).growth {
        Growth::Tiering { runs_max, .. } => f64::from(runs_max),
        Growth::Leveling { .. } => 1.0,
    };
    let table_bytes = sizes.clamp(bytes / fan_out);
    let density = bytes / ((high - low) as f64).max(1.0);
    let mut pieces: Vec<(u64, u64)> = Vec::new();
    let mut add = |low: u64, high: u64, bytes_max: f64| {
        // The nearest power of two, so that pieces of one size are cut alike each time.
        let bits = (bytes_max / density).log2().round().clamp(0.0, 64.0);
        pieces.extend(ranges_of_bits(low, high, bits as u32));
    };
    let mut next = Some(low);
    for container in level.within(low, high) {
        let (from, to) = (container.low.max(low), container.high.min(high));
        if let Some(gap) = next.filter(|&gap| gap < from) {
            add(gap, from - 1, table_bytes);
        }
        add(from, to, sizes.bytes_max as f64);
        next = to.checked_add(1);
    }
    if let Some(gap) = next.filter(|&gap| gap <= high) {
        add(gap, high, table_bytes);
    }
    join_small(&pieces, density, sizes.bytes_min as f64)
}

/// The ranges of the tables that a merge makes of `bytes` in `low..=high` where they take the place of what is there.
pub(super) fn merged_ranges((low, high): (u64, u64), bytes: f64, sizes: &TableSizes) -> Vec<(u64, u64)> {
    let tables = (bytes / sizes.of_merge(bytes)).ceil();
    let pieces: Vec<_> = table_ranges(low, high, tables as u64).collect();
    let density = bytes / ((high - low) as f64).max(1.0);
    join_small(&pieces, density, sizes.bytes_min as f64)
}

/// The ranges of the tables that merging the container `low..=high` of a level into itself makes.
///
/// They are the level's containers from then on, so they are cut by what the level holds and not by what is merged, or
/// they would be smaller each time. Containers beside it are merged with it while all together make less than half a
/// table: so those that were cut for a smaller level, or of which much was removed, become one again.
pub(super) fn ranges_within(level: &Level, (low, high): (u64, u64), sizes: &TableSizes) -> Vec<(u64, u64)> {
    let table_bytes = sizes.of_merge(level.bytes() as f64);
    let (mut low, mut high) = (low, high);
    for bits in 64 - (low ^ high).leading_zeros()..=64 {
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
fn join_small(ranges: &[(u64, u64)], density: f64, bytes_min: f64) -> Vec<(u64, u64)> {
    let mut joined: Vec<(u64, u64)> = Vec::new();
    for &(low, high) in ranges {
        match joined.last_mut() {
            Some(last) if (high - last.0) as f64 * density <= bytes_min => last.1 = high,
            _ => joined.push((low, high)),
        }
    }
    joined
}

/// Adjacent ranges in groups that cover about one of `groups` equal parts each, at most where a range isn't more.
pub(super) fn grouped(ranges: &[(u64, u64)], groups: u64) -> Vec<Vec<(u64, u64)>> {
    let (Some(&(low, _)), Some(&(_, high))) = (ranges.first(), ranges.last()) else { return Vec::new() };
    if groups <= 1 {
        return vec![ranges.to_vec()];
    }
    let width = (high - low) / groups + 1;
    let mut grouped: Vec<Vec<(u64, u64)>> = Vec::new();
    for &(low, high) in ranges {
        for (low, high) in table_ranges(low, high, (high - low) / width + 1) {
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

    fn is_aligned(&(low, high): &(u64, u64)) -> bool {
        let hashes = u128::from(high - low) + 1;
        hashes.is_power_of_two() && u128::from(low).is_multiple_of(hashes)
    }

    fn tile(ranges: &[(u64, u64)], low: u64, high: u64) {
        assert_eq!((ranges[0].0, ranges[ranges.len() - 1].1), (low, high));
        assert!(ranges.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0));
        assert!(ranges.iter().all(|(low, high)| low <= high));
    }

    proptest! {
        #[test]
        fn ranges_cover_what_is_merged(
            low: u64, high: u64, tables in 0u64..3000, groups in 0u32..6, bytes in 0.0..1e10,
        ) {
            let (low, high) = (low.min(high), low.max(high));
            let ranges: Vec<_> = table_ranges(low, high, tables).collect();
            tile(&ranges, low, high);
            prop_assert!(ranges.iter().skip(1).rev().skip(1).all(is_aligned));
            let widest = ranges.iter().map(|(low, high)| high - low).max().unwrap();
            prop_assert!(widest <= (high - low) / tables.max(1));
            let all = grouped(&ranges, 1 << groups);
            tile(&all.concat(), low, high);
            prop_assert!(groups > 0 || all == [ranges]);
            let sizes = TableSizes::default();
            let pushed = pushed_ranges(&Plan::lsm_trie(), 1, &Level::default(), (low, high), bytes, &sizes);
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
        let ranges = pushed_ranges(&Plan::lsm_trie(), 1, &Level::default(), (0, u64::MAX), 64e6, &sizes);
        assert_eq!(ranges.len(), 16);
        let again = pushed_ranges(&Plan::lsm_trie(), 1, &Level::default(), ranges[3], 7.6e6, &sizes);
        assert_eq!(again.len(), 16);
    }
}
