//! Index structures that spend bits, not bytes, on a key.
//!
//! Architecture invariant: this crate does no I/O and knows no files.

pub mod bloom_cluster;
mod broadword;
pub mod bucketed;
pub mod chain_region;
pub mod cuckoo;
pub mod elias_fano;
pub mod fences;
pub mod hash_filter;
pub mod multi_level_filter;
mod packed_tags;
mod prefetch;
mod processor;
pub mod slb;
pub mod static_filter;
mod sync;
pub mod three_level;
pub mod trie;

pub use prefetch::{prefetch_address, prefetch_bytes, prefetch_element, prefetch_element_far};
