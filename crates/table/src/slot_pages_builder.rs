//! [`SlotPagesBuilder`]: filter and page index in one, made from all items of a section at its end.

use alluvium_base::{HashRange, KeyHash};
use alluvium_index::cuckoo::CuckooTable;
use alluvium_index::hash_filter::{HashFilter, SlotPage, SlotPages};

use crate::directory::IndexKind;
use crate::filter_builder::FilterBuilder;
use crate::index_builder::{IndexBuilder, SortedIndex};

/// Number of attempts to place all items, each in a larger table.
const TRIES_MAX: usize = 8;

/// Collects hashes and pages of items. Costs 16 bytes of memory per item until the section ends.
#[derive(Debug)]
pub(super) struct SlotPagesBuilder {
    tag_bits: u32,
    range: HashRange,
    hashes: Vec<KeyHash>,
    /// For each page, the number of items that begin in it, and whether the last of them continues in the next one.
    ends: Vec<(usize, bool)>,
}

impl SlotPagesBuilder {
    pub fn new(tag_bits: u32, range: HashRange) -> Self {
        Self { tag_bits, range, hashes: Vec::new(), ends: Vec::new() }
    }

    /// Ends a page with these items.
    pub fn end_page(&mut self, items: &[KeyHash], goes_on: bool) {
        self.hashes.extend_from_slice(items);
        self.ends.push((items.len(), goes_on));
    }

    /// The index block with its kind, and the filter. For hashes so alike that no table takes them: a trie without a
    /// filter.
    pub fn finish(self) -> (IndexKind, Vec<u8>, FilterBuilder) {
        let slack = self.hashes.len() / 16 + 1;
        let fits = self.ends.len() < SlotPages::PAGES_MAX as usize;
        let table = (0..TRIES_MAX).filter(|_| fits).find_map(|attempt| self.table(attempt * slack));
        if let Some(table) = table {
            let pages = SlotPages::from_table(&table, self.ends.len() as u32);
            let filter = FilterBuilder::Made(HashFilter::from_table(&table, self.tag_bits));
            return (IndexKind::SlotPages, pages.to_bytes(), filter);
        }
        let pages = self.ends.len() as u64;
        let mut trie = IndexBuilder::sorted(SortedIndex::Trie, self.range, pages, false);
        self.hashes.iter().for_each(|&hash| trie.push(hash));
        self.ends.iter().for_each(|&(items, goes_on)| trie.end_page(items, goes_on));
        (trie.kind(), trie.finish(), FilterBuilder::None)
    }

    /// A table of all items, with room for `slack` more; `None` if they do not fit.
    fn table(&self, slack: usize) -> Option<CuckooTable> {
        let table = CuckooTable::with_entries(self.hashes.len() + slack);
        let mut hashes = self.hashes.iter();
        for (page, &(items, goes_on)) in self.ends.iter().enumerate() {
            for number in 0..items {
                let at = SlotPage { page: page as u32, goes_on: goes_on && number + 1 == items };
                table.insert(*hashes.next()?, at.to_offset()).ok()?;
            }
        }
        Some(table)
    }
}
