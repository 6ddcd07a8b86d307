//! Finds a key in what a lookup has read: one page, or two if the last item of the first continues in the second.

use alluvium_base::{Corruption, KeyHash};

use crate::error::Result;
use crate::item::Item;
use crate::page::{Found, PAGE_BYTES, page_tag};
use crate::page_list::PageRead;
use crate::section::Section;

/// The result of a search in what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Searched<'a> {
    /// The item.
    Item(Item<'a>),
    /// It is not here.
    Nothing,
    /// If it exists, it is on the page of this number.
    On(u32),
}

/// Position of an item in what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Here(usize),
    Nowhere,
    /// If it exists, it is on the page of this number.
    On(u32),
}

impl Section {
    /// Looks for `key` of hash `hash` in `bytes`, the pages of `read`. The second part of an item on two pages is moved
    /// directly after the first in `bytes`.
    ///
    /// # Errors
    /// [`crate::Error::Corruption`] if the bytes are not these pages: nothing of them is returned then.
    #[inline]
    pub fn search<'a>(
        &self,
        read: PageRead,
        bytes: &'a mut [u8],
        hash: KeyHash,
        key: &[u8],
    ) -> Result<Searched<'a>> {
        Ok(match self.find(read, bytes, hash, key)? {
            Place::Here(start) => {
                Item::decode(&bytes[start..]).map_or(Searched::Nothing, |(item, _)| Searched::Item(item))
            }
            Place::Nowhere => Searched::Nothing,
            Place::On(page) => Searched::On(page),
        })
    }

    /// Like [`Section::search`], but returns the position of the item in `bytes`.
    #[inline]
    pub(super) fn find(&self, read: PageRead, bytes: &mut [u8], hash: KeyHash, key: &[u8]) -> Result<Place> {
        let (first, second) = bytes.split_at(PAGE_BYTES.min(bytes.len()));
        let page = self.check_page(read.page, first)?;
        // The migrations of a bucket stay in its group, so in the section.
        if let Some(page) = page.moved_to(hash, read.page) {
            let corruption = Corruption::new("page", 16, "migrations within the table", page.to_string());
            return match page < self.page_count() {
                true => Ok(Place::On(page)),
                false => Err(self.within_page(read.page, corruption).into()),
            };
        }
        let found = page.find(page_tag(hash), key);
        let found = found.map_err(|corruption| self.within_page(read.page, corruption))?;
        match found {
            Found::Item(start, _) => Ok(Place::Here(start)),
            Found::Begun(start) if read.count > 1 => {
                let rest = self.check_page(read.page + 1, second)?.carried_range();
                self.join(read.page, bytes, start, rest, key)
            }
            // An index that leads to this page alone does not refer to its last item.
            Found::Nothing | Found::Begun(_) => Ok(Place::Nowhere),
        }
    }

    /// Moves the `rest` of an item, a range of the second page, directly after its beginning, which is at `start` and
    /// ends the first page. Returns the position if it is the item of `key`.
    fn join(
        &self,
        page: u32,
        bytes: &mut [u8],
        start: usize,
        rest: std::ops::Range<usize>,
        key: &[u8],
    ) -> Result<Place> {
        let len = PAGE_BYTES - start + rest.len();
        bytes.copy_within(PAGE_BYTES + rest.start..PAGE_BYTES + rest.end, PAGE_BYTES);
        match Item::decode(&bytes[start..start + len]) {
            Some((item, taken)) if taken == len => {
                Ok(if item.key == key { Place::Here(start) } else { Place::Nowhere })
            }
            _ => {
                let corruption = Corruption::new(
                    "page",
                    start as u64,
                    format!("an item of {len} bytes on two pages"),
                    "none",
                );
                Err(self.within_page(page, corruption).into())
            }
        }
    }

    /// Converts the offsets of `corruption` from those within `page` to those in the file.
    #[cold]
    pub(super) fn within_page(&self, page: u32, corruption: Corruption) -> Corruption {
        corruption.within(self.file().name(), self.page_offset(page))
    }
}
