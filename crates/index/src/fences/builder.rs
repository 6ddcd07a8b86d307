//! [`PageFencesBuilder`]: page boundaries in, fences out.

use super::cells::Cells;
use super::pages::PageFences;
use crate::elias_fano::EliasFanoBuilder;

/// Takes the first hash of every page in order and makes [`PageFences`].
///
/// Memory while building: about two bytes a page.
#[derive(Clone, Debug)]
pub struct PageFencesBuilder {
    cells: Cells,
    boundaries: EliasFanoBuilder,
    last_hash: u64,
    aligned: bool,
}

impl PageFencesBuilder {
    /// A builder for a table that covers the hashes `range_low..=range_high` with about `pages_expected` pages.
    ///
    /// `resolution_bits` is `r`: there are `pages_expected × 2^r` cells and a page costs `r + 2` bits. A wrong
    /// `pages_expected` costs space or second pages, never correctness. The number of cells is limited to 2^48.
    ///
    /// # Panics
    /// When `range_low` is above `range_high`.
    pub fn new(range_low: u64, range_high: u64, pages_expected: u64, resolution_bits: u32) -> Self {
        let cells = u128::from(pages_expected.max(1)) << resolution_bits.min(48);
        let cells = u64::try_from(cells).unwrap_or(u64::MAX);
        Self {
            cells: Cells::new(range_low, range_high, cells),
            boundaries: EliasFanoBuilder::new(),
            last_hash: range_low,
            aligned: true,
        }
    }

    /// The cell of a hash. A writer that starts a new page only where the cell changes, and reports it with
    /// [`push_page_after`](Self::push_page_after), gets exactly one page for every lookup.
    #[inline]
    pub fn cell_of(&self, hash_high: u64) -> u64 {
        self.cells.cell(hash_high)
    }

    /// Pages so far.
    pub fn pages(&self) -> u64 {
        self.boundaries.len()
    }

    /// Bytes held now.
    pub fn memory_bytes(&self) -> u64 {
        self.boundaries.memory_bytes()
    }

    /// Adds a page whose first key has the high hash half `first_hash_high`, when the end of the previous page is not
    /// known. The first key of the page then shares the boundary's cell: one lookup in "keys per page" needs two pages.
    /// Right for the first page; for others prefer [`push_page_after`](Self::push_page_after).
    ///
    /// # Panics
    /// When the hash is outside the range or below that of the previous page.
    pub fn push_page(&mut self, first_hash_high: u64) {
        // There is nothing before the first page.
        self.aligned &= self.boundaries.is_empty();
        self.push(self.cells.cell(first_hash_high), first_hash_high);
    }

    /// Adds a page whose first key has the high hash half `first_hash_high`, after one whose last key has
    /// `last_hash_high_before`. The boundary is a cell between the two that holds neither, if there is one. If the two
    /// never share a cell, every lookup finds exactly one page.
    ///
    /// # Panics
    /// When the hashes are outside the range or before those of the previous page.
    pub fn push_page_after(&mut self, last_hash_high_before: u64, first_hash_high: u64) {
        assert!(
            (self.last_hash..=first_hash_high).contains(&last_hash_high_before),
            "a page ends at {last_hash_high_before:#x}, not between its start and the next page's"
        );
        let (before, first) = (self.cells.cell(last_hash_high_before), self.cells.cell(first_hash_high));
        self.aligned &= before < first;
        self.push(first.min(before + 1), first_hash_high);
    }

    /// Adds a page whose first key has the high hash half `first_hash_high`, in a later cell than the last key of the
    /// previous page. The boundary is that cell, so that pages of one crowded cell have equal boundaries.
    ///
    /// # Panics
    /// When the hash is outside the range or below that of the previous page.
    pub fn push_aligned_page(&mut self, first_hash_high: u64) {
        self.push(self.cells.cell(first_hash_high), first_hash_high);
    }

    fn push(&mut self, cell: u64, first_hash_high: u64) {
        assert!(
            self.cells.contains(first_hash_high),
            "page start {first_hash_high:#x} lies outside the table's range"
        );
        assert!(
            first_hash_high >= self.last_hash,
            "page start {first_hash_high:#x} lies before the page before"
        );
        self.last_hash = first_hash_high;
        self.boundaries.push(cell);
    }

    /// The fences. Linear in the pages.
    pub fn finish(self) -> PageFences {
        PageFences::new(self.cells, self.boundaries.finish(), self.aligned)
    }
}
