//! [`IndexTarget`]: the index that a section of sorted layout should have.

use crate::directory::{IndexKind, SectionEntry};
use crate::index_builder::SortedIndex;
use crate::page::Layout;

/// The index that a plan asks for, with the filter that is a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexTarget {
    /// What finds the page.
    pub index: SortedIndex,
    /// Bits of fragments beside a dense trie; `None` if the filter is of another kind, or there is none.
    pub fragment_bits: Option<u32>,
}

impl IndexTarget {
    /// The kind that the directory stores.
    pub(super) fn kind(self) -> IndexKind {
        self.index.kind()
    }

    /// Whether it is what the section has in its file.
    pub(super) fn is_stored_in(self, entry: &SectionEntry) -> bool {
        let fragment_bits = entry.filter_is_fragments.then_some(u32::from(entry.filter_tag_bits));
        entry.index_kind == self.kind() && fragment_bits == self.fragment_bits
    }

    /// Whether it can be made from the section's pages as they are (LIM §3.1.6): the same pages serve tries of any
    /// granularity. Fences over pages that were cut for a trie need a second page where a boundary is within a cell;
    /// they do not show which items continue in the next page, so there must be none. Filters of several tables and
    /// the order of semi-sorted keyspaces exclude it.
    pub(super) fn fits_pages_of(self, entry: &SectionEntry) -> bool {
        let is_single = entry.layout == Layout::Sorted && !entry.filter_covers && entry.page_count > 0;
        let is_hashed = !entry.hasher.is_semi_sorted();
        let is_known = match self.index {
            SortedIndex::Trie | SortedIndex::DenseTrie => true,
            SortedIndex::Fences { .. } => !entry.items_go_on,
            SortedIndex::ThreeLevel | SortedIndex::SlotPages { .. } => false,
        };
        is_single && is_hashed && is_known
    }

    /// Bytes of memory that it takes in a section, from above.
    pub(super) fn bytes_expected(self, entry: &SectionEntry) -> u64 {
        let (items, pages) = (entry.totals.item_count, u64::from(entry.page_count));
        let fragments = u64::from(self.fragment_bits.unwrap_or(0)) * items;
        let bits = match self.index {
            SortedIndex::DenseTrie => 3 * items + 16 * pages,
            SortedIndex::SlotPages { .. } => 34 * items,
            SortedIndex::Fences { .. } | SortedIndex::Trie | SortedIndex::ThreeLevel => 32 * pages,
        };
        (bits + fragments) / 8 + 1024
    }
}
