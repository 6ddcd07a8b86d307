//! Sizes of the index of a partition and of the cells in front of it, which grow with the items.

use crate::index::bucket::Bucket;
use crate::inline::InlineTable;
use crate::memory::UNIT_BYTES;

/// The sizes that the memory limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tables {
    /// Number of chains of the index.
    pub buckets: usize,
    /// Bytes of key and value of an item, on average.
    pub payload: usize,
    /// Number of inline buckets, 0 if there are no cells, and bytes of key and value that fit in a cell.
    pub inline_buckets: usize,
    pub cell_payload: usize,
}

/// Minimum bytes of an index with its inline table, if a larger one is allowed. Under the model checker so few that
/// most tests need no growth.
const TABLE_BYTES_MIN: usize = if cfg!(loom) { 2 * size_of::<Bucket>() } else { 64 << 10 };

/// Binary logarithm of the factor by which index and inline table grow.
const GROWTH_BITS: u32 = 2;

impl Tables {
    /// Bytes of an item in its region, on average.
    #[inline(always)]
    pub fn item_bytes(&self) -> usize {
        UNIT_BYTES + self.payload
    }

    /// The sizes of tables that have yet to grow `growths` times.
    pub fn before(self, growths: u32) -> Self {
        let before = |all: usize| if all == 0 { 0 } else { (all >> (GROWTH_BITS * growths)).max(1) };
        Self { buckets: before(self.buckets), inline_buckets: before(self.inline_buckets), ..self }
    }

    /// How often the tables of a partition that starts with `items` items should have yet to grow: as often as
    /// possible, provided that no bucket is likely to get more entries than fit.
    pub fn growths_for(&self, items: u64) -> u32 {
        let is_right = |growths: &u32| {
            let tables = self.before(*growths);
            let inline = match tables.inline_buckets {
                0 => 0,
                buckets => buckets * InlineTable::bucket_bytes(tables.cell_payload),
            };
            inline + tables.buckets * size_of::<Bucket>() >= TABLE_BYTES_MIN
                && items * 2 <= tables.buckets as u64
        };
        let most = usize::BITS / GROWTH_BITS;
        (0..most).rev().find(is_right).unwrap_or(0)
    }
}
