//! Zipf popularity: the most popular keys one by one, the others by quadrature over their ranks.

use super::KeyGroup;

/// Number of keys that are groups of their own. For later keys, the sum over ranks is an integral between half ranks;
/// the first neglected term of Euler and Maclaurin is below skew / (80 · 512²) of the whole: 5 · 10⁻⁸ for skew 1.
const HEAD_KEYS: f64 = 512.0;

/// Gauss-Legendre nodes on (0, 1) and their weights, 8 points: exact for polynomials up to degree 15. Contains one half
/// of them; the other half mirrors it.
const NODES: [(f64, f64); 4] = [
    (0.019_855_071_751_231_884, 0.050_614_268_145_188_13),
    (0.101_666_761_293_186_63, 0.111_190_517_226_687_24),
    (0.237_233_795_041_835_5, 0.156_853_322_938_943_64),
    (0.408_282_678_752_175_1, 0.181_341_891_689_181),
];

/// Groups of `keys` keys (whole, at least 1) whose probability falls as rank^−`skew`, not normalised.
///
/// A summand depends on the rank through rank^−skew. In the logarithm of the rank it bends on a scale of 1/skew, so
/// panels of that width with 8 points each leave a negligible error.
pub(super) fn groups(keys: f64, skew: f64) -> Vec<KeyGroup> {
    if skew == 0.0 {
        return vec![KeyGroup { keys, probability: 1.0 }];
    }
    let head = keys.min(HEAD_KEYS);
    let mut groups: Vec<KeyGroup> = (1..=head as u64)
        .map(|rank| KeyGroup { keys: 1.0, probability: (rank as f64).powf(-skew) })
        .collect();
    if keys > head {
        let (low, high) = (tail_low().ln(), (keys + 0.5).ln());
        let panels = ((high - low) * skew.max(1.0)).ceil();
        let width = (high - low) / panels;
        for panel in 0..panels as u64 {
            let start = low + panel as f64 * width;
            let mut add = |node: f64, weight: f64| {
                let rank = (start + node * width).exp();
                groups.push(KeyGroup { keys: rank * width * weight, probability: rank.powf(-skew) });
            };
            NODES.iter().for_each(|&(node, weight)| add(node, weight));
            NODES.iter().rev().for_each(|&(node, weight)| add(1.0 - node, weight));
        }
        let tail: f64 = groups[head as usize..].iter().map(|group| group.keys).sum();
        let factor = (keys - head) / tail;
        groups[head as usize..].iter_mut().for_each(|group| group.keys *= factor);
    }
    groups
}

fn tail_low() -> f64 {
    HEAD_KEYS + 0.5
}

/// Draws ranks, from 0, of a Zipf distribution: the head by its cumulative probabilities, the tail by inverting the
/// integral that [`groups`] sums. Exact to 10⁻⁶ of each probability. A draw takes a few nanoseconds to tens of them.
#[derive(Clone, Debug)]
pub(super) struct ZipfSampler {
    keys: f64,
    skew: f64,
    /// Probability of a rank in the head up to and including each one.
    cumulative: Vec<f64>,
}

impl ZipfSampler {
    pub fn new(keys: u64, skew: f64) -> Self {
        let keys = keys as f64;
        let head = keys.min(HEAD_KEYS) as u64;
        let mut sum = 0.0;
        let mut cumulative: Vec<f64> = (1..=head)
            .map(|rank| {
                sum += (rank as f64).powf(-skew);
                sum
            })
            .collect();
        let total = if keys > HEAD_KEYS { sum + tail_mass(keys, skew) } else { sum };
        cumulative.iter_mut().for_each(|chance| *chance /= total);
        Self { keys, skew, cumulative }
    }

    /// The rank that belongs to `chance` in 0..1.
    pub fn rank(&self, chance: f64) -> u64 {
        if self.skew == 0.0 {
            return (chance * self.keys) as u64;
        }
        let head = self.cumulative.partition_point(|&cumulative| cumulative <= chance);
        if head < self.cumulative.len() || self.keys <= HEAD_KEYS {
            return head.min(self.cumulative.len() - 1) as u64;
        }
        let before = self.cumulative[self.cumulative.len() - 1];
        let share = (chance - before) / (1.0 - before);
        let (low, high) = (tail_low(), self.keys + 0.5);
        let exponent = 1.0 - self.skew;
        // ∫ x^−skew, inverted through the ratio so that skews near 1 lose no digits.
        let log_ratio = (high / low).ln();
        let rank = if exponent == 0.0 {
            low * (share * log_ratio).exp()
        } else {
            low * ((share * (exponent * log_ratio).exp_m1()).ln_1p() / exponent).exp()
        };
        rank.round().clamp(low + 0.5, self.keys) as u64 - 1
    }
}

/// ∫ of x^−skew over the tail.
fn tail_mass(keys: f64, skew: f64) -> f64 {
    let (low, high) = (tail_low(), keys + 0.5);
    let exponent = 1.0 - skew;
    let log_ratio = (high / low).ln();
    if exponent == 0.0 {
        return log_ratio;
    }
    low.powf(exponent) * (exponent * log_ratio).exp_m1() / exponent
}
