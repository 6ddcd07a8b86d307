//! BloomCluster: the Bloom filters of one bucket in all runs side by side, so that one request reads them all
//! (LSM-trie, Wu, Xu, Shao, Jiang, USENIX ATC 2015; X. Wu's thesis, §4.2.4.3).
//!
//! A key is in the same bucket of every run of its container. The filters of a bucket in all runs are its *column*:
//!
//! ```text
//!              bucket 0     bucket 1     bucket 2
//!   run 0    [ filter ]   [ filter ]   [ filter ]
//!   run 1    [ filter ]   [ filter ]   [ filter ]      a column: one run of bytes, read in one request
//!   run 2    [ filter ]   [ filter ]   [ filter ]
//! ```
//!
//! There are two forms of the same bytes. A [`BloomCluster`] holds them in memory. On flash they are stored in a file
//! of the caller's: a [`ClusterWriter`] produces them column by column, and a [`ClusterDirectory`] in memory records
//! where each column is. With [`Packing::Pages`] no column touches more pages of 4 KiB than its length needs: at 33
//! items a bucket and 16 bits an item, one page for up to 56 runs and two for up to 112.
//!
//! The size of a filter follows from the number of items that its bucket has in its run, so a bucket's load does not
//! change its false positive rate, and runs may differ in bits per item.
//!
//! # Figures
//!
//! 16.3 bits an item, lengths and checksum included. A fraction of 0.6185^bits of absent keys pass a filter (Table 4.1
//! counts 4.59 % for 100 runs at 16 bits); with filters of only 33 items, 4.1 %. `bench index --structure
//! bloom-cluster` measures it and compares it with the table. A lookup in 112 runs takes 1.3 microseconds.
//!
//! # Where we differ
//!
//! - Each of a key's probes uses hash bits of its own. With the usual scheme, multiples of two numbers, a filter of 528
//!   bits would pass 1.5 times as many absent keys.
//! - Each filter is built with both of two sets of probes, and the one with fewer set bits is kept: one bit for each
//!   filter removes a tenth of the false positives.
//! - The paper's BloomCluster is a block of its own in a file of many; ours is a contiguous file section, so that one
//!   sequential rewrite appends to all of a container's filters.
//!
//! # Bytes of a column
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 8 | `checksum64` of all bytes behind it up to the last filter, seeded with the number of the bucket |
//! | 8 | 1 | probes of a key, 1 to 24 |
//! | 9 | 1 | runs, 0 to 255 |
//! | 10 | 2 | n, little endian |
//! | 12 | s | a bit for each run, old to young, lowest bit first: whether its filter uses the second set of probes |
//! | 12 + s | n | varint for each run: bytes of its filter; 0 when the bucket has no item in it |
//! | 12 + s + n | m | the filters |
//!
//! A key's probe `i` is bit `value[i] × bits / 2^32` of a filter, the lowest bit of a byte first; `probes` says how the
//! values follow from the key's hash. Zeros may follow a column, up to the end of a page.

mod cluster;
mod column;
mod directory;
mod probes;
mod run_set;
mod writer;

pub use cluster::BloomCluster;
pub use column::{Column, ColumnBuilder, RUNS_MAX};
pub use directory::{ClusterDirectory, ColumnRange};
pub use probes::Probes;
pub use run_set::RunSet;
pub use writer::{ClusterWriter, Packing};
