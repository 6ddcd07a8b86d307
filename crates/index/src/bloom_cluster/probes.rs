//! [`Probes`]: the positions of a key's bits in filters of any size.

use alluvium_base::KeyHash;

/// Maximum number of probes for each key.
pub(super) const PROBES_MAX: u32 = 24;

/// The golden ratio as a fraction of 2^64: multiples of it never coincide.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The values that determine a key's probes, computed once for all runs. They are part of the format.
///
/// A key has two sets of probes, and each filter uses one or the other. Two values of 32 bits come from each output of
/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014), which starts from both halves of the hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probes {
    sets: [[u32; PROBES_MAX as usize]; 2],
    count: u32,
}

/// Number of probes that are tested together, without a branch: one absent key in sixteen has all of them.
const TOGETHER: usize = 4;

impl Probes {
    /// The values of the key with `hash` for `count` probes, 1 to 24.
    #[inline]
    pub fn new(hash: KeyHash, count: u32) -> Self {
        let count = count.clamp(1, PROBES_MAX);
        let mut state = hash.high() ^ hash.low().rotate_left(32).wrapping_mul(STEP);
        let mut sets = [[0; PROBES_MAX as usize]; 2];
        let [first, second] = &mut sets;
        for (first, second) in first.iter_mut().zip(second).take(count as usize) {
            state = state.wrapping_add(STEP);
            let mixed = mix(state);
            (*first, *second) = (mixed as u32, (mixed >> 32) as u32);
        }
        Self { sets, count }
    }

    /// The number of probes with the lowest false positive rate at `bits_per_key`.
    pub fn best_count(bits_per_key: f64) -> u32 {
        (bits_per_key * std::f64::consts::LN_2).round().clamp(1.0, f64::from(PROBES_MAX)) as u32
    }

    #[inline(always)]
    fn values(&self, uses_second: bool) -> &[u32] {
        &self.sets[usize::from(uses_second)][..self.count as usize]
    }

    /// Whether all of the key's bits are set in `filter`; false for an empty filter.
    #[inline(always)]
    pub(super) fn pass(&self, filter: &[u8], uses_second: bool) -> bool {
        let bits = filter.len() as u64 * 8;
        let bit = |value: u32| {
            let place = place(value, bits);
            filter.get((place / 8) as usize).map_or(0, |byte| byte >> (place % 8)) & 1
        };
        let values = self.values(uses_second);
        let (together, others) = values.split_at(TOGETHER.min(values.len()));
        together.iter().fold(1, |all, &value| all & bit(value)) == 1
            && others.iter().all(|&value| bit(value) == 1)
    }

    /// Sets the key's bits in `filter`, which must not be empty.
    pub(super) fn set(&self, filter: &mut [u8], uses_second: bool) {
        let bits = filter.len() as u64 * 8;
        for &value in self.values(uses_second) {
            let place = place(value, bits);
            filter[(place / 8) as usize] |= 1 << (place % 8);
        }
    }
}

/// The bit that `value` selects among `bits` bits, which are less than 2^32.
#[inline(always)]
fn place(value: u32, bits: u64) -> u64 {
    (u64::from(value) * bits) >> 32
}

/// SplitMix64's output function.
#[inline(always)]
fn mix(state: u64) -> u64 {
    let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_frozen_because_filters_are_on_disk() {
        let probes = Probes::new(KeyHash::from_halves(1, 2), 3);
        let filters = [false, true].map(|uses_second| {
            let mut filter = [0; 8];
            probes.set(&mut filter, uses_second);
            assert!(probes.pass(&filter, uses_second));
            u64::from_le_bytes(filter)
        });
        assert_eq!(filters, [288_230_376_202_043_392, 10_486_016]);
    }

    #[test]
    fn as_many_probes_as_are_best() {
        assert_eq!([0.1, 10.0, 16.0, 100.0].map(Probes::best_count), [1, 7, 11, 24]);
    }
}
