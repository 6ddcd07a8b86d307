//! Page fences: find the page of a hashed key from the pages' boundaries alone, in a third of a bit per key.
//!
//! Keys of a hashed keyspace are uniform, so the first hash of every page of a sorted table is an evenly spread,
//! increasing sequence. [`PageFences`] cuts the table's range of hashes into `pages × 2^r` equal cells and stores the
//! cell of every page's boundary in an Elias-Fano list: `r + 2.3` bits a page, and a lookup is one predecessor search.
//! A key in the same cell as a boundary may be on either side of it and costs a second page, unless the fences are
//! *aligned*: if no two pages share a cell, a boundary's cell belongs to the page after it.
//!
//! With `r = 8` and 32 keys a page that is 0.33 bit/key, and per lookup of a present key
//! - 1 page when the writer ends pages between two cells ([`PageFencesBuilder::cell_of`]): about one page in seventeen
//!   then ends one key early or late;
//! - 1.008 pages when it does not, but passes the last hash of each page ([`PageFencesBuilder::push_page_after`]);
//! - 1.035 when only the first hashes are known.
//!
//! A lookup of an absent key needs 1.004 pages in the last two cases.
//!
//! [`SlotFences`] is the same list over slot numbers, for tables whose items are in the order of their filter's slots
//! (SILT's HashStore, Lim et al., SOSP 2011, §3.2).
//!
//! This is our own alternative to the sparse entropy-coded trie (`trie`). It answers in constant time and takes half
//! the space, but it relies on uniform hashes: clustered ones stay correct, with more pages per lookup. Not for
//! semi-sorted order.

mod builder;
pub(crate) mod cells;
mod pages;
mod slots;

pub use builder::PageFencesBuilder;
pub use pages::{PageFences, PageRange};
pub use slots::{SlotFences, SlotFencesBuilder};
