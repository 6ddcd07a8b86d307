//! [`HashRange`]: a part of the hash space.

use std::fmt;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::key_hash::KeyHash;

/// The hashes `low..=high`: both ends are included, since no `u128` is above the highest hash.
///
/// Ranges are not empty: an operation that may leave nothing returns an [`Option`]. Nothing checks that `low` is not
/// above `high`, which damaged files may violate; such a range contains no hash. Takes 32 bytes; each method takes a
/// few comparisons and allocates nothing.
///
/// Serialized the high halves are `low` and `high`, and the low halves are left out where they are all zeros and all
/// ones: ranges of hashed keyspaces end there, and manifests before there were others say nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "Halves", into = "Halves")]
pub struct HashRange {
    /// Lowest hash.
    pub low: u128,
    /// Highest hash, included.
    pub high: u128,
}

impl HashRange {
    /// The whole hash space.
    pub const ALL: Self = Self { low: 0, high: u128::MAX };

    /// The hashes from `low` to `high`, both included.
    pub const fn new(low: u128, high: u128) -> Self {
        Self { low, high }
    }

    /// The hashes with these 64 leading bits.
    pub fn of_high_half(high: u64) -> Self {
        let low = u128::from(high) << 64;
        Self { low, high: low | u128::from(u64::MAX) }
    }

    /// The 64 leading bits of both ends.
    pub fn high_halves(self) -> (u64, u64) {
        ((self.low >> 64) as u64, (self.high >> 64) as u64)
    }

    /// The numbers of those of 2^`bits` equal parts of the hash space, 2^64 at most, that the range overlaps.
    pub fn parts(self, bits: u32) -> RangeInclusive<usize> {
        let part = |hash: u128| KeyHash(hash).prefix(bits) as usize;
        part(self.low)..=part(self.high)
    }

    /// Whether the hash is in the range.
    #[inline]
    pub fn contains(self, hash: u128) -> bool {
        self.low <= hash && hash <= self.high
    }

    /// Whether all of `other` is in the range.
    pub fn covers(self, other: Self) -> bool {
        self.low <= other.low && other.high <= self.high
    }

    /// Whether a hash is in both ranges.
    pub fn overlaps(self, other: Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }

    /// Whether `next` begins right behind the range.
    pub fn meets(self, next: Self) -> bool {
        self.high.checked_add(1) == Some(next.low)
    }

    /// The part of the range that is in `other` too; `None` if they don't overlap.
    pub fn clip(self, other: Self) -> Option<Self> {
        let clipped = Self { low: self.low.max(other.low), high: self.high.min(other.high) };
        (clipped.low <= clipped.high).then_some(clipped)
    }

    /// What is left of the range below and above `other`.
    pub fn without(self, other: Self) -> [Option<Self>; 2] {
        if !self.overlaps(other) {
            return [Some(self), None];
        }
        let below = (self.low < other.low).then(|| Self { high: other.low - 1, ..self });
        let above = (other.high < self.high).then(|| Self { low: other.high + 1, ..self });
        [below, above]
    }
}

impl fmt::Display for HashRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:032x}..={:032x}", self.low, self.high)
    }
}

#[derive(Serialize, Deserialize)]
struct Halves {
    low: u64,
    high: u64,
    #[serde(default, skip_serializing_if = "is_first")]
    low_rest: u64,
    #[serde(default = "last", skip_serializing_if = "is_last")]
    high_rest: u64,
}

