//! What filter, index and pages of a section are worth in memory: the reads that they save per byte.

use super::Section;
use crate::memory_holder::{MemoryHolder, Part};
use crate::page::Layout;

/// Maximum bytes of filter and index for which the filter is read from flash with the index for a single lookup. A
/// larger read takes about as long as two reads of a page.
const READ_BYTES_MAX: u64 = 128 << 10;

/// Pages are worth less than any filter or index, which all lookups need. Among themselves they are ordered by the
/// reads that scans save.
const PAGES_FACTOR: f64 = 1e-20;

impl Section {
    /// Whether filter and index are in memory both or not at all. True for hash layout, where a lookup by the index
    /// alone reads the pages of two buckets, while filter and index together are one read.
    pub(super) fn is_joint(&self) -> bool {
        self.entry.layout == Layout::Hash && self.entry.filter.len + self.entry.index.len <= READ_BYTES_MAX
    }

    /// What a byte of the index is worth, or a byte of index and filter if they are joint: it saves one read for each
    /// lookup in the section's range. At least what the filter is worth, which has no use without the index.
    pub(super) fn index_worth(&self) -> f64 {
        let index = self.entry.index.len;
        if self.is_joint() {
            return self.range_share() / (index + self.entry.filter.len).max(1) as f64;
        }
        let worth = self.range_share() / index.max(1) as f64;
        if self.wants_filter() { worth.max(self.filter_worth()) } else { worth }
    }

    /// What a byte of an index of `bytes` bytes is worth that was made from the pages, filter included: it saves one
    /// read for each lookup in the section's range.
    pub(super) fn made_worth(&self, bytes: u64) -> f64 {
        self.range_share() / bytes.max(1) as f64
    }

    /// What a byte of the filter is worth: it saves a page for each lookup in the section's range, except lookups that
    /// find their key there, which are few in all levels except the last.
    pub(super) fn filter_worth(&self) -> f64 {
        self.range_share() / self.entry.filter.len.max(1) as f64
    }

    /// What a byte of the pages is worth: all together save one read for each scan of a prefix in the section's range.
    pub(super) fn pages_worth(&self) -> f64 {
        PAGES_FACTOR * self.range_share() / self.kept_pages_bytes().max(1) as f64
    }

    /// The share of the hash space that the section covers.
    fn range_share(&self) -> f64 {
        (self.entry.range.high - self.entry.range.low) as f64 / u128::MAX as f64
    }
}

impl MemoryHolder for Section {
    fn parts(&self) -> [Option<Part>; 3] {
        let pages = self.pages.load().is_some().then(|| Part {
            worth: self.pages_worth(),
            bytes: self.kept_pages_bytes(),
            has_filter: false,
            has_index: false,
            has_pages: true,
        });
        let loaded = self.index.load();
        let (bytes, has_filter, made_as) = match &*loaded {
            Some(index) => (index.memory_bytes(), index.has_filter(), index.made_as),
            None => return [pages, None, None],
        };
        let is_joint = self.is_joint() || made_as.is_some();
        let is_separate = has_filter && !is_joint;
        let filter = Part {
            worth: self.filter_worth(),
            bytes: bytes.filter,
            has_filter,
            has_index: false,
            has_pages: false,
        };
        let index = Part {
            worth: match made_as {
                Some(_) => self.made_worth(bytes.filter + bytes.index),
                None => self.index_worth(),
            },
            bytes: bytes.index + if is_separate { 0 } else { bytes.filter },
            has_filter: has_filter && !is_separate,
            has_index: true,
            has_pages: false,
        };
        [pages, is_separate.then_some(filter), Some(index)]
    }

    fn drop_part(&self, part: Part) -> bool {
        match part {
            Part { has_pages: true, .. } => self.drop_pages(),
            Part { has_index: true, .. } => self.drop_index(),
            _ => self.drop_filter(),
        }
    }
}
