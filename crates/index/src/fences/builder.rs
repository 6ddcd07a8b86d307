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
    /// `resolution_bits` is `r`: there are `pages_expected × 2^r` cells, a page costs `r + 2` bits and a share of
    /// `2^-r` of all lookups needs a second page. A wrong `pages_expected` costs space or second pages, never
    /// correctness. The number of cells stops at 2^48.
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

    /// The cell of a hash. A writer that starts a new page only where the cell changes may say so with
    /// [`push_aligned_page`](Self::push_aligned_page).
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

    /// Adds a page whose first key has the high hash half `first_hash_high`. The page before may hold keys of the same
    /// cell, and even of the same hash.
    ///
    /// # Panics
    /// When the hash lies outside the range or below that of the page before.
    pub fn push_page(&mut self, first_hash_high: u64) {
        // Nothing lies before the first page.
        self.aligned &= self.boundaries.is_empty();
        self.push(first_hash_high);
    }

    /// Adds a page before whose first key no key of the same cell was written. When all pages are added so, every
    /// lookup finds exactly one page.
    ///
    /// # Panics
    /// When the hash lies outside the range, or its cell is not above that of the page before.
    pub fn push_aligned_page(&mut self, first_hash_high: u64) {
        let cell = self.cells.cell(first_hash_high);
        assert!(
            self.boundaries.is_empty() || cell > self.boundaries.last(),
            "an aligned page starts in a new cell, not again in cell {cell}"
        );
        self.push(first_hash_high);
    }

    fn push(&mut self, first_hash_high: u64) {
        assert!(
            self.cells.contains(first_hash_high),
            "page start {first_hash_high:#x} lies outside the table's range"
        );
        assert!(
            first_hash_high >= self.last_hash,
            "page start {first_hash_high:#x} lies before the page before"
        );
        self.last_hash = first_hash_high;
        self.boundaries.push(self.cells.cell(first_hash_high));
    }

    /// The fences. Linear in the pages.
    pub fn finish(self) -> PageFences {
        PageFences::new(self.cells, self.boundaries.finish(), self.aligned)
    }
}