fn last() -> u64 {
    u64::MAX
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_first(rest: &u64) -> bool {
    *rest == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_last(rest: &u64) -> bool {
    *rest == u64::MAX
}

impl From<Halves> for HashRange {
    fn from(halves: Halves) -> Self {
        let Halves { low, high, low_rest, high_rest } = halves;
        let whole = |half: u64, rest: u64| u128::from(half) << 64 | u128::from(rest);
        Self { low: whole(low, low_rest), high: whole(high, high_rest) }
    }
}

impl From<HashRange> for Halves {
    fn from(HashRange { low, high }: HashRange) -> Self {
        Self {
            low: (low >> 64) as u64,
            high: (high >> 64) as u64,
            low_rest: low as u64,
            high_rest: high as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENS: HashRange = HashRange::new(10, 20);

    #[test]
    fn ranges_are_cut_by_others() {
        let range = HashRange::new;
        let parts = |other| TENS.without(other).into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(parts(range(0, 9)), [range(10, 20)]);
        assert_eq!(parts(range(21, 30)), [range(10, 20)]);
        assert_eq!(parts(range(12, 14)), [range(10, 11), range(15, 20)]);
        assert_eq!(parts(range(10, 14)), [range(15, 20)]);
        assert_eq!(parts(range(15, 20)), [range(10, 14)]);
        assert_eq!(parts(HashRange::ALL), []);
        assert!(TENS.contains(10) && TENS.contains(20) && !TENS.contains(9) && !TENS.contains(21));
    }

    #[test]
    fn ranges_are_clipped_to_others() {
        let range = HashRange::new;
        let cases = [
            (range(0, 9), None),
            (range(21, 30), None),
            (range(0, 10), Some(range(10, 10))),
            (range(20, 30), Some(range(20, 20))),
            (range(12, 14), Some(range(12, 14))),
            (TENS, Some(TENS)),
            (HashRange::ALL, Some(TENS)),
        ];
        for (other, expected) in cases {
            assert_eq!((TENS.clip(other), other.clip(TENS)), (expected, expected), "{other}");
            assert_eq!(
                (TENS.overlaps(other), other.overlaps(TENS)),
                (expected.is_some(), expected.is_some())
            );
            assert_eq!(
                (TENS.covers(other), other.covers(TENS)),
                (expected == Some(other), expected == Some(TENS))
            );
        }
        assert!(!TENS.covers(range(10, 21)) && !TENS.covers(range(9, 20)));
    }

    #[test]
    fn a_range_meets_the_one_right_behind_it() {
        assert!(TENS.meets(HashRange::new(21, 30)) && !HashRange::new(21, 30).meets(TENS));
        assert!(!TENS.meets(HashRange::new(20, 30)) && !TENS.meets(HashRange::new(22, 30)));
        assert!(!HashRange::ALL.meets(HashRange::ALL));
    }

    #[test]
    fn a_high_half_is_a_range() {
        let range = HashRange::of_high_half(5);
        assert_eq!(range, HashRange::new(5 << 64, (6 << 64) - 1));
        assert_eq!((range.high_halves(), HashRange::ALL.high_halves()), ((5, 5), (0, u64::MAX)));
    }

    #[test]
    fn a_range_overlaps_parts_of_the_hash_space() {
        let half = HashRange::new(1 << 127, u128::MAX);
        assert_eq!((half.parts(0), half.parts(1), half.parts(3)), (0..=0, 1..=1, 4..=7));
        assert_eq!((TENS.parts(3), HashRange::ALL.parts(3)), (0..=0, 0..=7));
        assert_eq!(HashRange::new(u128::MAX / 8, u128::MAX / 8 + 1).parts(3), 0..=1);
    }

    #[test]
    fn a_range_is_displayed_in_hexadecimal() {
        let expected = "0000000000000000000000000000000a..=00000000000000000000000000000014";
        assert_eq!(TENS.to_string(), expected);
    }

    #[test]
    fn ranges_of_leading_bits_are_as_short_as_ever() {
        let range = HashRange { low: 5 << 64, high: (9 << 64) | u128::from(u64::MAX) };
        let json = serde_json::to_string(&range).unwrap();
        assert_eq!(json, r#"{"low":5,"high":9}"#);
        assert_eq!(serde_json::from_str::<HashRange>(&json).unwrap(), range);
        let within = HashRange { low: 5 << 64 | 3, high: 5 << 64 | 8 };
        let json = serde_json::to_string(&within).unwrap();
        assert_eq!(json, r#"{"low":5,"high":5,"low_rest":3,"high_rest":8}"#);
        assert_eq!(serde_json::from_str::<HashRange>(&json).unwrap(), within);
    }
}
