//! [`HashRange`]: a part of the hash space in an edit.

use serde::{Deserialize, Serialize};

/// The hashes `low..=high`.
///
/// On disk the high halves are `low` and `high`, and the low halves are left out where they are all zeros and all ones:
/// ranges of hashed keyspaces end there, and manifests before there were others say nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Halves", into = "Halves")]
pub(crate) struct HashRange {
    pub low: u128,
    pub high: u128,
}

impl HashRange {
    /// The whole hash space.
    pub const ALL: Self = Self { low: 0, high: u128::MAX };

    /// The hashes with these 64 leading bits.
    pub fn of_high_half(high: u64) -> Self {
        let low = u128::from(high) << 64;
        Self { low, high: low | u128::from(u64::MAX) }
    }

    /// Whether the hash is in the range.
    pub fn contains(self, hash: u128) -> bool {
        self.low <= hash && hash <= self.high
    }

    /// What is left of the range below and above `other`.
    pub fn without(self, other: Self) -> [Option<Self>; 2] {
        if other.high < self.low || self.high < other.low {
            return [Some(self), None];
        }
        let below = (self.low < other.low).then(|| Self { high: other.low - 1, ..self });
        let above = (other.high < self.high).then(|| Self { low: other.high + 1, ..self });
        [below, above]
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

    #[test]
    fn ranges_are_cut_by_others() {
        let range = |low, high| HashRange { low, high };
        let parts = |other| range(10, 20).without(other).into_iter().flatten().collect::<Vec<_>>();
        assert_eq!(parts(range(0, 9)), [range(10, 20)]);
        assert_eq!(parts(range(21, 30)), [range(10, 20)]);
        assert_eq!(parts(range(12, 14)), [range(10, 11), range(15, 20)]);
        assert_eq!(parts(range(10, 14)), [range(15, 20)]);
        assert_eq!(parts(range(15, 20)), [range(10, 14)]);
        assert_eq!(parts(HashRange::ALL), []);
        assert!(range(10, 20).contains(10) && range(10, 20).contains(20) && !range(10, 20).contains(21));
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
