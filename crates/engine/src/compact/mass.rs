//! [`Mass`]: the distribution over the hash space of the bytes that a merge handles.
//!
//! The bytes of hashed keyspaces are distributed evenly, so tables are cut at multiples of powers of two, as in
//! LSM-trie (Wu's thesis, §4.2.3). The distribution in semi-sorted keyspaces is taken from the tables: one prefix may
//! have most of the items, so cuts are at quantiles of the data and use as many of the 128 bits as necessary.

use alluvium_base::HashRange;

use crate::level::{Container, PlacedTable};
use crate::table::{Section, SectionRange};

/// The distribution of bytes over a part of the hash space.
#[derive(Debug, Clone)]
pub(super) enum Mass {
    /// Equal density everywhere.
    Even {
        /// Bytes per hash.
        density: f64,
    },
    /// Ascending hashes, each with the bytes up to it and above the previous one.
    Marked(Vec<(u128, f64)>),
}

impl Mass {
    /// `bytes` distributed evenly over `range`.
    pub fn even(range: HashRange, bytes: f64) -> Self {
        Self::Even { density: bytes / ((range.high - range.low) as f64).max(1.0) }
    }

    /// The content of these parts of tables.
    pub fn of_sections<'s>(ranges: impl IntoIterator<Item = &'s SectionRange>) -> Self {
        let mut marks = Vec::new();
        for SectionRange { section, range } in ranges {
            add_marks(&mut marks, section, *range);
        }
        Self::marked(marks)
    }

    /// The content of these containers.
    pub fn of_containers(containers: &[Container<PlacedTable>]) -> Self {
        let mut marks = Vec::new();
        for container in containers {
            for table in &container.tables {
                add_marks(&mut marks, &table.section, container.range);
            }
        }
        Self::marked(marks)
    }

    /// The distribution given by hashes and the bytes up to each.
    pub fn marked(mut marks: Vec<(u128, f64)>) -> Self {
        marks.sort_unstable_by_key(|&(hash, _)| hash);
        Self::Marked(marks)
    }

    /// The sum of both; `other` is marked if this is.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Even { density }, Self::Even { density: other }) => {
                Self::Even { density: density + other }
            }
            (Self::Marked(mut marks), Self::Marked(others)) => {
                marks.extend(others);
                Self::marked(marks)
            }
            (marked @ Self::Marked(_), Self::Even { .. }) | (Self::Even { .. }, marked) => marked,
        }
    }

    /// Bytes in `range`. For a marked distribution, the bytes of the marks in it.
    pub fn bytes_within(&self, range: HashRange) -> f64 {
        match self {
            Self::Even { density } => (range.high - range.low) as f64 * density,
            Self::Marked(marks) => within(marks, range).iter().map(|&(_, bytes)| bytes).sum(),
        }
    }

    /// Cuts `range` into pieces of at most `bytes_max`, as far as the marks allow; an even distribution is cut at
    /// multiples of the nearest power of two.
    pub fn split(&self, range: HashRange, bytes_max: f64) -> Vec<HashRange> {
        let marks = match self {
            Self::Even { density } => {
                // The nearest power of two, so that pieces of one size are always cut at the same hashes.
                let bits = (bytes_max / density).log2().round().clamp(0.0, 128.0);
                return ranges_of_bits(range, bits as u32).collect();
            }
            Self::Marked(marks) => within(marks, range),
        };
        let whole: f64 = marks.iter().map(|&(_, bytes)| bytes).sum();
        // Equal pieces, so that none is a small remainder.
        let pieces = (whole / bytes_max).ceil().max(1.0);
        let (mut ranges, mut start, mut passed) = (Vec::new(), range.low, 0.0);
        for &(hash, bytes) in marks {
            passed += bytes;
            let is_due = passed >= whole * (ranges.len() + 1) as f64 / pieces - bytes / 2.0;
            if is_due && hash >= start && hash < range.high {
                ranges.push(HashRange::new(start, hash));
                start = hash + 1;
            }
        }
        ranges.push(HashRange::new(start, range.high));
        ranges
    }
}

/// Marks in `range`.
fn within(marks: &[(u128, f64)], range: HashRange) -> &[(u128, f64)] {
    let start = marks.partition_point(|&(hash, _)| hash < range.low);
    let end = marks.partition_point(|&(hash, _)| hash <= range.high);
    &marks[start..end.max(start)]
}

/// Adds the marks of a section in `range`, each for an equal part of its pages. What follows the last mark in the range
/// is marked at its end.
fn add_marks(marks: &mut Vec<(u128, f64)>, section: &Section, range: HashRange) {
    let hashes = section.marks();
    let bytes_each = section.pages_bytes() as f64 / hashes.len().max(1) as f64;
    let mut left = section.pages_bytes() as f64 * section.share_within(range);
    for &hash in hashes.iter().filter(|&&hash| range.contains(hash)) {
        marks.push((hash, bytes_each.min(left)));
        left -= bytes_each.min(left);
    }
    if left > 0.0 {
        marks.push((range.high, left));
    }
}

/// The parts of `range`, divided at multiples of two to the power of `bits`.
pub(super) fn ranges_of_bits(range: HashRange, bits: u32) -> impl Iterator<Item = HashRange> {
    // A shift by all bits leaves none.
    let number = |hash: u128| hash.checked_shr(bits).unwrap_or(0);
    (number(range.low)..=number(range.high))
        .filter_map(move |part| cell(part.checked_shl(bits).unwrap_or(0), bits).clip(range))
}

/// The range that contains `hash`, begins at a multiple of two to the power of `bits` and has that length.
pub(super) fn cell(hash: u128, bits: u32) -> HashRange {
    let rest = 1u128.checked_shl(bits).map_or(u128::MAX, |length| length - 1);
    HashRange::new(hash & !rest, hash | rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pieces_tile_and_none_is_much_too_large(
            marks in prop::collection::vec((0u128..50, 1.0..10.0), 0..60),
            low: u128,
            bytes_max in 5.0..50.0,
        ) {
            // Fifty hashes close together, as those of one prefix are.
            let low = low.min(u128::MAX - 1000);
            let range = HashRange::new(low, low + 60);
            let mass = Mass::marked(marks.iter().map(|&(at, bytes)| (low + at, bytes)).collect());
            let pieces = mass.split(range, bytes_max);
            prop_assert_eq!(HashRange::new(pieces[0].low, pieces[pieces.len() - 1].high), range);
            prop_assert!(pieces.windows(2).all(|pair| pair[0].meets(pair[1])));
            let at = |at: u128| mass.bytes_within(HashRange::new(low + at, low + at));
            let heaviest = (0..=60).map(at).fold(0.0, f64::max);
            for &piece in &pieces {
                prop_assert!(mass.bytes_within(piece) <= bytes_max + 2.0 * heaviest);
            }
            let sum: f64 = pieces.iter().map(|&piece| mass.bytes_within(piece)).sum();
            prop_assert!((sum - mass.bytes_within(range)).abs() < 1e-6);
        }
    }
}
