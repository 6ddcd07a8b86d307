//! [`Cells`]: a range of hashes cut into equal cells by one multiplication.

use alluvium_base::Corruption;

use crate::elias_fano::wire::{WireReader, WireWriter};

/// Maximum number of cells of a range.
pub(crate) const CELLS_MAX: u64 = 1 << 48;

/// The hashes from `low` to `high`, both included, cut into `count` cells of equal size up to rounding.
///
/// The number of cells need not be a power of two, so a structure gets the mean occupancy it asks for. The high word
/// of the product of hash and scale is the cell; its low word is the position within the cell, which preserves the
/// order and the difference of hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cells {
    low: u64,
    high: u64,
    count: u64,
    shift: u32,
    scale: u64,
}

impl Cells {
    /// Cuts the range `low..=high` into `count` cells; `count` is clamped to `1..=2^48`.
    ///
    /// # Panics
    /// When `low` is above `high`.
    pub(crate) fn new(low: u64, high: u64, count: u64) -> Self {
        assert!(low <= high, "a range of hashes from {low:#x} to {high:#x} is empty");
        let count = count.clamp(1, CELLS_MAX);
        let span = high - low;
        let shift = span.leading_zeros().min(63);
        // At least 2^63, at most 2^64 for every span but 0, so the scale stays below 2^50.
        let width = (u128::from(span) + 1) << shift;
        let scale = ((u128::from(count) << 64) / width) as u64;
        Self { low, high, count, shift, scale }
    }

    /// Number of cells.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Whether `hash` is in the range.
    pub(crate) fn contains(&self, hash: u64) -> bool {
        (self.low..=self.high).contains(&hash)
    }

    /// The cell of `hash` and its position within the cell as a fraction of 2^64. Hashes outside the range count as
    /// its nearest end. Order-preserving; different hashes differ in cell or position.
    #[inline]
    pub(crate) fn locate(&self, hash: u64) -> (u64, u64) {
        let offset = (hash.clamp(self.low, self.high) - self.low) << self.shift;
        let product = u128::from(offset) * u128::from(self.scale);
        ((product >> 64) as u64, product as u64)
    }

    /// The cell of `hash`.
    #[inline]
    pub(crate) fn cell(&self, hash: u64) -> u64 {
        self.locate(hash).0
    }

    /// Appends range and count, three words.
    pub(crate) fn write(&self, writer: &mut WireWriter) {
        writer.word(self.low);
        writer.word(self.high);
        writer.word(self.count);
    }

    /// Reads what [`write`](Self::write) wrote.
    pub(crate) fn read(reader: &mut WireReader<'_>) -> Result<Self, Corruption> {
        let low = reader.word()?;
        let high = reader.word()?;
        if low > high {
            return Err(reader.corruption(format!("a last hash of at least {low:#x}"), format!("{high:#x}")));
        }
        let count = reader.word_up_to(CELLS_MAX, "a number of cells")?;
        if count == 0 {
            return Err(reader.corruption("at least one cell", "none"));
        }
        Ok(Self::new(low, high, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn cells_keep_order_and_tell_hashes_apart(
            ends: (u64, u64), shift in 0u32..64, count in 1u64..1 << 40, hashes: (u64, u64), near in 0u64..3,
        ) {
            let low = ends.0.min(ends.1);
            let high = low.saturating_add((ends.0.max(ends.1) - low) >> shift);
            let cells = Cells::new(low, high, count);
            let span = u128::from(high - low) + 1;
            let place = |hash: u64| low + (u128::from(hash) % span) as u64;
            let (first, second) = (place(hashes.0), place(hashes.0).saturating_add(near).min(high));
            for (a, b) in [(first, second), (first, place(hashes.1))] {
                prop_assert_eq!(a.cmp(&b), cells.locate(a).cmp(&cells.locate(b)));
                prop_assert!(cells.cell(a) < count);
            }
            prop_assert_eq!(cells.cell(low), 0);
        }
    }

    #[test]
    fn a_range_of_one_hash_is_one_position() {
        let cells = Cells::new(7, 7, 100);
        assert_eq!(cells.locate(7), (0, 0));
        assert_eq!(cells.locate(u64::MAX), (0, 0));
    }
}
