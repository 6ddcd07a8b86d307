//! What filter and index of a section are worth in memory: the reads that they save, by bytes.

use super::Section;
use crate::table::page::Layout;

/// A filter is read from flash with the index for one lookup where both together take no more than this: beyond that
/// the read takes about as long as two of a page.
const READ_BYTES_MAX: u64 = 128 << 10;

/// What can be dropped of a section in one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::table) struct Part {
    /// Reads that it saves, per lookup of the whole hash space and byte.
    pub worth: f64,
    /// Bytes of memory that become free, at least.
    pub bytes: u64,
    /// Whether the filter goes.
    pub has_filter: bool,
    /// Whether the index goes, and with it the filter.
    pub has_index: bool,
}

impl Section {
    /// Whether the filter and the index are in memory both or not at all: of hash layout, where a lookup by the index
    /// alone reads the pages of two buckets, while reading filter and index is one request.
    pub(super) fn is_joint(&self) -> bool {
        self.entry.layout == Layout::Hash && self.entry.filter.len + self.entry.index.len <= READ_BYTES_MAX
    }

    /// What a byte of the index is worth, or of index and filter if they are joint: it saves one read to each lookup
    /// within the section's range. At least what the filter is worth, which is of no use without it.
    pub(super) fn index_worth(&self) -> f64 {
        let index = self.entry.index.len;
        if self.is_joint() {
            return self.range_share() / (index + self.entry.filter.len).max(1) as f64;
        }
        let worth = self.range_share() / index.max(1) as f64;
        if self.wants_filter() { worth.max(self.filter_worth()) } else { worth }
    }

    /// What a byte of the filter is worth: it saves a page to each lookup within the section's range, those excepted
    /// that find their key in it, which are few in all but the last level.
    pub(super) fn filter_worth(&self) -> f64 {
        self.range_share() / self.entry.filter.len.max(1) as f64
    }

    /// What is in memory, as far as it can be dropped.
    pub(in crate::table) fn parts(&self) -> impl Iterator<Item = Part> + use<> {
        let loaded = self.index.load();
        let (bytes, has_filter) = match &*loaded {
            Some(index) => (index.memory_bytes(), index.has_filter()),
            None => return [None, None].into_iter().flatten(),
        };
        let is_separate = has_filter && !self.is_joint();
        let filter = Part { worth: self.filter_worth(), bytes: bytes.filter, has_filter, has_index: false };
        let index = Part {
            worth: self.index_worth(),
            bytes: bytes.index + if is_separate { 0 } else { bytes.filter },
            has_filter: has_filter && !is_separate,
            has_index: true,
        };
        [is_separate.then_some(filter), Some(index)].into_iter().flatten()
    }

    /// Drops a part; `false` when it is not there, or just being loaded.
    pub(in crate::table) fn drop_part(&self, part: Part) -> bool {
        if part.has_index { self.drop_index() } else { self.drop_filter() }
    }

    /// The share of the hash space that the section covers.
    fn range_share(&self) -> f64 {
        (self.entry.range_high - self.entry.range_low) as f64 / u128::MAX as f64
    }
}
