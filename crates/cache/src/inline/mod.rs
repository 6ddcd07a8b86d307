//! Small items within the index: one access to memory instead of two that wait for each other.
//!
//! Items of one size need no place of their own: they lie in the cells of their bucket. A bucket's tags are so few
//! bytes that they mostly are in the processor's caches, and the cell in which an item lies if it can follows from its
//! hash, so it is loaded beside them. What a bucket has no cell for, what is larger, expires or has flags lies in the
//! logs ([decision 0041](../../../docs/decisions/0041-tiny-items-lie-in-their-bucket.md), and
//! [0043](../../../docs/decisions/0043-items-of-one-size-lie-in-cells.md)).

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

/// Bytes of key and value that cells have room for where items are said to be tiny on average.
pub(crate) const TINY_BYTES: usize = 16;
