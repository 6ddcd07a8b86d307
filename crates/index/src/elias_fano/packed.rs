//! [`PackedInts`]: numbers of one fixed width, without gaps.

/// Maximum number of numbers that [`PackedInts::compare_before`] compares.
pub(super) const LANES: u64 = 4;

/// Maximum number of bits of each of them, so that one word holds all.
pub(super) const LANE_BITS_MAX: u32 = 64 / LANES as u32;

/// Numbers of `width` bits each, 0 to 64, packed into words from the lowest bit up. Costs `width` bits a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PackedInts {
    words: Vec<u64>,
    width: u32,
    count: u64,
}

impl PackedInts {
    /// An empty array of numbers of `width` bits.
    pub(crate) fn new(width: u32) -> Self {
        assert!(width <= 64, "numbers have at most 64 bits");
        Self { words: Vec::new(), width, count: 0 }
    }

    /// An empty array with room for `count` numbers.
    pub(crate) fn with_capacity(width: u32, count: u64) -> Self {
        let mut ints = Self::new(width);
        ints.words.reserve_exact(Self::word_count(width, count).unwrap_or(0));
        ints
    }

    /// Number of words for `count` numbers, or `None` if that length is impossible.
    pub(crate) fn word_count(width: u32, count: u64) -> Option<usize> {
        let bits = count.checked_mul(u64::from(width))?;
        usize::try_from(bits.div_ceil(64)).ok()
    }

    /// From words that hold exactly `count` numbers. Returns `None` if the words are too few or too many, or if bits
    /// beyond the last number are set.
    pub(crate) fn from_words(words: Vec<u64>, width: u32, count: u64) -> Option<Self> {
        if width > 64 || Self::word_count(width, count)? != words.len() {
            return None;
        }
        let used = (count * u64::from(width)) % 64;
        if used != 0 && words.last().is_some_and(|last| last >> used != 0) {
            return None;
        }
        Some(Self { words, width, count })
    }

    /// Number of numbers.
    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    /// Bits of a number.
    pub(crate) fn width(&self) -> u32 {
        self.width
    }

    /// The words, for storing.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }

    /// Bytes of the words.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.words.capacity() * size_of::<u64>()) as u64
    }

    /// Appends the low `width` bits of `value`.
    pub(crate) fn push(&mut self, value: u64) {
        if self.width == 0 {
            self.count += 1;
            return;
        }
        let value = value & mask(self.width);
        let used = (self.count * u64::from(self.width)) % 64;
        if used == 0 {
            self.words.push(value);
        } else {
            if let Some(last) = self.words.last_mut() {
                *last |= value << used;
            }
            if used + u64::from(self.width) > 64 {
                self.words.push(value >> (64 - used));
            }
        }
        self.count += 1;
    }

    /// Frees unused capacity.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.words.shrink_to_fit();
    }

    /// Number `index`; 0 beyond the end.
    #[inline(always)]
    pub(crate) fn get(&self, index: u64) -> u64 {
        let bit = index * u64::from(self.width);
        let word = (bit / 64) as usize;
        let shift = (bit % 64) as u32;
        let low = self.words.get(word).copied().unwrap_or(0);
        // No branch on whether the number crosses words: it would be mispredicted as often as one crosses.
        let high = self.words.get(word + 1).copied().unwrap_or(0);
        let bits = low >> shift | high << 1 << (63 - shift);
        bits & mask(self.width)
    }

    /// Among the `count` numbers before number `after`: how many are above `value`, and how many equal it. At most
    /// [`LANES`] numbers of at most [`LANE_BITS_MAX`] bits: all are compared at once, without a branch.
    #[inline(always)]
    pub(super) fn compare_before(&self, after: u64, count: u64, value: u64) -> (u64, u64) {
        let mut window = read_before(&self.words, after * u64::from(self.width));
        let (mut above, mut equal) = (0, 0);
        for lane in 0..LANES {
            let found = window >> 1 >> (63 - self.width);
            let counts = lane < count;
            above += u64::from(counts & (found > value));
            equal += u64::from(counts & (found == value));
            window <<= self.width;
        }
        (above, equal)
    }
}

/// The 64 bits before position `end`, the last one highest; zeros beyond both ends.
#[inline(always)]
pub(super) fn read_before(words: &[u64], end: u64) -> u64 {
    let word = (end / 64) as usize;
    let shift = (end % 64) as u32;
    let high = words.get(word).copied().unwrap_or(0);
    let low = words.get(word.wrapping_sub(1)).copied().unwrap_or(0);
    high << (63 - shift) << 1 | low >> shift
}

#[inline(always)]
fn mask(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(width in 0u32..=64, values in prop::collection::vec(any::<u64>(), 0..200)) {
            let mut ints = PackedInts::with_capacity(width, values.len() as u64);
            for &value in &values {
                ints.push(value);
            }
            prop_assert_eq!(ints.len(), values.len() as u64);
            for (index, &value) in values.iter().enumerate() {
                prop_assert_eq!(ints.get(index as u64), value & mask(width));
            }
            let again = PackedInts::from_words(ints.words().to_vec(), width, ints.len());
            prop_assert_eq!(again, Some(ints));
        }
    }

    #[test]
    fn wrong_lengths_and_stray_bits_are_refused() {
        assert_eq!(PackedInts::from_words(vec![0], 7, 10), None);
        assert_eq!(PackedInts::from_words(vec![0b1000], 3, 1), None);
        assert_eq!(PackedInts::from_words(vec![], 64, u64::MAX), None);
        assert!(PackedInts::from_words(vec![0b111], 3, 1).is_some());
    }
}
