//! [`FilterBits`]: the bits of a key in the Bloom filter of a slot.

use alluvium_base::KeyHash;

/// Bits that a key sets. Six are best for 8 bits a key.
const PROBES: u32 = 6;

/// An odd number with as many ones as zeros.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// The bits of a key. Keys of one slot share leading bits of a half of their hashes, so the bits come from both halves,
/// mixed. Each probe mixes again: with double hashing, keys of small filters share whole sequences of bits, which would
/// cost a seventh more wrong answers.
#[derive(Clone, Copy, Debug)]
pub(super) struct FilterBits {
    mixed: u64,
    bits: u64,
}

impl FilterBits {
    /// The bits of a key of this hash in a filter of this many bytes.
    pub fn of(hash: KeyHash, filter_bytes: usize) -> Self {
        let mixed = (hash.high() ^ hash.low().rotate_left(32)).wrapping_mul(MIX);
        Self { mixed: mixed ^ (mixed >> 32), bits: 8 * filter_bytes as u64 }
    }

    fn places(self) -> impl Iterator<Item = (usize, u8)> {
        let probes = std::iter::successors(Some(self.mixed), |mixed| Some(mixed.wrapping_mul(MIX)));
        probes.take(PROBES as usize).map(move |at| {
            let bit = ((u128::from(at) * u128::from(self.bits)) >> 64) as usize;
            (bit / 8, 1 << (bit % 8))
        })
    }

    /// Whether a filter may have the key. One without bits may have any.
    pub fn are_in(self, filter: &[u8]) -> bool {
        self.bits == 0 || self.places().all(|(byte, mask)| filter[byte] & mask != 0)
    }

    pub fn add_to(self, filter: &mut [u8]) {
        if self.bits > 0 {
            self.places().for_each(|(byte, mask)| filter[byte] |= mask);
        }
    }
}
