//! Partial-key cuckoo hash table: the index of the log, 6 bytes an entry (SILT, SOSP 2011, §3.1).
//!
//! Maps a key's hash to the 32-bit offset of its record without storing key or hash: a bucket has four ways, each with
//! a 15-bit tag (0 means empty) and an offset. A key may be in either of two buckets. The tag alone gives one from the
//! other, `alternative = (h(tag) - bucket) mod n`, so entries can be displaced without reading their keys from flash.
//! A lookup compares eight tags; every match is a candidate that the caller checks against the record.
//!
//! ```text
//!   hash.low()   63           32 31     15 14        0        hash.high() is left to shards and pages
//!               [ primary bucket | unused |    tag    ]
//!
//!   tags     bucket 0: [tag 3|tag 2|tag 1|tag 0]   bucket 1: ...      one atomic u64 a bucket
//!   offsets  bucket 0: [offset 0][offset 1][offset 2][offset 3] ...   one atomic u32 a slot; slot = 4 bucket + way
//! ```
//!
//! # Figures
//!
//! | what | formula | at 95 % |
//! |---|---|---|
//! | memory | 48 bit / occupancy | 50.5 bit/key |
//! | false candidates of an absent key | 8 × occupancy / 32767 | 0.0232 % |
//! | occupancy when the first key finds no room | | 97.7 % with 16 Ki entries, 97.3 % with 1 Mi |
//! | insertion while filling to 95 %, table in the second-level cache | | 14 ns |
//! | lookup in batches, 64 tables of 16 Ki entries in one order, or in random order | | 19 ns, 24 ns |
//! | lookup one by one in random order; of an absent key | | 37 ns; 18 ns |
//!
//! Times are from one virtual core of a recent server processor; SILT reports 93 %, 98 ns and 543 ns on one of 2009.
//! `bench index` measures them all.
//!
//! # Where we differ from SILT
//!
//! - SILT's tag *is* the alternative bucket, which ties 15-bit tags to at most 2^15 buckets, a power of two. Here the
//!   tag is an independent slice of the hash and selects the pair's sum, so that any number of buckets up to 2^30
//!   works.
//! - SILT walks at random for up to 128 displacements and must undo them on failure. Here the path is searched breadth
//!   first, before anything moves: at most five moves, nothing to undo, and 97 % instead of 93 % occupancy.
//! - A new entry goes to the emptier of its buckets, so that only a tenth of the insertions need any displacement.
//! - Readers take no lock and run beside the one writer: see `versions`.
//!
//! # Limits
//!
//! At most eight entries of equal tag and buckets; at most 2^32 - 4 slots. A table does not grow: when it is full, the
//! log is frozen. Small tables may by chance be full earlier: one in a hundred is full below 95 % of 300 slots, 92 % of
//! 100 and 84 % of 30. Among thousands of tables above a thousand slots, none was full at 95 %.

mod buckets;
mod candidates;
mod encoding;
pub(crate) mod envelope;
pub(crate) mod path;
pub(crate) mod placement;
mod table;
pub(crate) mod tag_word;
mod versions;
mod writer;

pub use candidates::{Candidates, Slot};
pub use table::{CuckooTable, Full};
