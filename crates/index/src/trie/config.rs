//! [`TrieConfig`]: what a trie distinguishes and how much memory it may use.

/// What a lookup finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// The rank of the key: its number among all keys in hash order. About 2.5 bit/key.
    Key,
    /// The number of the page, where every page but the last holds `keys_per_page` keys. About 0.60 bit/key at 32.
    RegularPage {
        /// Keys in a page, at least 1.
        keys_per_page: u32,
    },
    /// The number of the page, where [`TrieBuilder::end_page`](super::TrieBuilder::end_page) ends pages. About 0.84
    /// bit/key at 32 keys a page on average; 0.23 of that is the list of the pages' first ranks.
    ListedPage,
}

/// Settings of a trie, for building and rebuilding: any config can be built from the same hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrieConfig {
    /// What a lookup finds. Default: the key's rank.
    pub granularity: Granularity,
    /// Average number of keys in a virtual bucket, `g` in the thesis, at least 1. Default 256. Lookups take little more
    /// time for more keys; the directory takes about `20 / g` bit/key.
    pub bucket_keys_mean: u32,
    /// Bits of each key's hash stored as a filter, 0 to 64. Default 0: none. They cost that many bits a key, and a
    /// lookup of an absent key then returns "absent" except for a fraction of 2^-bits (dense), or keys per page times
    /// that (sparse).
    pub fragment_bits: u32,
    /// First hash (its high half) of the range that the keys are in. Default 0.
    pub range_low: u64,
    /// Last hash of the range. Default `u64::MAX`. A range wider than the keys' own costs speed, not correctness.
    pub range_high: u64,
}

impl Default for TrieConfig {
    fn default() -> Self {
        Self {
            granularity: Granularity::Key,
            bucket_keys_mean: 256,
            fragment_bits: 0,
            range_low: 0,
            range_high: u64::MAX,
        }
    }
}

impl TrieConfig {
    /// The default settings with `granularity`.
    pub fn new(granularity: Granularity) -> Self {
        Self { granularity, ..Self::default() }
    }
}
