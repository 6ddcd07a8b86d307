//! [`WorthSums`]: how many bytes could be dropped for something of a given worth, without asking every holder.

use alluvium_io::sync::atomic::{AtomicU64, Ordering};

/// Exponent of the smallest worth that is distinguished: pages of a whole level in a large database are worth more.
const EXPONENT_MIN: i64 = -190;
/// Two bits of the mantissa: worths that differ by a quarter or more are in different classes.
const CLASSES_PER_OCTAVE_BITS: u32 = 2;
const CLASSES: usize = ((10 - EXPONENT_MIN) as usize) << CLASSES_PER_OCTAVE_BITS;
const MANTISSA_BITS: u32 = 52;
const EXPONENT_BIAS: i64 = 1023;

/// Bytes in memory by classes of worth. A lookup that finds no room asks this, in a memory limit with thousands of
/// sections on every get, so it must not cost a visit of each.
#[derive(Debug)]
pub(crate) struct WorthSums(Box<[AtomicU64]>);

impl Default for WorthSums {
    fn default() -> Self {
        Self((0..CLASSES).map(|_| AtomicU64::new(0)).collect())
    }
}

impl WorthSums {
    /// Counts `bytes` worth `worth` each.
    pub fn add(&self, bytes: u64, worth: f64) {
        self.0[class_of(worth)].fetch_add(bytes, Ordering::Relaxed);
    }

    /// Ends what [`WorthSums::add`] began.
    pub fn remove(&self, bytes: u64, worth: f64) {
        self.0[class_of(worth)].fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes worth less than `worth` each; those in its own class are not counted, though some may be worth less.
    pub fn bytes_below(&self, worth: f64) -> u64 {
        self.0[..class_of(worth)].iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum()
    }
}

/// The class of a worth, in ascending order.
fn class_of(worth: f64) -> usize {
    let bits = i64::try_from(worth.max(0.0).to_bits() >> (MANTISSA_BITS - CLASSES_PER_OCTAVE_BITS));
    let least = (EXPONENT_BIAS + EXPONENT_MIN) << CLASSES_PER_OCTAVE_BITS;
    let class = bits.expect("fourteen bits") - least;
    class.clamp(0, CLASSES as i64 - 1) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nothing_that_is_worth_as_much_or_more_is_counted(
            parts in proptest::collection::vec((1_u64..1_000, -100_f64..0.0), 0..50),
            exponent in -100_f64..0.0,
        ) {
            let sums = WorthSums::default();
            let worth = exponent.exp2();
            parts.iter().for_each(|&(bytes, exponent)| sums.add(bytes, exponent.exp2()));
            let below = |limit: f64| -> u64 {
                parts.iter().filter(|(_, exponent)| exponent.exp2() < limit).map(|(bytes, _)| bytes).sum()
            };
            prop_assert!(sums.bytes_below(worth) <= below(worth));
            prop_assert!(sums.bytes_below(worth) >= below(worth / 1.25));
            parts.iter().for_each(|&(bytes, exponent)| sums.remove(bytes, exponent.exp2()));
            prop_assert_eq!(sums.bytes_below(f64::MAX), 0);
        }
    }

    #[test]
    fn extreme_worths_have_a_class() {
        for worth in [0.0, f64::MIN_POSITIVE, 1e-300, 1.0, 1e300, f64::INFINITY, f64::NAN] {
            let sums = WorthSums::default();
            sums.add(7, worth);
            sums.remove(7, worth);
            assert_eq!(sums.bytes_below(f64::INFINITY), 0);
        }
    }
}
