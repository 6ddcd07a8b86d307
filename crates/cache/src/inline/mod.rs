//! Small items stored in the index: one access to memory instead of two dependent ones.
//!
//! Items of one size need no position of their own: they are stored in the cells of their bucket. A bucket's tags take
//! so few bytes that they are mostly in the processor's caches, and an item's preferred cell follows from its hash, so
//! the cell is loaded at the same time as the tags. Items for which a bucket has no cell, and items that are larger,
//! expire or have flags, are stored in the logs ([decision
//! 0041](../../../docs/decisions/0041-tiny-items-in-their-bucket.md), and
//! [0043](../../../docs/decisions/0043-items-of-one-size-in-cells.md)).

mod bucket;
mod cells;
mod spot;
mod table;
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod tags;

pub(crate) use bucket::{CELLS, InlineBucket};
pub(crate) use cells::{CELL_BYTES_MAX, Cell};
pub(crate) use spot::Spot;
pub(crate) use table::InlineTable;

/// Bytes of key and value that fit in a cell if items are configured to be tiny on average.
pub(crate) const TINY_BYTES: usize = 16;
