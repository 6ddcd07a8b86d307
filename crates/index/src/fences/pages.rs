//! [`PageFences`]: from hash to page.

use alluvium_base::Corruption;

use super::builder::PageFencesBuilder;
use super::cells::Cells;
use crate::elias_fano::EliasFano;
use crate::elias_fano::wire::{WireReader, WireWriter};

const NAME: &str = "page fences";
const KIND: u64 = 0x3153_4543_4e45_4650;

/// The pages that may hold a key, `first` to `last`, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRange {
    /// The first of them.
    pub first: u64,
    /// The last of them. Read this one first: it tends to hold more of the cell's keys.
    pub last: u64,
}

impl PageRange {
    /// Number of pages.
    pub fn pages(self) -> u64 {
        self.last - self.first + 1
    }
}

/// The cells in which the pages of a sorted table start. Immutable; see the module for idea and cost.
///
/// # Bytes
///
/// Little-endian 64-bit words: kind (`0x3153_4543_4e45_4650`), first and last hash of the range, number of cells,
/// 1 when all pages are aligned else 0, length in bytes of the Elias-Fano list, the list (see `elias_fano`), XXH3-64 of
/// everything before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageFences {
    cells: Cells,
    boundaries: EliasFano,
    aligned: bool,
}

impl PageFences {
    pub(super) fn new(cells: Cells, boundaries: EliasFano, aligned: bool) -> Self {
        Self { cells, boundaries, aligned }
    }

    /// Fences over the whole hash space from the first hash of every page, in order, with `resolution_bits` as in
    /// [`PageFencesBuilder::new`].
    ///
    /// # Panics
    /// When the hashes decrease.
    pub fn from_boundaries<I>(first_hashes: I, resolution_bits: u32) -> Self
    where
        I: IntoIterator<Item = u64>,
        I::IntoIter: ExactSizeIterator,
    {
        let first_hashes = first_hashes.into_iter();
        let mut builder = PageFencesBuilder::new(0, u64::MAX, first_hashes.len() as u64, resolution_bits);
        first_hashes.for_each(|hash| builder.push_page(hash));
        builder.finish()
    }

    /// Number of pages.
    pub fn pages(&self) -> u64 {
        self.boundaries.len()
    }

    /// Whether every lookup finds exactly one page.
    pub fn is_aligned(&self) -> bool {
        self.aligned
    }

    /// The cell of a hash; hashes outside the table's range count as its nearest end.
    #[inline]
    pub fn cell_of(&self, hash_high: u64) -> u64 {
        self.cells.cell(hash_high)
    }

    /// The pages that may hold a key whose hash has the high half `hash_high`, or `None` if there are no pages. A key
    /// of the table is in one of them. For a key that no page can hold, an arbitrary page.
    #[inline]
    pub fn lookup(&self, hash_high: u64) -> Option<PageRange> {
        if self.boundaries.is_empty() {
            return None;
        }
        let (below, at_most) = self.boundaries.counts(self.cells.cell(hash_high));
        let last = at_most.saturating_sub(1);
        let first = if self.aligned { last } else { below.saturating_sub(1) };
        Some(PageRange { first, last })
    }

    /// Whether the page after `page` begins in the cell directly after that of the hash. This is possible if
    /// [`PageFencesBuilder::push_page_after`] ended `page` with a key of that cell, and impossible if `page` ended with
    /// a key of a later cell.
    #[inline]
    pub fn ends_page(&self, page: u64, hash_high: u64) -> bool {
        self.boundaries.get(page + 1) == Some(self.cells.cell(hash_high) + 1)
    }

    /// Bytes of memory, this value included.
    pub fn memory_bytes(&self) -> u64 {
        size_of::<Self>() as u64 + self.boundaries.memory_bytes()
    }

    /// The fences as bytes, in the layout above.
    pub fn to_bytes(&self) -> Vec<u8> {
        let list = self.boundaries.to_bytes();
        let mut writer = WireWriter::new(KIND, 5 + list.len() / 8);
        self.cells.write(&mut writer);
        writer.word(u64::from(self.aligned));
        writer.nested(&list);
        writer.finish()
    }

    /// The fences that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// When checksum, range or list are wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Corruption> {
        let mut reader = WireReader::new(NAME, KIND, bytes)?;
        let cells = Cells::read(&mut reader)?;
        let aligned = reader.word_up_to(1, "a flag")? == 1;
        let (list, offset) = reader.nested()?;
        let boundaries = EliasFano::from_bytes(list).map_err(|error| error.within(NAME, offset))?;
        if boundaries
            .len()
            .checked_sub(1)
            .and_then(|last| boundaries.get(last))
            .is_some_and(|cell| cell >= cells.count())
        {
            return Err(
                reader.corruption(format!("cells below {}", cells.count()), "a cell beyond the range")
            );
        }
        reader.finish()?;
        Ok(Self { cells, boundaries, aligned })
    }
}
