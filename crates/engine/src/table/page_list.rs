//! The pages that a lookup has to read.

/// Most candidates that a hash filter names: two buckets of four.
const LISTED_MAX: usize = 8;

/// Numbers of pages of one section, usually one, without an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageList {
    pages: Pages,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pages {
    /// Neighbours: more than eight when many items share their leading hash bits.
    Range { first: u32, count: u32 },
    /// In the order in which they were found.
    Listed { pages: [u32; LISTED_MAX], count: u8 },
}

impl PageList {
    /// No page: the item is absent.
    pub const EMPTY: Self = Self { pages: Pages::Range { first: 0, count: 0 } };

    /// The pages `first..=last`.
    pub fn range(first: u32, last: u32) -> Self {
        Self { pages: Pages::Range { first, count: last.saturating_sub(first).saturating_add(1) } }
    }

    /// The distinct pages among the up to eight of `candidates`; further ones are ignored.
    #[inline]
    pub fn distinct(candidates: impl Iterator<Item = u32>) -> Self {
        let mut pages = [0; LISTED_MAX];
        let mut count = 0;
        for page in candidates {
            if !pages[..count].contains(&page) && count < LISTED_MAX {
                pages[count] = page;
                count += 1;
            }
        }
        Self { pages: Pages::Listed { pages, count: count as u8 } }
    }

    /// Number of pages.
    #[inline]
    pub fn len(&self) -> usize {
        match self.pages {
            Pages::Range { count, .. } => count as usize,
            Pages::Listed { count, .. } => count.into(),
        }
    }

    /// Whether no page need be read.
    #[inline]
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The page numbers, relative to the section.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<> {
        let pages = self.pages;
        (0..self.len()).map(move |number| match pages {
            Pages::Range { first, .. } => first + number as u32,
            Pages::Listed { pages, .. } => pages[number],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_listed_once() {
        let list = PageList::distinct([7, 3, 7, 3, 9].into_iter());
        assert_eq!(list.iter().collect::<Vec<_>>(), [7, 3, 9]);
        assert_eq!(PageList::range(4, 20).iter().collect::<Vec<_>>(), (4..=20).collect::<Vec<_>>());
        assert!(PageList::EMPTY.is_empty());
    }
}
