//! Position of the k-th one or zero in a bit vector, helped by samples.

use super::packed::PackedInts;

/// Log2 of how many ones lie between two samples: access is the rarer operation.
const ONES_LOG2: u32 = 8;

/// Log2 of how many zeros lie between two samples. A sample of 20 bits then costs 0.3 bit a zero.
const ZEROS_LOG2: u32 = 6;

/// Sampled positions of every 256th set bit of a vector of words, or of every 64th clear one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SelectSamples<const ONES: bool> {
    positions: PackedInts,
}

impl<const ONES: bool> SelectSamples<ONES> {
    const LOG2: u32 = if ONES { ONES_LOG2 } else { ZEROS_LOG2 };

    /// Samples the first `length` bits of `words`. One pass.
    pub(super) fn new(words: &[u64], length: u64) -> Self {
        let width = u64::BITS - length.leading_zeros();
        let mut positions = PackedInts::new(width);
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
            let ones = u64::from(bits.count_ones());
            let wanted = positions.len() << Self::LOG2;
            if wanted < seen + ones {
                positions.push(base + u64::from(select_in_word(bits, (wanted - seen) as u32)));
            }
            seen += ones;
        }
        positions.shrink_to_fit();
        Self { positions }
    }

    /// Position of bit number `rank`, from 0, among the set (or clear) bits. The caller keeps `rank` below their
    /// number; above it, some position at or beyond the end of the words.
    #[inline]
    pub(super) fn select(&self, words: &[u64], rank: u64) -> u64 {
        let sample = self.positions.get(rank >> Self::LOG2);
        let mut left = rank & ((1 << Self::LOG2) - 1);
        let mut index = (sample / 64) as usize;
        let mut skip = u64::MAX << (sample % 64);
        while let Some(&word) = words.get(index) {
            let bits = (if ONES { word } else { !word }) & skip;
            let ones = u64::from(bits.count_ones());
            if left < ones {
                return index as u64 * 64 + u64::from(select_in_word(bits, left as u32));
            }
            left -= ones;
            index += 1;
            skip = u64::MAX;
        }
        words.len() as u64 * 64
    }

    /// Bytes of the samples.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.positions.memory_bytes()
    }
}

const IN_BYTE: [[u8; 256]; 8] = in_byte();

const fn in_byte() -> [[u8; 256]; 8] {
    let mut table = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut rank) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                table[rank][byte] = bit;
                rank += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
}

/// Position of set bit number `rank` of `word`, by byte sums in one word (Vigna 2008, "Broadword implementation of
/// rank/select queries"). `rank` is below the number of set bits.
#[inline]
fn select_in_word(word: u64, rank: u32) -> u32 {
    const STEP: u64 = 0x0101_0101_0101_0101;
    const TOP: u64 = 0x8080_8080_8080_8080;
    let pairs = word - ((word >> 1) & (STEP * 0x55));
    let nibbles = (pairs & (STEP * 0x33)) + ((pairs >> 2) & (STEP * 0x33));
    let sums = ((nibbles + (nibbles >> 4)) & (STEP * 0x0f)).wrapping_mul(STEP);
    let full_bytes = ((((u64::from(rank) * STEP) | TOP).wrapping_sub(sums)) & TOP) >> 7;
    let place = ((full_bytes.wrapping_mul(STEP) >> 56) as u32 * 8).min(56);
    let before = ((sums << 8) >> place & 0xff) as u32;
    let byte = (word >> place & 0xff) as usize;
    place + u32::from(IN_BYTE[(rank - before.min(rank)) as usize & 7][byte])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn select_in_word_agrees_with_counting(word: u64) {
            let ones: Vec<u32> = (0..64).filter(|bit| word >> bit & 1 == 1).collect();
            for (rank, &position) in ones.iter().enumerate() {
                prop_assert_eq!(select_in_word(word, rank as u32), position);
            }
        }

        #[test]
        fn select_agrees_with_counting(words in prop::collection::vec(
            prop_oneof![Just(0u64), Just(u64::MAX), any::<u64>()], 0..40)) {
            let length = words.len() as u64 * 64;
            let ones = SelectSamples::<true>::new(&words, length);
            let zeros = SelectSamples::<false>::new(&words, length);
            let (mut one, mut zero) = (0, 0);
            for position in 0..length {
                if words[(position / 64) as usize] >> (position % 64) & 1 == 1 {
                    prop_assert_eq!(ones.select(&words, one), position);
                    one += 1;
                } else {
                    prop_assert_eq!(zeros.select(&words, zero), position);
                    zero += 1;
                }
            }
        }
    }

    #[test]
    fn all_ones_is_the_widest_sum() {
        for rank in 0..64 {
            assert_eq!(select_in_word(u64::MAX, rank), rank);
        }
    }
}
