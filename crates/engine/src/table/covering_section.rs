//! Writing sections whose filters name one of several tables.

use super::covering_builder::{CoveringBuilder, CoveringSpec};
use super::error::Result;
use super::filter_builder::FilterBuilder;
use super::index_builder::IndexBuilder;
use super::writer::{FinishedSection, TableWriter};

impl TableWriter {
    /// Like [`TableWriter::gather_filter`], with a filter that also answers for tables below, which `spec` names. Reads
    /// them when it is made, and as items come whose keys may be there.
    ///
    /// # Panics
    /// When no section of sorted layout is open.
    pub fn gather_covering_filter(&mut self, spec: CoveringSpec, items_expected: u64) {
        let section = self.sorted_section();
        let range = (section.entry.range_low, section.entry.range_high);
        section.filter = FilterBuilder::Covering(CoveringBuilder::new(spec, range, items_expected));
    }
}

impl FinishedSection {
    /// Takes over the page index and a filter that covers tables below.
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
