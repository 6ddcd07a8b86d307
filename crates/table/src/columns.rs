//! [`Columns`]: the parts of a range of hashes whose filters are stored together.

use alluvium_base::KeyHash;

/// The division of a range of hashes into columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// Number of the first column, counted over all hashes.
    pub first: u64,
    pub count: u64,
    /// Number of hash bits after those that determine the column, less than 64.
    pub shift: u32,
}

impl Columns {
    /// Columns of the hashes of this range.
    pub fn new((low, high): (u64, u64), shift: u32) -> Self {
        Self { first: low >> shift, count: ((high >> shift) - (low >> shift)).saturating_add(1), shift }
    }

    /// Columns of approximately `column_items` items each, for `items` items in all.
    pub fn for_items((low, high): (u64, u64), items: u64, column_items: u64) -> Self {
        let columns = items.div_ceil(column_items).max(1);
        let width = ((high - low) / columns).max(1);
        // The nearest power of two: 0.7 to 1.4 times as many items.
        let shift = (width as f64).log2().round() as u32;
        Self::new((low, high), shift.min(63))
    }

    /// The column of a hash of the range.
    #[inline]
    pub fn column(&self, hash: KeyHash) -> u64 {
        (hash.high() >> self.shift).wrapping_sub(self.first)
    }
}
