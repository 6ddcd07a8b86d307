//! Three-level block index: the page of a key (prefix, suffix) in a semi-sorted table, in less than a bit a key.
//!
//! Source: SlimDB (Ren, Zheng, Arulraj, Gibson, VLDB 2017, §3.1). Items are ordered by the hash of their prefix, then
//! by that of their suffix, so the items of a prefix, a *group*, are adjacent and a scan of them reads adjacent pages.
//!
//! ```text
//!   hash of the prefix ──► 1. entropy-coded trie ──► cell ──► 2. where cells begin ──► pages first ..= last
//!                                                                                          │ one page: found
//!   hash of the suffix ──────────────────────► 3. what separates those pages' suffixes ◄──┘
//! ```
//!
//! 1. A trie over the table's different prefixes (see `trie`). If groups have four items and more, it separates all
//!    prefixes; if they have fewer, only groups in different pages (a sparse trie), so that a table of unique prefixes
//!    takes 1.4 bits a key and not 3. Either gives a *cell*: a group, or groups of one page.
//! 2. The beginnings of cells, as distances from a straight line or as an Elias-Fano list, whichever is smaller. They
//!    also say whether a page begins with the cell, which gives its last page. A group may have any number of pages,
//!    and a table may hold a piece of a group that continues in other tables.
//! 3. For each boundary of pages within a group its separator, the shortest string of bits between the two suffixes
//!    (see [`SuffixCode`]): as an array, 4 bits and a log2 of the group's items each, or as a trie for each group,
//!    9 bits each.
//!
//! # Where we differ from SlimDB
//!
//! - Its first level holds the first and last prefixes of pages and its third the last suffixes of pages, in tries that
//!   find the rank of keys that they *hold*. Most keys of a table are neither first nor last in a page, and for them
//!   such a trie gives the rank of some key with the same leading bits, not of the next one. So our first level holds
//!   all prefixes (or stops where they share a page), and our tries of suffixes say on which side of each separator
//!   any suffix is. This takes more than the 2.5 bits a page that the paper counts, and is exact.
//! - Separators of an array are coded by the frequency of their lengths, not with six bits for each length.
//! - If items with one hash are in several pages (hash collisions, of which 2^64 suffixes of a large group have some),
//!   a lookup returns all these pages.
//!
//! # Figures
//!
//! SlimDB's tables (148,639 items, 17 a page; Table 3), bit/key:
//!
//! | | groups of 16 | of 32 | of 64 | Zipf, up to 8,000 |
//! |---|---|---|---|---|
//! | SlimDB | 2.56 | 1.94 | 1.57 | 1.56 |
//! | partial suffixes | 0.83 | 0.73 | 0.73 | 1.02 |
//! | tries of suffixes | 0.89 | 0.78 | 0.75 | 0.63 |
//!
//! A lookup takes 150 to 350 ns on a core of 2.8 GHz; `bench index --structure three-level` measures it.
//!
//! # Bytes
//!
//! Little-endian 64-bit words; a *nested* structure is its length in bytes, then its bytes:
//!
//! | words | content |
//! |---|---|
//! | 1 | kind, `0x314c_5645_4c33_4c53` |
//! | n | nested: the trie of prefixes (see `trie`), each as a hash with this high half and a low half of 0 |
//! | 1 | number of pages in which items begin |
//! | 1 + n | beginnings of cells: 0, then a list near a line (as in `trie`), or 1, then a nested Elias-Fano list |
//! | n | nested Elias-Fano list: boundaries, each by the page before, on both sides of which there is one hash |
//! | n | nested Elias-Fano list: numbers of the pages; empty when they are 0, 1, 2 ... |
//! | 1 | form of the third level: 0 partial suffixes, 1 tries |
//! | n | partial suffixes: low bits of a rank, 66 symbols by rank in bytes and six zeros, positions, code |
//! | n | tries: log2 of cells between positions, usual bits of a lone separator, positions near a line, code |
//! | 1 | XXH3-64 of everything before, seeded with the kind |
//!
//! The beginning of a cell is twice its page, plus 1 within a page; the list ends with twice the number of pages. The
//! positions of partial suffixes are those of every eighth boundary, near a line.

mod builder;
mod config;
mod cursor;
mod groups;
mod index;
mod partial;
mod separator;
mod suffix_trie;
mod suffixes;

pub use builder::ThreeLevelBuilder;
pub use config::{SuffixCode, ThreeLevelConfig};
pub use index::ThreeLevelIndex;
