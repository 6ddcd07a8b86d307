//! Writes sections of sorted layout with filters: their own, or filters that name one of several tables.

use alluvium_index::hash_filter::HashFilter;

use crate::covering_builder::{CoveringBuilder, CoveringSpec};
use crate::directory::IndexKind;
use crate::error::Result;
use crate::filter_builder::{FilterBuilder, FilterKind, MadeFilter};
use crate::index_builder::IndexBuilder;
use crate::page::Layout;
use crate::writer::{FinishedSection, OpenSection, TableWriter};

impl TableWriter {
    /// Gives the open section of sorted layout a filter, which then rejects lookups before the index is searched.
    ///
    /// # Panics
    /// When no section of sorted layout is open.
    pub fn set_filter(&mut self, filter: HashFilter) {
        self.sorted_section().filter = FilterBuilder::Made(filter);
    }

    /// Like [`TableWriter::set_filter`], with a filter of this kind that is made from the items' hashes when the
    /// section ends. Holds 16 bytes for each of `items_expected` items until then.
    ///
    /// # Panics
    /// When no section of sorted layout is open, or for fragments without a dense trie.
    pub fn gather_filter(&mut self, kind: FilterKind, items_expected: u64) {
        let section = self.sorted_section();
        let is_ranked = section.index.kind() == IndexKind::DenseTrie;
        assert!(is_ranked || !matches!(kind, FilterKind::Fragments(_)), "fragments go with a dense trie");
        section.filter = FilterBuilder::gathered(kind, section.entry.level, items_expected);
    }

    pub(super) fn sorted_section(&mut self) -> &mut OpenSection {
        let section = self.section.as_mut().expect("an open section");
        assert_eq!(section.entry.layout, Layout::Sorted, "a hash section has its filter from the start");
        section
    }

    /// Like [`TableWriter::gather_filter`], with a filter that also answers for the tables below, which `spec` names.
    /// Reads them when it is made, and for each item whose key may be in them.
    ///
    /// # Panics
    /// When no section of sorted layout is open.
    pub fn gather_covering_filter(&mut self, spec: CoveringSpec, items_expected: u64) {
        let section = self.sorted_section();
        section.filter =
            FilterBuilder::Covering(CoveringBuilder::new(spec, section.entry.range, items_expected));
    }
}

impl FinishedSection {
    /// Stores a filter of the section's own, if one was made.
    pub(super) fn set_own_filter(&mut self, filter: FilterBuilder) {
        if let Some(MadeFilter { filter, knows_prefixes }) = filter.finish() {
            self.entry.filter_tag_bits = filter.bits();
            self.entry.filter_is_static = filter.is_static();
            self.entry.filter_is_fragments = filter.fragments().is_some();
            self.entry.filter_knows_prefixes = knows_prefixes;
            self.filter = filter.to_bytes();
        }
    }

    /// Stores the page index and a filter that covers tables below.
    pub(super) fn set_covering(&mut self, pages: IndexBuilder, filter: CoveringBuilder) -> Result<()> {
        let fingerprint_bits = filter.fingerprint_bits();
        self.entry.index_kind = pages.kind();
        self.index = pages.finish();
        let Some(made) = filter.finish(self.entry.hasher)? else { return Ok(()) };
        self.entry.filter_covers = true;
        self.entry.filter_tag_bits = fingerprint_bits;
        self.filter = made.filter.to_bytes();
        let pages = std::mem::take(&mut self.index);
        self.index.extend_from_slice(&(pages.len() as u64).to_le_bytes());
        self.index.extend_from_slice(&pages);
        made.known.encode(&mut self.index);
        Ok(())
    }
}
