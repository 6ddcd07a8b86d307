//! The pages that a lookup has to read.

use alluvium_index::hash_filter::SlotPage;

/// Maximum number of candidates that a hash filter names: two buckets of four.
const LISTED_MAX: usize = 8;

/// One read of a lookup: a page, and the next one if the wanted item may continue there. Pages are numbered within
/// their section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRead {
    /// The first page.
    pub page: u32,
    /// Number of pages to read from there on: 1 or 2.
    pub count: u32,
}

impl PageRead {
    /// Reads `page`, and the next one too if `goes_on`.
    #[inline]
    pub fn new(page: u32, goes_on: bool) -> Self {
        Self { page, count: 1 + u32::from(goes_on) }
    }
}

impl From<SlotPage> for PageRead {
    #[inline]
    fn from(SlotPage { page, goes_on }: SlotPage) -> Self {
        Self::new(page, goes_on)
    }
}

/// The reads of a lookup within one section, usually one, without an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageList {
    pages: Pages,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pages {
    /// Neighbouring pages: more than eight if many items share their leading hash bits. The last read has `last_count`
    /// pages.
    Range { first: u32, count: u32, last_count: u32 },
    /// In the order in which they were found. Reads whose bit of `longer` is set include the next page.
    Listed { pages: [u32; LISTED_MAX], count: u8, longer: u8 },
}

impl PageList {
    /// No page: the item is absent.
    pub const EMPTY: Self = Self { pages: Pages::Range { first: 0, count: 0, last_count: 1 } };

    /// The pages from `first` on, each in a read of its own. The `last` read may have two.
    #[inline]
    pub fn range(first: u32, last: PageRead) -> Self {
        let count = last.page.saturating_sub(first).saturating_add(1);
        Self { pages: Pages::Range { first, count, last_count: last.count } }
    }

    /// The distinct pages among up to eight `candidates`, each with all pages that any candidate needs. Further
    /// candidates are ignored.
    #[inline]
    pub(crate) fn distinct(candidates: impl Iterator<Item = PageRead>) -> Self {
        let mut pages = [0; LISTED_MAX];
        let (mut count, mut longer) = (0, 0);
        for read in candidates {
            let place = pages[..count].iter().position(|page| *page == read.page).unwrap_or(count);
            if place == LISTED_MAX {
                continue;
            }
            pages[place] = read.page;
            count = count.max(place + 1);
            longer |= u8::from(read.count > 1) << place;
        }
        Self { pages: Pages::Listed { pages, count: count as u8, longer } }
    }

    /// Number of reads.
    #[inline]
    pub fn len(&self) -> usize {
        match self.pages {
            Pages::Range { count, .. } => count as usize,
            Pages::Listed { count, .. } => count.into(),
        }
    }

    /// Whether no page has to be read.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The reads.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = PageRead> + use<> {
        let pages = self.pages;
        (0..self.len()).map(move |number| match pages {
            Pages::Range { first, count, last_count } => PageRead {
                page: first + number as u32,
                count: if number as u32 + 1 == count { last_count } else { 1 },
            },
            Pages::Listed { pages, longer, .. } => PageRead::new(pages[number], longer >> number & 1 == 1),
        })
    }
}

/// Numbers beyond any page stay beyond: the section compares them with its page count.
#[inline]
pub(super) fn page_number(page: u64) -> u32 {
    u32::try_from(page).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_listed_once_with_all_that_is_needed() {
        let candidates = [(7, false), (3, true), (7, true), (3, false), (9, false)];
        let list =
            PageList::distinct(candidates.into_iter().map(|(page, goes_on)| PageRead::new(page, goes_on)));
        let listed: Vec<_> = list.iter().map(|read| (read.page, read.count)).collect();
        assert_eq!(listed, [(7, 2), (3, 2), (9, 1)]);
        let nine = PageList::distinct((0..9).map(|page| PageRead::new(page, false)));
        assert_eq!(nine.len(), LISTED_MAX);
        let range: Vec<_> = PageList::range(4, PageRead::new(6, true)).iter().collect();
        assert_eq!(
            range,
            [(4, false), (5, false), (6, true)].map(|(page, goes_on)| PageRead::new(page, goes_on))
        );
        assert!(PageList::EMPTY.is_empty());
    }
}
