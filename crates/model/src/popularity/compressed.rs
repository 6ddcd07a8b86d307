//! [`KeyDistribution`]: groups of keys of nearly equal probability.

use super::{histogram, zipf};
use crate::error::{ModelError, within};

/// Maximum number of keys: beyond it, a 64-bit float no longer counts single keys.
const KEYS_MAX: f64 = 9_007_199_254_740_992.0;
/// Maximum skew: a steeper Zipf distribution is one key and a rounding error.
pub(super) const SKEW_MAX: f64 = 16.0;

/// Keys that share one probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeyGroup {
    /// Number of keys. May be fractional: a group can represent a stretch of a smooth distribution.
    pub keys: f64,
    /// Probability that the key of a request is a given key of the group. In a histogram passed in, any number in
    /// proportion to it.
    pub probability: f64,
}

/// A group in the form that the sums need.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub keys: f64,
    pub probability: f64,
    /// −ln(1 − probability): a key is missing from r requests with probability e^(−rate · r).
    pub rate: f64,
}

#[derive(Clone, Debug)]
enum Shape {
    Zipf { skew: f64 },
    Histogram,
}

/// The popularity of the keys that requests name, in compressed form.
///
/// Sums over it agree with sums over all keys to a relative 10⁻⁶ or better (10⁻⁸ for skews up to 2).
#[derive(Clone, Debug)]
pub struct KeyDistribution {
    keys: f64,
    shape: Shape,
    pub(super) groups: Vec<Group>,
}

impl KeyDistribution {
    /// `keys` keys, all equally popular.
    pub fn uniform(keys: f64) -> Result<Self, ModelError> {
        Self::zipf(keys, 0.0)
    }

    /// `keys` keys (1 to 2⁵³, whole), the n-th most popular one in proportion to n^−`skew` (0 to 16; 0 is uniform).
    ///
    /// At most 512 + 171 · max(skew, 1) groups for 10¹² keys.
    pub fn zipf(keys: f64, skew: f64) -> Result<Self, ModelError> {
        within("keys", keys, 1.0, KEYS_MAX)?;
        within("skew", skew, 0.0, SKEW_MAX)?;
        let keys = keys.round();
        Ok(Self::from_groups(keys, Shape::Zipf { skew }, zipf::groups(keys, skew)))
    }

    /// Measured keys: groups of keys with the number of requests of each key (or any number in proportion). Keys
    /// without requests are not keys of the workload and are left out. Neighbours that differ by less than a thousandth
    /// are merged.
    pub fn histogram(groups: &[KeyGroup]) -> Result<Self, ModelError> {
        for group in groups {
            within("keys of a group", group.keys, 0.0, KEYS_MAX)?;
            within("requests of a group", group.probability, 0.0, f64::MAX)?;
        }
        let groups = histogram::compress(groups);
        let keys = groups.iter().map(|group| group.keys).sum();
        within("keys", keys, 1.0, KEYS_MAX)?;
        Ok(Self::from_groups(keys, Shape::Histogram, groups))
    }

    /// The same popularity over another number of keys: a Zipf distribution of the same skew, or a histogram whose
    /// groups keep their shares of the keys and of the requests.
    pub fn with_keys(&self, keys: f64) -> Result<Self, ModelError> {
        within("keys", keys, 1.0, KEYS_MAX)?;
        match self.shape {
            Shape::Zipf { skew } => Self::zipf(keys, skew),
            Shape::Histogram => {
                let factor = keys / self.keys;
                let groups = self.groups.iter();
                let groups = groups
                    .map(|group| KeyGroup { keys: group.keys * factor, probability: group.probability })
                    .collect();
                Ok(Self::from_groups(keys, Shape::Histogram, groups))
            }
        }
    }

    fn from_groups(keys: f64, shape: Shape, groups: Vec<KeyGroup>) -> Self {
        let total: f64 = groups.iter().map(|group| group.keys * group.probability).sum();
        let groups = groups
            .into_iter()
            .map(|group| {
                // Rounding must not make a probability larger than 1.
                let probability = (group.probability / total).min(1.0);
                Group { keys: group.keys, probability, rate: -(-probability).ln_1p() }
            })
            .collect();
        Self { keys, shape, groups }
    }

    /// Number of keys.
    pub fn keys(&self) -> f64 {
        self.keys
    }

    /// The groups, most popular first. Their probabilities add up to 1 over all keys.
    pub fn groups(&self) -> impl Iterator<Item = KeyGroup> + '_ {
        self.groups.iter().map(|group| KeyGroup { keys: group.keys, probability: group.probability })
    }
}
