//! Tiny items within the index: one access to memory instead of two that wait for each other.
//!
//! An item of up to sixteen bytes of key and value needs no place of its own: it lies in its bucket, whose lines are
//! loaded side by side, and takes 21 bytes of a full bucket instead of 36. What a bucket has no cell for, what is
//! larger, expires or has flags lies in the logs
//! ([decision 0041](../../../docs/decisions/0041-tiny-items-lie-in-their-bucket.md)).

mod bucket;
mod cell;
mod table;
#[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
mod tags;

pub(crate) use bucket::{CELLS, InlineBucket};
pub(crate) use cell::{CELL_BYTES, Cell};
pub(crate) use table::InlineTable;
