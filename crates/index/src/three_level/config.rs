//! [`ThreeLevelConfig`]: what is known of a table before its index is built.

/// How the third level keeps what tells the suffixes of adjacent pages apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuffixCode {
    /// As an array of partial suffixes: about log2(items of the group) + 3 bits a page; searched by halves. For groups
    /// of up to some hundred items.
    Partial,
    /// As an entropy-coded trie for each group: about 9 bits a page however large the group is; takes about twice the
    /// time in large groups.
    Trie,
}

/// Settings of a [`ThreeLevelBuilder`](super::ThreeLevelBuilder).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreeLevelConfig {
    /// Items that are expected. With the prefixes expected it decides whether the first level tells every prefix apart
    /// (groups of a quarter page and more) or only what lies in different pages. Another number than comes costs space
    /// or time, never correctness.
    pub items_expected: u64,
    /// Different prefixes that are expected. They determine the number of the first level's buckets.
    pub prefixes_expected: u64,
    /// The third level's form.
    pub suffix_code: SuffixCode,
    /// Prefixes in a bucket of the first level on average, `g` in SILT, at least 1. Fewer are faster and cost `20 / g`
    /// bits a prefix.
    pub bucket_prefixes_mean: u32,
    /// First prefix hash of the range that the table covers.
    pub range_low: u64,
    /// Last prefix hash of the range.
    pub range_high: u64,
}

impl ThreeLevelConfig {
    /// For about `items_expected` items of `prefixes_expected` groups, anywhere in the space of hashes: partial
    /// suffixes, buckets of 32 prefixes.
    pub fn new(items_expected: u64, prefixes_expected: u64) -> Self {
        Self {
            items_expected,
            prefixes_expected,
            suffix_code: SuffixCode::Partial,
            bucket_prefixes_mean: 32,
            range_low: 0,
            range_high: u64::MAX,
        }
    }
}
