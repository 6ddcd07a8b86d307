//! [`Groups`]: the second level, from a cell of the prefix trie to its pages.

use alluvium_base::Corruption;

use crate::elias_fano::wire::{WireReader, WireWriter};
use crate::elias_fano::{Differences, EliasFano, NearLinearList};

/// The beginning of each cell, as `2 × page`, plus 1 unless it begins with the page; and `2 × pages` at the end. A cell
/// is a group of keys with one prefix, or several groups within one page.
///
/// One bit says whether a page begins with a cell, so the end of a cell follows from the beginning of the next (SlimDB
/// gets the same by numbering first and last keys of pages in one sequence).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Groups {
    begins: Begins,
    cells: u64,
    pages: u64,
}

/// The list of beginnings, in the smaller form. The size of `Line` counts as a fifth smaller, because it is read
/// without selecting bits.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Begins {
    /// Groups of similar size.
    Line(NearLinearList),
    /// A few large groups among small ones.
    List(EliasFano),
}

/// [`Groups`] while cells are added.
#[derive(Debug, Default)]
pub(super) struct GroupsBuilder {
    begins: Differences,
}

impl GroupsBuilder {
    /// Adds a cell that begins in `page`: within it if `is_within`, else with it.
    pub(super) fn push(&mut self, page: u64, is_within: bool) {
        self.begins.push(page * 2 + u64::from(is_within));
    }

    /// Bytes held now.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.begins.memory_bytes()
    }

    /// The cells of `pages` pages.
    pub(super) fn finish(mut self, pages: u64) -> Groups {
        let cells = self.begins.len();
        self.begins.push(pages * 2);
        let line = NearLinearList::new(self.begins.iter(), self.begins.len(), self.begins.last());
        let list = EliasFano::from_sorted(self.begins.iter(), self.begins.len(), self.begins.last());
        let begins = if line.memory_bytes() * 4 <= list.memory_bytes() * 5 {
            Begins::Line(line)
        } else {
            Begins::List(list)
        };
        Groups { begins, cells, pages }
    }
}

impl Groups {
    /// Number of cells.
    pub(super) fn cells(&self) -> u64 {
        self.cells
    }

    /// Number of pages.
    pub(super) fn pages(&self) -> u64 {
        self.pages
    }

    /// First and last page of `cell`; unspecified pages beyond the last cell.
    #[inline(always)]
    pub(super) fn pages_of(&self, cell: u64) -> (u64, u64) {
        let (begin, next) = match &self.begins {
            Begins::Line(line) => line.pair(cell),
            Begins::List(list) => list.get_pair(cell).unwrap_or((0, 0)),
        };
        // Wrong bytes under a valid checksum may give any number.
        let first = (begin / 2).min(self.pages.saturating_sub(1));
        (first, (next.saturating_sub(1) / 2).clamp(first, self.pages.max(1) - 1))
    }

    /// Boundaries of pages within `cell`.
    #[inline(always)]
    pub(super) fn boundaries(&self, cell: u64) -> u64 {
        let (first, last) = self.pages_of(cell);
        last - first
    }

    /// Bytes of memory that the list owns.
    pub(super) fn memory_bytes(&self) -> u64 {
        match &self.begins {
            Begins::Line(line) => line.memory_bytes(),
            Begins::List(list) => list.memory_bytes(),
        }
    }

    /// Appends pages, form and list.
    pub(super) fn write(&self, writer: &mut WireWriter) {
        writer.word(self.pages);
        match &self.begins {
            Begins::Line(line) => {
                writer.word(0);
                line.write(writer);
            }
            Begins::List(list) => {
                writer.word(1);
                writer.nested(&list.to_bytes());
            }
        }
    }

    /// Reads a list of `cells` cells; `name` names the structure in errors.
    pub(super) fn read(
        name: &'static str,
        cells: u64,
        reader: &mut WireReader<'_>,
    ) -> Result<Self, Corruption> {
        let pages = reader.word_up_to(PAGES_MAX, "a number of pages")?;
        if cells > PAGES_MAX {
            return Err(reader.corruption(format!("at most {PAGES_MAX} cells"), cells.to_string()));
        }
        let begins = match reader.word_up_to(1, "a form of the second level")? {
            0 => Begins::Line(NearLinearList::read(cells, pages * 2, reader)?),
            _ => {
                let (nested, offset) = reader.nested()?;
                Begins::List(EliasFano::from_bytes(nested).map_err(|error| error.within(name, offset))?)
            }
        };
        let (count, first, last) = match &begins {
            Begins::Line(line) => (cells + 1, Some(line.get(0)), Some(line.last())),
            Begins::List(list) => (list.len(), list.get(0), list.get(cells)),
        };
        if (count, first, last) != (cells + 1, Some(0), Some(pages * 2)) {
            return Err(reader.corruption(
                format!("{cells} cells in pages 0 to {pages}"),
                format!("{count} numbers, {first:?} to {last:?}"),
            ));
        }
        Ok(Self { begins, cells, pages })
    }
}

/// Maximum number of pages, so that twice as many fit in a `u64`.
const PAGES_MAX: u64 = 1 << 62;
