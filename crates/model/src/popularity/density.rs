//! The density of a level that is compacted round-robin, and the interval between compactions of one key (Lim's thesis,
//! §4.3.3).

use super::KeyDistribution;
use super::compressed::Group;
use crate::root;

impl KeyDistribution {
    /// Probability that a level holds the key at distance `distance` (0 to keys) behind the last compacted one, when
    /// `interval` requests pass between compactions of the same key (Theorem 4.4).
    pub fn density(&self, interval: f64, distance: f64) -> f64 {
        self.unique(interval * distance / self.keys()) / self.keys()
    }

    /// Expected keys in a level whose keys are compacted every `interval` requests: the sum of the density over all
    /// distances 0 to keys − 1, in closed form.
    pub fn level_size(&self, interval: f64) -> f64 {
        if interval <= 0.0 || self.keys() < 2.0 {
            return 0.0;
        }
        self.groups.iter().map(|group| group.keys * present_share(group, interval, self.keys())).sum()
    }

    /// Requests between compactions of the same key in a level of `size` keys (DInterval, from Theorem 4.4 and Lemma
    /// 4.5). Infinite if the level can hold all keys but one: it then never needs compaction.
    pub fn dinterval(&self, size: f64) -> f64 {
        if size <= 0.0 {
            return 0.0;
        }
        if size >= self.keys() - 1.0 {
            return f64::INFINITY;
        }
        // The slope is with respect to the logarithm of the interval.
        let slope = |interval: f64| -> f64 {
            self.groups.iter().map(|group| group.keys * present_slope(group, interval, self.keys())).sum()
        };
        // As in `unique_inverse`: near saturation the missing keys are more precise. The key just compacted is always
        // missing.
        let keys = self.keys() - 1.0;
        root::increasing(2.0 * size, |interval| {
            let value = self.level_size(interval);
            if size > keys / 2.0 {
                (((keys - size) / (keys - value)).ln(), slope(interval) / (keys - value))
            } else {
                ((value / size).ln(), slope(interval) / value)
            }
        })
    }

    /// [`unique`](Self::unique) averaged over 0 to `requests`: the keys, at a random moment, in a structure that fills
    /// from empty.
    pub fn mean_unique(&self, requests: f64) -> f64 {
        if requests <= 0.0 {
            return 0.0;
        }
        self.groups.iter().map(|group| group.keys * filling_mean(group.rate * requests)).sum()
    }

    /// [`recent_share`](Self::recent_share) averaged over 0 to `requests`.
    pub fn mean_recent_share(&self, requests: f64) -> f64 {
        if requests <= 0.0 {
            return 0.0;
        }
        let groups = self.groups.iter();
        groups
            .map(|group| group.keys * group.probability * filling_mean(group.rate * requests))
            .sum::<f64>()
            .min(1.0)
    }
}

/// Mean of the probability 1 − e^(−a·d/keys) over the distances d = 0 … keys − 1, with a = rate · interval.
///
/// The sum is geometric: 1 − ψ(a) · B(a/keys) with ψ(a) = (1 − e^−a)/a and B(h) = h/(1 − e^−h). Both factors are near 1
/// for small a, so the code computes their distances from 1.
fn present_share(group: &Group, interval: f64, keys: f64) -> f64 {
    let a = group.rate * interval;
    let filled = filling_mean(a);
    let per_key = a / keys;
    let excess = if per_key < 0.03 {
        let square = per_key * per_key;
        per_key / 2.0 + square / 12.0 - square * square / 720.0
    } else {
        per_key / -(-per_key).exp_m1() - 1.0
    };
    filled - (1.0 - filled) * excess
}

/// Derivative of [`present_share`] with respect to ln interval: ψ(a) · B(h) · (h/(e^h − 1) − a/(e^a − 1)).
fn present_slope(group: &Group, interval: f64, keys: f64) -> f64 {
    let a = group.rate * interval;
    let decay = |x: f64| if x < 700.0 { x / x.exp_m1() } else { 0.0 };
    (1.0 - present_share(group, interval, keys)) * (decay(a / keys) - decay(a))
}

/// 1 − (1 − e^−a)/a: the mean of 1 − e^(−a·x) over x from 0 to 1, without cancellation for small a.
fn filling_mean(a: f64) -> f64 {
    if a < 0.25 {
        // a/2! − a²/3! + a³/4! − …
        let mut term = a / 2.0;
        let mut sum = 0.0;
        for divisor in 3..20 {
            sum += term;
            term *= -a / f64::from(divisor);
        }
        return sum;
    }
    if a.is_infinite() { 1.0 } else { 1.0 + (-a).exp_m1() / a }
}
