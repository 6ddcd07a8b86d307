//! [`KeyBits`]: what the encoder needs from a key.

/// The bits of a key, the highest first. Keys of one bucket are sorted and differ.
pub(super) trait KeyBits: Copy {
    /// Number of leading bits that two different keys share.
    fn common_bits(self, other: Self) -> u32;

    /// Whether the bit after the first `depth` is clear.
    fn bit_is_clear(self, depth: u32) -> bool;

    /// The key with all bits inverted; the order of such keys is reversed.
    fn mirrored(self) -> Self;
}

/// The place of a key within its bucket, as a fraction of 2^64.
impl KeyBits for u64 {
    #[inline(always)]
    fn common_bits(self, other: Self) -> u32 {
        (self ^ other).leading_zeros()
    }

    #[inline(always)]
    fn bit_is_clear(self, depth: u32) -> bool {
        (self << depth) >> 63 == 0
    }

    #[inline(always)]
    fn mirrored(self) -> Self {
        !self
    }
}

/// A key of a bucket in which places tie: place, low half of the hash, and for keys of one hash their number, so that
/// all differ. A lookup continues with zeros after the hash and finds the first of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WideKey {
    hash: u128,
    number: u64,
}

impl WideKey {
    /// The keys of a bucket, given by their places and the low halves of their hashes.
    pub(super) fn of_bucket(places: &[u64], lows: &[u64]) -> Vec<Self> {
        let mut keys: Vec<Self> = Vec::with_capacity(places.len());
        for (&place, &low) in places.iter().zip(lows) {
            let hash = u128::from(place) << 64 | u128::from(low);
            let number = match keys.last() {
                Some(before) if before.hash == hash => before.number + 1,
                _ => 0,
            };
            keys.push(Self { hash, number });
        }
        keys
    }
}

impl KeyBits for WideKey {
    fn common_bits(self, other: Self) -> u32 {
        match (self.hash ^ other.hash).leading_zeros() {
            128 => 128 + (self.number ^ other.number).leading_zeros(),
            bits => bits,
        }
    }

    fn bit_is_clear(self, depth: u32) -> bool {
        match depth.checked_sub(128) {
            Some(depth) => (self.number << depth) >> 63 == 0,
            None => (self.hash << depth) >> 127 == 0,
        }
    }

    fn mirrored(self) -> Self {
        Self { hash: !self.hash, number: !self.number }
    }
}
