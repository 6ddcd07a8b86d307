//! Multi-level cuckoo filter: one filter over up to eight runs that says in which of them a key is (SlimDB, VLDB 2017,
//! §3.2).
//!
//! A lane of the primary table is a fingerprint and the number of the run that holds the newest item of its key. No two
//! keys of the table share fingerprint and buckets: the second of them goes to the secondary table, which stores whole
//! hashes. So a lookup names at most one run, and a get that trusts it reads at most one page, however many runs there
//! are; with a filter for each run, some gets would read several pages, which causes long tail latencies.
//!
//! ```text
//!   lane:  [ fingerprint | run: 3 bits ]    four lanes a bucket, no gaps; 0 = empty slot
//!
//!   lookup:  fingerprint in neither bucket ──► absent
//!            whole hash in the secondary table ──► its run
//!            else ──► the run of the lane
//! ```
//!
//! # What the caller knows
//!
//! [`MultiLevelFilterBuilder::insert`] must be told whether the key is in the filter already (Algorithm 2 asks the
//! store). After a get, a put passes [`Known::Absent`] or [`Known::Present`], and lookups are exact. A blind put passes
//! [`Known::Unknown`]: a key whose fingerprint is present goes to the secondary table, whether it is an overwrite or
//! not. Results stay correct, but memory grows with overwrites. Beyond [`SECONDARY_SHARE_MAX`], the newest run is
//! written over the lane and the filter becomes *ambiguous*: a lane then means "in this run, or in an older one".
//!
//! # Figures
//!
//! | what | formula | 12 + 3 bits at 95 % |
//! |---|---|---|
//! | primary table | (fingerprint + 3) / occupancy | 15.8 bit/key |
//! | secondary table, keys all different | 140 bit × 4 × occupancy / 2^fingerprint | 0.13 bit/key |
//! | absent keys that get a run | 8 × occupancy / (2^fingerprint - 1) | 0.19 % |
//!
//! SlimDB has 16.67 bit/key (14 + 3 bits) at 0.2 %. `bench index --structure multi-level-filter` measures ours.
//!
//! # Where we differ from SlimDB
//!
//! - The number of buckets is free, not a power of two (see `cuckoo`).
//! - The secondary table stores 128-bit hashes, not keys: keys may be 64 KiB long. Equal hashes are taken for equal
//!   keys; among a billion keys two share a hash with a chance of 10^-21, and the reader compares keys anyway.
//! - A filter is built once and then immutable, like the runs that it covers.

mod builder;
mod encoding;
mod filter;
mod secondary;

pub use builder::{Known, MultiLevelFilterBuilder, SECONDARY_SHARE_MAX};
pub use filter::{FINGERPRINT_BITS_MAX, FINGERPRINT_BITS_MIN, MultiLevelFilter, RUNS_MAX, Runs};
