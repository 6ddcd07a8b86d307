//! Selects bits by arithmetic on whole words, for processors without an instruction for it.

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
/// rank/select queries"). `rank` must be below the number of set bits; otherwise the position has no meaning.
#[inline(always)]
pub(crate) fn select_in_word(word: u64, rank: u32) -> u32 {
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
    use crate::processor::{Processor, Work, specialized};
    use proptest::prelude::*;

    struct Select(u64, u32);

    impl Work for Select {
        type Output = u32;

        #[inline(always)]
        fn run(self, processor: impl Processor) -> u32 {
            processor.select_in_word(self.0, self.1)
        }
    }

    proptest! {
        #[test]
        fn select_in_word_agrees_with_counting(word: u64) {
            let ones: Vec<u32> = (0..64).filter(|bit| word >> bit & 1 == 1).collect();
            for (rank, &position) in ones.iter().enumerate() {
                prop_assert_eq!(select_in_word(word, rank as u32), position);
                prop_assert_eq!(specialized(Select(word, rank as u32)), position);
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
