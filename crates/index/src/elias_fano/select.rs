//! Finds the position of the k-th one or zero in a bit vector with the help of samples.

use super::near_linear::NearLinearList;
use crate::broadword::select_in_word;
use crate::processor::Processor;

/// Log2 of the number of ones between two samples: access is the rarer operation.
const ONES_LOG2: u32 = 8;

/// Log2 of the number of zeros between two samples. With as many ones as zeros, 64 bits nearly always hold the rest.
const ZEROS_LOG2: u32 = 4;

/// Sampled positions of every 256th set bit of a vector of words, or of every 16th clear one: 5 to 7 bits a sample for
/// evenly spread bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SelectSamples<const ONES: bool> {
    positions: NearLinearList,
}

impl<const ONES: bool> SelectSamples<ONES> {
    const LOG2: u32 = if ONES { ONES_LOG2 } else { ZEROS_LOG2 };

    /// Samples the first `length` bits of `words`. One pass; holds 8 bytes a sample meanwhile.
    pub(super) fn new(words: &[u64], length: u64) -> Self {
        let mut positions = Vec::new();
        let mut seen = 0u64;
        for (index, &word) in words.iter().enumerate() {
            let base = index as u64 * 64;
            if base >= length {
                break;
            }
            let mut bits = if ONES { word } else { !word };
            if length - base < 64 {
                bits &= (1 << (length - base)) - 1;
            }
            let found = u64::from(bits.count_ones());
            let mut wanted = (positions.len() as u64) << Self::LOG2;
            while wanted < seen + found {
                positions.push(base + u64::from(select_in_word(bits, (wanted - seen) as u32)));
                wanted += 1 << Self::LOG2;
            }
            seen += found;
        }
        let last = positions.last().copied().unwrap_or(0);
        Self { positions: NearLinearList::new(positions.iter().copied(), positions.len() as u64, last) }
    }

    /// Position of bit number `rank`, from 0, among the set (or clear) bits. `rank` must be below their number;
    /// otherwise the position is unspecified.
    ///
    /// Where the samples are dense enough, the 64 bits after one hold the bit, and nothing is mispredicted.
    #[inline(always)]
    pub(super) fn select(&self, processor: impl Processor, words: &[u64], rank: u64) -> u64 {
        let sample = self.positions.get(rank >> Self::LOG2);
        let left = (rank & ((1 << Self::LOG2) - 1)) as u32;
        let bits = bits_from::<ONES>(words, sample);
        if left >= bits.count_ones() {
            return select_from::<ONES>(words, sample, left);
        }
        sample + u64::from(processor.select_in_word(bits, left))
    }

    /// Bytes of the samples.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.positions.memory_bytes()
    }
}

/// The 64 bits from `position` on, inverted for clear bits; none are set beyond the end.
#[inline(always)]
fn bits_from<const ONES: bool>(words: &[u64], position: u64) -> u64 {
    let index = (position / 64) as usize;
    let shift = (position % 64) as u32;
    let beyond = if ONES { 0 } else { u64::MAX };
    let low = words.get(index).copied().unwrap_or(beyond);
    let high = words.get(index.wrapping_add(1)).copied().unwrap_or(beyond);
    let bits = low >> shift | high << 1 << (63 - shift);
    if ONES { bits } else { !bits }
}

/// Position of bit number `left` from `position` on; the end of the words if there is none.
#[cold]
#[inline(never)]
fn select_from<const ONES: bool>(words: &[u64], position: u64, mut left: u32) -> u64 {
    let mut keep = u64::MAX << (position % 64);
    for (index, &word) in words.iter().enumerate().skip((position / 64) as usize) {
        let bits = (if ONES { word } else { !word }) & keep;
        let found = bits.count_ones();
        if left < found {
            return index as u64 * 64 + u64::from(select_in_word(bits, left));
        }
        left -= found;
        keep = u64::MAX;
    }
    words.len() as u64 * 64
}

/// Position of the last one before `position`; 0 if there is none.
#[inline]
pub(super) fn one_before(words: &[u64], position: u64) -> u64 {
    let mut index = (position / 64) as usize;
    let mut keep = !(u64::MAX << (position % 64));
    loop {
        let bits = words.get(index).copied().unwrap_or(0) & keep;
        if bits != 0 {
            return index as u64 * 64 + u64::from(63 - bits.leading_zeros());
        }
        if index == 0 {
            return 0;
        }
        index -= 1;
        keep = u64::MAX;
    }
}

/// Position of the first one at or after `position`; the end of the words if there is none.
#[inline]
pub(super) fn next_one(words: &[u64], position: u64) -> u64 {
    let mut index = (position / 64) as usize;
    let mut keep = u64::MAX << (position % 64);
    while let Some(&word) = words.get(index) {
        let bits = word & keep;
        if bits != 0 {
            return index as u64 * 64 + u64::from(bits.trailing_zeros());
        }
        index += 1;
        keep = u64::MAX;
    }
    words.len() as u64 * 64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processor::Portable;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn select_agrees_with_counting(words in prop::collection::vec(
            prop_oneof![Just(0u64), Just(u64::MAX), any::<u64>()], 0..40)) {
            let length = words.len() as u64 * 64;
            let ones = SelectSamples::<true>::new(&words, length);
            let zeros = SelectSamples::<false>::new(&words, length);
            let (mut one, mut zero) = (0, 0);
            for position in 0..length {
                if words[(position / 64) as usize] >> (position % 64) & 1 == 1 {
                    prop_assert_eq!(ones.select(Portable, &words, one), position);
                    one += 1;
                } else {
                    prop_assert_eq!(zeros.select(Portable, &words, zero), position);
                    zero += 1;
                }
            }
        }
    }
}
