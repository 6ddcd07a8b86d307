//! `bench index`: the index structures alone, in memory, one thread, on random key hashes.

pub mod bloom_cluster;
pub mod bucketed;
pub mod cuckoo;
pub mod fences;
pub mod hash_filter;
pub mod multi_level_filter;
pub mod slb;
pub mod static_filter;
pub mod three_level;
pub mod trie;

/// Parameters of an index benchmark.
#[derive(Clone, Copy, Debug)]
pub struct IndexConfig {
    /// Keys in total.
    pub keys: u64,
    /// Seed of all randomness.
    pub seed: u64,
}

impl IndexConfig {
    /// Lookups of one measurement: `maximum`, or ten for each key if that is fewer, so that few keys take little time.
    fn lookups(&self, maximum: usize) -> usize {
        maximum.min(10 * self.keys.max(1) as usize)
    }
}
