//! Cheap reproducible randomness, so that benchmarks do not spend their time in a generator.

/// A bijection on 64-bit numbers that looks random: the finalizer of SplitMix64 (Steele et al., OOPSLA 2014).
#[inline]
pub fn mix(mut number: u64) -> u64 {
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// The inverse of [`mix`].
#[inline]
pub fn unmix(mut number: u64) -> u64 {
    number = (number ^ (number >> 31) ^ (number >> 62)).wrapping_mul(0x3196_42b2_d24d_8ec3);
    number = (number ^ (number >> 27) ^ (number >> 54)).wrapping_mul(0x96de_1b17_3f11_9089);
    number ^ (number >> 30) ^ (number >> 60)
}

/// SplitMix64: about a nanosecond per number.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator whose sequence is a function of `seed` and `stream`.
    pub fn new(seed: u64, stream: u64) -> Self {
        Self { state: mix(seed ^ mix(stream.wrapping_add(0x5851_f42d_4c95_7f2d))) }
    }

    /// The next number.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number in `0..bound`, uniform to within `bound` / 2⁶⁴; 0 for bound 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Fills `bytes`.
    #[inline]
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let mut chunks = bytes.chunks_exact_mut(8);
        for chunk in &mut chunks {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes());
        }
        let rest = chunks.into_remainder();
        let last = self.next_u64().to_le_bytes();
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmix_undoes_mix() {
        let mut random = Random::new(1, 1);
        for number in (0..1_000).chain((0..1_000).map(|_| random.next_u64())) {
            assert_eq!(unmix(mix(number)), number);
        }
    }

    #[test]
    fn below_stays_below_and_reaches_everything() {
        let mut random = Random::new(2, 0);
        let mut seen = [false; 10];
        for _ in 0..1_000 {
            seen[random.below(10) as usize] = true;
        }
        assert_eq!(seen, [true; 10]);
    }

    #[test]
    fn streams_differ() {
        assert_ne!(Random::new(1, 0).next_u64(), Random::new(1, 1).next_u64());
        assert_eq!(Random::new(1, 1).next_u64(), Random::new(1, 1).next_u64());
    }
}
