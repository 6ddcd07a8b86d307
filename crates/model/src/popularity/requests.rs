//! [`RequestStream`]: keys of requests, reproducible from their seed.

use super::zipf::ZipfSampler;
use crate::error::{ModelError, within};

/// Number of rounds of the Feistel network: four make a pseudo-random permutation (Luby and Rackoff 1988).
const ROUNDS: u64 = 4;

/// Draws keys of a Zipf popularity. A key is a place in 0..keys; popular keys are spread randomly.
#[derive(Clone, Debug)]
pub struct RequestStream {
    sampler: ZipfSampler,
    keys: u64,
    /// Bits of each half of a Feistel block that covers the keys.
    half_bits: u32,
    seed: u64,
    state: u64,
}

impl RequestStream {
    /// Requests for `keys` keys (1 to 2³²) with the given skew (0 to 16).
    pub fn new(keys: u64, skew: f64, seed: u64) -> Result<Self, ModelError> {
        within("keys", keys as f64, 1.0, 4_294_967_296.0)?;
        within("skew", skew, 0.0, 16.0)?;
        let bits = 64 - (keys - 1).leading_zeros();
        Ok(Self {
            sampler: ZipfSampler::new(keys, skew),
            keys,
            half_bits: bits.div_ceil(2).max(1),
            seed,
            state: mix(seed ^ 0x9e37_79b9_7f4a_7c15),
        })
    }

    /// Number of keys.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// The key of the next request.
    pub fn next_key(&mut self) -> u32 {
        let chance = self.next_chance();
        self.key_of_rank(self.sampler.rank(chance))
    }

    /// A number in 0..1, for other choices of the workload.
    pub fn next_chance(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(self.state) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The key with that rank of popularity, from 0. Ranks from 0 up to the number of keys give all keys once, in
    /// random order.
    pub fn key_of_rank(&self, rank: u64) -> u32 {
        debug_assert!(rank < self.keys);
        let mask = (1u64 << self.half_bits) - 1;
        let mut block = rank;
        // A block is at most four times the keys; walk until the image is a key.
        loop {
            let (mut left, mut right) = (block >> self.half_bits, block & mask);
            for round in 0..ROUNDS {
                let scrambled = mix(right ^ self.seed.wrapping_add(round << 56)) & mask;
                (left, right) = (right, left ^ scrambled);
            }
            block = left << self.half_bits | right;
            if block < self.keys {
                return block as u32;
            }
        }
    }
}

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
fn mix(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyDistribution;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranks_and_keys_are_one_to_one(keys in 1u64..3_000, seed: u64) {
            let requests = RequestStream::new(keys, 0.0, seed).unwrap();
            let mut seen = vec![false; keys as usize];
            for rank in 0..keys {
                let key = requests.key_of_rank(rank) as usize;
                prop_assert!(!seen[key]);
                seen[key] = true;
            }
        }
    }

    #[test]
    fn draws_follow_the_distribution() {
        for skew in [0.0, 0.5, 0.99, 1.0, 1.5] {
            let keys = 50_000;
            let mut requests = RequestStream::new(keys, skew, 11).unwrap();
            let distribution = KeyDistribution::zipf(keys as f64, skew).unwrap();
            let mut seen = vec![false; keys as usize];
            let draws = 100_000;
            (0..draws).for_each(|_| seen[requests.next_key() as usize] = true);
            let unique = seen.iter().filter(|&&seen| seen).count() as f64;
            let expected = distribution.unique(f64::from(draws));
            assert!((unique / expected - 1.0).abs() < 0.01, "skew {skew}: {unique} instead of {expected}");
        }
        assert!(RequestStream::new(0, 0.0, 1).is_err());
        assert!(RequestStream::new(10, f64::NAN, 1).is_err());
    }
}
