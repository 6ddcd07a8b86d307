//! [`IndexBuilder`]: the index of a section while its pages are being written.

use alluvium_base::KeyHash;
use alluvium_index::fences::{PageFencesBuilder, SlotFencesBuilder};

use super::directory::IndexKind;

/// What finds the page in a section of sorted layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SortedIndex {
    /// Leading hash bits of page boundaries: `resolution_bits + 2.3` bits a page. Pages end between two cells of
    /// `2^-resolution_bits` page each, which leaves on average an eighth of an item per page unused at 8 bits and 32
    /// items a page, twice as much with every bit less. For uniform hashes.
    Fences {
        /// Cells per page as a power of two.
        resolution_bits: u32,
    },
}

impl SortedIndex {
    /// Fences that meet 0.33 bit/key at 32 items a page.
    pub const FENCES: Self = Self::Fences { resolution_bits: 8 };
}

/// Takes groups and hashes of items and the ends of pages.
///
/// A group is what should not straddle two pages, since the index can't tell its items apart.
#[derive(Debug)]
pub(super) struct IndexBuilder {
    pages: Pages,
    /// What the items of the page being filled are known by: their slots, or the high halves of their hashes.
    pending: Vec<u64>,
    /// The same of the last item of the page before.
    before: Option<u64>,
}

#[derive(Debug)]
enum Pages {
    Slots(SlotFencesBuilder),
    Fences(PageFencesBuilder),
}

impl IndexBuilder {
    /// For a section of hash layout.
    pub fn slots() -> Self {
        Self::new(Pages::Slots(SlotFencesBuilder::new()))
    }

    /// For a section of sorted layout over the hashes `range_low..=range_high`.
    pub fn sorted(index: SortedIndex, range_low: u64, range_high: u64, pages_expected: u64) -> Self {
        match index {
            SortedIndex::Fences { resolution_bits } => Self::new(Pages::Fences(PageFencesBuilder::new(
                range_low,
                range_high,
                pages_expected,
                resolution_bits,
            ))),
        }
    }

    fn new(pages: Pages) -> Self {
        Self { pages, pending: Vec::new(), before: None }
    }

    /// The kind that the directory names.
    pub fn kind(&self) -> IndexKind {
        match self.pages {
            Pages::Slots(_) => IndexKind::SlotFences,
            Pages::Fences(_) => IndexKind::PageFences,
        }
    }

    /// The group of an item of a section of sorted layout. Ascends with the hash.
    #[inline]
    pub fn group(&self, hash: KeyHash) -> u64 {
        match &self.pages {
            Pages::Fences(builder) => builder.cell_of(hash.high()),
            Pages::Slots(_) => hash.high(),
        }
    }

    /// Adds an item, known by its slot or by the high half of its hash.
    #[inline]
    pub fn push(&mut self, known_by: u64) {
        self.pending.push(known_by);
    }

    /// Ends a page with the first `items` of those pending.
    ///
    /// # Panics
    /// When there are fewer, or `items` is 0.
    pub fn end_page(&mut self, items: usize) {
        let first = self.pending[0];
        match &mut self.pages {
            Pages::Slots(builder) => builder.push_page(first),
            Pages::Fences(builder) => {
                let is_aligned =
                    self.before.is_none_or(|before| builder.cell_of(before) < builder.cell_of(first));
                if is_aligned {
                    builder.push_aligned_page(first);
                } else {
                    builder.push_page(first);
                }
            }
        }
        self.before = Some(self.pending[items - 1]);
        self.pending.drain(..items);
    }

    /// The bytes of the index block.
    pub fn finish(self) -> Vec<u8> {
        debug_assert!(self.pending.is_empty(), "the last page was not ended");
        match self.pages {
            Pages::Slots(builder) => builder.finish().to_bytes(),
            Pages::Fences(builder) => builder.finish().to_bytes(),
        }
    }
}
