//! Tables in buckets as Wu's thesis draws them.

use alluvium_bench::index::bucketed::{BalancedTable, GROUP_BUCKETS, TABLE_BUCKETS};

use super::{Scale, Series};

/// Mean bytes of the items, with the curve's name.
const SIZES: [(&str, u32); 3] = [("100 B", 100), ("200 B", 200), ("300 B", 300)];
/// Points of a curve.
const POINTS: usize = 128;
/// Bytes of a bucket for items.
const CAPACITY_BYTES: f64 = 4080.0;

/// A table for each size of items.
pub fn tables(scale: &Scale) -> impl Iterator<Item = (&'static str, u32, BalancedTable)> {
    let items_max = scale.simulated_keys_max;
    let seed = scale.seed;
    SIZES.into_iter().map(move |(name, bytes_mean)| {
        let buckets =
            (items_max * u64::from(bytes_mean) / CAPACITY_BYTES as u64).max(u64::from(GROUP_BUCKETS));
        let buckets = buckets.min(u64::from(TABLE_BUCKETS)) as u32;
        (name, bytes_mean, BalancedTable::new(buckets, GROUP_BUCKETS, bytes_mean, seed))
    })
}

/// Bytes of the buckets, the fullest first; `chosen` selects the value to draw.
pub fn loads(scale: &Scale, chosen: impl Fn((u32, u32)) -> u32) -> Vec<Series> {
    let mut series = Vec::new();
    for (name, _, table) in tables(scale) {
        let mut bytes: Vec<u32> = table.loads.iter().map(|&load| chosen(load)).collect();
        bytes.sort_unstable_by(|one, other| other.cmp(one));
        let step = (bytes.len() / POINTS).max(1);
        let points = bytes.iter().enumerate().step_by(step);
        series.push(Series::measurement(
            name,
            points.map(|(at, &bytes)| (at as f64, f64::from(bytes))).collect(),
        ));
    }
    series
}
