//! How many keys share a slot of SkimpyStash's directory, and what searching a chain of them costs.

/// Distribution of the number of keys of a slot, as the number of slots goes to infinity.
#[derive(Clone, Debug)]
pub(crate) struct ChainLengths {
    /// Share of the slots with 0, 1, 2, … keys.
    shares: Vec<f64>,
    mean: f64,
}

/// Maximum length that is counted, as the number of standard deviations of one choice above the mean.
const DEVIATIONS: f64 = 12.0;
/// Steps per key and slot when two choices are integrated: an error of 10⁻⁵.
const STEPS_PER_KEY: f64 = 8.0;
/// Maximum length of the shorter of two chains above the mean: the shares of longer ones fall double exponentially.
const ABOVE_MEAN_MAX: f64 = 24.0;

impl ChainLengths {
    /// One hash function: Poisson.
    pub fn single(mean: f64) -> Self {
        let mut shares = Vec::new();
        let mut share = (-mean).exp();
        for length in 1..=lengths_max(mean) {
            shares.push(share);
            share *= mean / length as f64;
        }
        Self { shares, mean }
    }

    /// The shorter of two chains: the fluid limit of Mitzenmacher (1996). With s_j the share of slots with at least j
    /// keys and t the keys per slot so far, ds_j/dt = s_{j−1}² − s_j².
    pub fn two_choice(mean: f64) -> Self {
        let mut at_least = vec![0.0; (mean + ABOVE_MEAN_MAX) as usize];
        at_least[0] = 1.0;
        let steps = (mean * STEPS_PER_KEY).ceil().max(1.0);
        let step = mean / steps;
        let slope = |at_least: &[f64]| -> Vec<f64> {
            std::iter::once(0.0)
                .chain(at_least.windows(2).map(|pair| pair[0] * pair[0] - pair[1] * pair[1]))
                .collect()
        };
        let moved = |from: &[f64], by: f64, slope: &[f64]| -> Vec<f64> {
            from.iter().zip(slope).map(|(value, slope)| value + by * slope).collect()
        };
        for _ in 0..steps as u64 {
            // Runge and Kutta, fourth order.
            let first = slope(&at_least);
            let second = slope(&moved(&at_least, step / 2.0, &first));
            let third = slope(&moved(&at_least, step / 2.0, &second));
            let fourth = slope(&moved(&at_least, step, &third));
            for (index, value) in at_least.iter_mut().enumerate() {
                *value += step / 6.0 * (first[index] + 2.0 * (second[index] + third[index]) + fourth[index]);
            }
        }
        let shares = at_least.windows(2).map(|pair| (pair[0] - pair[1]).max(0.0)).collect();
        Self { shares, mean }
    }

    /// Mean over all slots.
    pub fn mean_over_slots(&self, cost: impl Fn(f64) -> f64) -> f64 {
        self.shares.iter().enumerate().map(|(length, share)| share * cost(length as f64)).sum()
    }

    /// Mean over all keys: each slot is weighted by its number of keys.
    pub fn mean_over_keys(&self, cost: impl Fn(f64) -> f64) -> f64 {
        self.mean_over_slots(|length| length * cost(length)) / self.mean
    }
}

fn lengths_max(mean: f64) -> usize {
    (mean + DEVIATIONS * mean.sqrt() + 24.0) as usize
}

/// Reads to search a whole chain: single records first, then pages of `per_page` records.
pub(crate) fn reads_of_all(length: f64, per_page: f64) -> f64 {
    length % per_page + (length / per_page).floor()
}

/// Reads to find one of the chain's records, all equally likely.
pub(crate) fn reads_of_one(length: f64, per_page: f64) -> f64 {
    if length == 0.0 {
        return 0.0;
    }
    let singles = length % per_page;
    let pages = (length / per_page).floor();
    let in_singles = singles * (singles + 1.0) / 2.0;
    let in_pages = per_page * (pages * singles + pages * (pages + 1.0) / 2.0);
    (in_singles + in_pages) / length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_are_distributions_of_the_right_mean() {
        for mean in [0.5, 1.0, 10.0, 32.0, 200.0] {
            for lengths in [ChainLengths::single(mean), ChainLengths::two_choice(mean)] {
                assert!((lengths.mean_over_slots(|_| 1.0) - 1.0).abs() < 1e-9, "{mean}");
                assert!((lengths.mean_over_slots(|length| length) / mean - 1.0).abs() < 1e-9, "{mean}");
            }
        }
    }

    #[test]
    fn two_choices_agree_with_throwing_keys() {
        let (slots, mean) = (1u64 << 14, 10);
        let mut chains = vec![0u32; slots as usize];
        let mut state = 1u64;
        let mut slot = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 50) as usize
        };
        for _ in 0..slots * mean {
            let (left, right) = (slot(), slot());
            let shorter = if chains[left] <= chains[right] { left } else { right };
            chains[shorter] += 1;
        }
        let thrown: f64 = chains.iter().map(|&length| f64::from(length).powi(2)).sum::<f64>() / slots as f64;
        let expected = ChainLengths::two_choice(mean as f64).mean_over_slots(|length| length * length);
        assert!((thrown / expected - 1.0).abs() < 0.005, "{thrown} {expected}");
    }

    #[test]
    fn searching_agrees_with_walking_the_chain() {
        for per_page in 1..5 {
            for length in 0..20 {
                let mut total = 0;
                for position in 1..=length {
                    let singles = length % per_page;
                    total += if position <= singles {
                        position
                    } else {
                        singles + (position - singles + per_page - 1) / per_page
                    };
                }
                let expected = if length == 0 { 0.0 } else { f64::from(total) / f64::from(length) };
                let reads = reads_of_one(f64::from(length), f64::from(per_page));
                assert!((reads - expected).abs() < 1e-12, "{length} records, {per_page} a page");
                let all = reads_of_all(f64::from(length), f64::from(per_page));
                assert_eq!(all, f64::from(length % per_page + length / per_page));
            }
        }
    }
}
