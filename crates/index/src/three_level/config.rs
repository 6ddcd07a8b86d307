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
    /// suffixes, small buckets where groups are large, and large ones where they are small.
    pub fn new(items_expected: u64, prefixes_expected: u64) -> Self {
        Self {
            items_expected,
            prefixes_expected,
            suffix_code: SuffixCode::Partial,
            bucket_prefixes_mean: if is_dense(items_expected, prefixes_expected) { 16 } else { 64 },
            range_low: 0,
            range_high: u64::MAX,
        }
    }
}

/// Items a prefix from which on the first level tells all prefixes apart: then hardly two whole groups share a page,
/// and the list of those that do would take more than it saves.
const DENSE_GROUP_ITEMS_MIN: u64 = 4;

/// Whether the first level tells all prefixes apart.
pub(super) fn is_dense(items_expected: u64, prefixes_expected: u64) -> bool {
    items_expected / prefixes_expected.max(1) >= DENSE_GROUP_ITEMS_MIN
}
