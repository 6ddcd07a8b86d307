//! [`ThreeLevelConfig`]: the properties of a table that are known before its index is built.

/// How the third level stores the separators between the suffixes of adjacent pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuffixCode {
    /// As an array of partial suffixes: about log2(items of the group) + 3 bits a page; binary search. For groups of up
    /// to some hundred items.
    Partial,
    /// As an entropy-coded trie for each group: about 9 bits a page for groups of any size; takes about twice the time
    /// in large groups.
    Trie,
}

/// Settings of a [`ThreeLevelBuilder`](super::ThreeLevelBuilder).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreeLevelConfig {
    /// Expected number of items. Together with the expected prefixes it decides whether the first level separates all
    /// prefixes (groups of a quarter page and more) or only those in different pages. A wrong number costs space or
    /// time, never correctness.
    pub items_expected: u64,
    /// Expected number of different prefixes. Determines the number of the first level's buckets.
    pub prefixes_expected: u64,
    /// The third level's form.
    pub suffix_code: SuffixCode,
    /// Average number of prefixes in a bucket of the first level, `g` in SILT, at least 1. Fewer are faster and cost
    /// `20 / g` bits a prefix.
    pub bucket_prefixes_mean: u32,
    /// First prefix hash of the range that the table covers.
    pub range_low: u64,
    /// Last prefix hash of the range.
    pub range_high: u64,
}

impl ThreeLevelConfig {
    /// For about `items_expected` items of `prefixes_expected` groups, anywhere in the hash space: partial suffixes,
    /// with small buckets if groups are large and large ones if they are small.
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

/// Items per prefix from which on the first level separates all prefixes: then hardly two whole groups share a page,
/// and the list of those that do would take more than it saves.
const DENSE_GROUP_ITEMS_MIN: u64 = 4;

/// Whether the first level separates all prefixes.
pub(super) fn is_dense(items_expected: u64, prefixes_expected: u64) -> bool {
    items_expected / prefixes_expected.max(1) >= DENSE_GROUP_ITEMS_MIN
}
