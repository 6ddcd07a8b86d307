//! Page fences: the page of a hashed key from nothing but the pages' boundaries, in a third of a bit per key.
//!
//! Keys of a hashed keyspace are uniform, so the first hash of every page of a sorted table is an evenly spread,
//! increasing sequence. [`PageFences`] cuts the table's range of hashes into `pages × 2^r` equal cells and keeps the
//! cell of every page's first key in an Elias-Fano list: `r + 2` bits a page, and a lookup is one predecessor search.
//! A key whose cell is also a boundary's cell may lie on either side of it. That happens for one lookup in `2^r`, and
//! costs a second page; with `r = 8` a table of 32 keys a page takes 0.33 bit/key and 1.004 pages per lookup. A writer
//! that ends its pages between two cells ([`PageFencesBuilder::cell_of`]) gets exactly one page for every lookup.
//!
//! [`SlotFences`] is the same list over slot numbers, for tables whose items lie in the order of their filter's slots
//! (SILT's HashStore, Lim et al., SOSP 2011, §3.2).
//!
//! This is our own rival to the sparse entropy-coded trie (`trie`). It answers in constant time and takes half the
//! space, but it relies on uniform hashes: clustered ones stay correct, with more pages per lookup. Not for semi-sorted
//! order.

mod builder;
pub(crate) mod cells;
mod pages;
mod slots;

pub use builder::PageFencesBuilder;
pub use pages::{PageFences, PageRange};
pub use slots::{SlotFences, SlotFencesBuilder};
