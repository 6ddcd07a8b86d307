//! [`Groups`]: the second level, from a cell of the prefix trie to its pages.

use alluvium_base::Corruption;

use crate::elias_fano::wire::WireReader;
use crate::elias_fano::{EliasFano, EliasFanoBuilder};

/// Where each cell begins, as `2 × page`, plus 1 unless it begins with the page; and `2 × pages` at the end. A cell is
/// a group of keys with one prefix, or several groups that lie in one page.
///
/// With the one bit that says whether a page begins with a cell, its end follows from the next one's beginning (SlimDB
/// has the same from numbering first and last keys of pages in one sequence).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Groups {
    begins: EliasFano,
}

/// [`Groups`] while cells come.
#[derive(Debug, Default)]
pub(super) struct GroupsBuilder {
    begins: EliasFanoBuilder,
}

impl GroupsBuilder {
    /// Adds a cell that begins in `page`, with the page or within.
    pub(super) fn push(&mut self, page: u64, is_within: bool) {
        self.begins.push(page * 2 + u64::from(is_within));
    }

    /// Bytes held now.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.begins.memory_bytes()
    }

    /// The cells of `pages` pages.
    pub(super) fn finish(mut self, pages: u64) -> Groups {
        self.begins.push(pages * 2);
        Groups { begins: self.begins.finish() }
    }
}

impl Groups {
    /// Number of cells.
    pub(super) fn cells(&self) -> u64 {
        self.begins.len().saturating_sub(1)
    }

    /// Number of pages.
    pub(super) fn pages(&self) -> u64 {
        self.begins.len().checked_sub(1).and_then(|last| self.begins.get(last)).unwrap_or(0) / 2
    }

    /// First and last page of `cell`; beyond the last cell, page 0.
    #[inline]
    pub(super) fn pages_of(&self, cell: u64) -> (u64, u64) {
        self.begins.get_pair(cell).map_or((0, 0), |(begin, next)| pages_between(begin, next))
    }

    /// Boundaries of pages within `cell`.
    pub(super) fn boundaries(&self, cell: u64) -> u64 {
        let (first, last) = self.pages_of(cell);
        last - first
    }

    /// Boundaries of pages within each cell from `cell` on.
    pub(super) fn boundaries_from(&self, cell: u64) -> impl Iterator<Item = u64> + '_ {
        let mut begins = self.begins.iter_from(cell);
        let mut begin = begins.next();
        std::iter::from_fn(move || {
            let next = begins.next()?;
            let (first, last) = pages_between(begin?, next);
            begin = Some(next);
            Some(last - first)
        })
    }

    /// Bytes of memory that the list owns.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.begins.memory_bytes()
    }

    /// As bytes: an Elias-Fano list.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        self.begins.to_bytes()
    }

    /// From the bytes of a list, which `reader` has just read at `offset`.
    pub(super) fn from_bytes(
        name: &'static str,
        bytes: &[u8],
        offset: u64,
        reader: &WireReader<'_>,
    ) -> Result<Self, Corruption> {
        let begins = EliasFano::from_bytes(bytes).map_err(|error| error.within(name, offset))?;
        let end = begins.len().checked_sub(1).and_then(|last| begins.get(last));
        if begins.get(0) != Some(0) || !end.is_some_and(|end| end % 2 == 0) {
            return Err(reader.corruption("cells from page 0 to the end of a page", format!("{end:?}")));
        }
        Ok(Self { begins })
    }
}

/// Pages of a cell that begins at `begin`, before one that begins at `next`.
#[inline(always)]
fn pages_between(begin: u64, next: u64) -> (u64, u64) {
    let first = begin / 2;
    (first, (next.saturating_sub(1) / 2).max(first))
}
