//! How a section's index finds pages.

use alluvium_base::KeyHash;
use alluvium_index::bucketed::Home;
use alluvium_index::fences::{PageFences, PageRange, SlotFences};
use alluvium_index::hash_filter::bucket_slots;

use crate::index::{PageIndex, SectionFilter, SectionIndex};
use crate::own_filter::OwnFilter;
use crate::page_list::{PageList, PageRead, page_number};

impl SectionIndex {
    /// Starts loading what shows whether the section has a key of this hash.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        match &self.filter {
            SectionFilter::Loaded(filter) => filter.prefetch(self.placing(hash)),
            SectionFilter::Cluster(cluster) => cluster.prefetch(hash),
            SectionFilter::Covering(covering) => covering.prefetch(self.placing(hash)),
            SectionFilter::None | SectionFilter::Dropped { .. } => {}
        }
    }

    /// The pages in which a table of sorted layout or in buckets may hold a key of hash `hash`, regardless of filters.
    #[inline]
    pub fn locate_unfiltered(&self, hash: KeyHash) -> PageList {
        match &self.pages {
            PageIndex::Buckets(buckets) => match buckets.locate(hash) {
                None => PageList::EMPTY,
                Some(Home::Page(page)) => PageList::range(page, PageRead::new(page, false)),
                Some(Home::Pages { first, last }) => PageList::range(first, PageRead::new(last, false)),
            },
            PageIndex::Fences(fences) => {
                let range = fences.lookup(hash.high());
                range.map_or(PageList::EMPTY, |range| self.whole_cells(fences, range, hash))
            }
            PageIndex::Trie(trie) => trie.lookup(hash, self.items_go_on),
            PageIndex::Dense(trie) => trie.lookup(hash, None, self.items_go_on),
            PageIndex::ThreeLevel(index, pages) => {
                let found = index.lookup(hash);
                found.map_or(PageList::EMPTY, |range| {
                    // As for tries: the index does not show which item is the last of its page.
                    let last = page_number(range.last);
                    let goes_on = self.items_go_on && last.saturating_add(1) < *pages;
                    PageList::range(page_number(range.first), PageRead::new(last, goes_on))
                })
            }
            PageIndex::SlotPages(pages) => {
                PageList::distinct(pages.pages_of_buckets(hash).map(PageRead::from))
            }
            PageIndex::Slots(_) | PageIndex::Empty => PageList::EMPTY,
        }
    }

    /// The pages that may hold a key of hash `hash`.
    #[inline]
    pub fn locate(&self, hash: KeyHash) -> PageList {
        match (&self.pages, &self.filter) {
            (PageIndex::Slots(fences), SectionFilter::Loaded(OwnFilter::Tags(filter))) => PageList::distinct(
                filter.candidates(hash).filter_map(|slot| self.page_of_slot(fences, slot.into())),
            ),
            (PageIndex::Slots(fences), SectionFilter::Dropped { slots }) => PageList::distinct(
                bucket_slots(hash, *slots)
                    .into_iter()
                    .flatten()
                    .filter_map(|slot| self.page_of_slot(fences, slot.into())),
            ),
            (PageIndex::SlotPages(pages), SectionFilter::Loaded(OwnFilter::Tags(filter))) => {
                PageList::distinct(pages.candidates(filter, hash).map(PageRead::from))
            }
            (PageIndex::Dense(trie), SectionFilter::Loaded(OwnFilter::Fragments(fragments))) => {
                trie.lookup(hash, Some(fragments), self.items_go_on)
            }
            (_, SectionFilter::Loaded(filter)) if !filter.may_contain(self.placing(hash)) => PageList::EMPTY,
            (_, SectionFilter::Cluster(_) | SectionFilter::Covering(_)) => {
                let own = self.covers().map_or(0, |covers| covers.len() as u32);
                let is_absent = self.runs_of(hash).is_some_and(|runs| !runs.contains(own));
                if is_absent { PageList::EMPTY } else { self.locate_unfiltered(hash) }
            }
            _ => self.locate_unfiltered(hash),
        }
    }

    /// The page that contains `slot`, if there is one.
    #[inline]
    fn page_of_slot(&self, fences: &SlotFences, slot: u64) -> Option<PageRead> {
        let page = fences.page_of(slot)?;
        let goes_on = self.items_go_on && fences.first_slot(page + 1) == Some(slot + 1);
        Some(PageRead::new(page_number(page), goes_on))
    }

    /// The pages of `range` that contain items of the cell of `hash`.
    ///
    /// With fences that are not aligned, `range` begins with the page before the first that starts in the cell. The
    /// writer lets a page start in the cell of the page before only if that page contains nothing else. The page in
    /// front therefore ends with another cell, unless it is page 0 and starts in the cell itself. Thus only keys of
    /// crowded cells cost additional reads. This does not hold for fences over pages that were cut for another index.
    #[inline]
    fn whole_cells(&self, fences: &PageFences, range: PageRange, hash: KeyHash) -> PageList {
        let is_before =
            self.made_as.is_none() && !fences.is_aligned() && range.first > 0 && range.first < range.last;
        let goes_on = self.items_go_on && fences.ends_page(range.last, hash.high());
        let last = PageRead::new(page_number(range.last), goes_on);
        PageList::range(page_number(range.first + u64::from(is_before)), last)
    }
}
