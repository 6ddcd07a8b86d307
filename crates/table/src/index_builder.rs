//! [`IndexBuilder`]: builds the index of a section while its pages are written.

use alluvium_base::{HashRange, KeyHash};
use alluvium_index::fences::{PageFencesBuilder, SlotFencesBuilder};
use alluvium_index::three_level::{ThreeLevelBuilder, ThreeLevelConfig};
use alluvium_index::trie::{Granularity, TrieBuilder, TrieConfig};

use crate::dense_trie::DenseTrie;
use crate::directory::IndexKind;
use crate::filter_builder::FilterBuilder;
use crate::paged_trie::PagedTrie;
use crate::slot_pages_builder::SlotPagesBuilder;
use crate::straddles::Straddles;

/// The index that finds the page in a section of sorted layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortedIndex {
    /// Leading hash bits of page boundaries: `resolution_bits + 2.3` bits per page. Pages end between two cells of
    /// `2^-resolution_bits` page each. At 8 bits and 32 items per page this leaves an eighth of an item per page unused
    /// on average, and twice as much with each bit less. For uniform hashes.
    Fences {
        /// Cells per page as a power of two.
        resolution_bits: u32,
    },
    /// Entropy-coded trie down to pages (SILT §3.3): 0.8 bit/key at 32 items per page, for any distribution of hashes.
    Trie,
    /// Entropy-coded trie down to items (LIM §3.1.4): 2.8 bit/key at 32 items per page, the list of page starts
    /// included. Knows the rank of each item, by which fragments of hashes filter
    /// ([`FilterKind::Fragments`](crate::FilterKind)). For uniform hashes.
    DenseTrie,
    /// Three-level index (SlimDB §3.1): 1.6 to 2.6 bit/key at 32 items per page, for semi-sorted keyspaces. Finds one
    /// page for each item regardless of how many others share its prefix, and all pages of a prefix in one step.
    ThreeLevel,
    /// The page of each item, beside a filter of tags of this number of bits, which it comes with (SILT's LogStore,
    /// §3.1): `tag_bits + 32` bits per slot, in any order of items.
    SlotPages {
        /// Bits of a tag.
        tag_bits: u32,
    },
}

impl SortedIndex {
    /// Fences that meet 0.33 bit/key at 32 items per page.
    pub const FENCES: Self = Self::Fences { resolution_bits: 8 };

    /// The kind that the directory stores.
    pub(super) fn kind(self) -> IndexKind {
        match self {
            Self::Fences { .. } => IndexKind::PageFences,
            Self::Trie => IndexKind::Trie,
            Self::DenseTrie => IndexKind::DenseTrie,
            Self::ThreeLevel => IndexKind::ThreeLevel,
            Self::SlotPages { .. } => IndexKind::SlotPages,
        }
    }
}

/// Receives groups and hashes of items and the ends of pages.
///
/// A group is a set of items that should not straddle two pages, since the index cannot distinguish them.
#[derive(Debug)]
pub(super) struct IndexBuilder {
    pages: Pages,
    /// The items of the page being filled: their hashes, or their slots in hash layout.
    pending: Vec<KeyHash>,
    /// The last item of the previous page.
    before: Option<KeyHash>,
    /// Whether that item continues in the page being filled.
    before_goes_on: bool,
    /// Whether the pages were cut for another index.
    is_cut_elsewhere: bool,
}

#[derive(Debug)]
enum Pages {
    Slots(SlotFencesBuilder),
    Fences(PageFencesBuilder),
    Trie { builder: Box<TrieBuilder>, page_count: u32, straddles: Straddles },
    Dense(Box<DensePages>),
    ThreeLevel { builder: Box<ThreeLevelBuilder>, page_count: u32 },
    Each(SlotPagesBuilder),
}

/// The parts of a trie over items.
#[derive(Debug)]
struct DensePages {
    trie: TrieBuilder,
    starts: SlotFencesBuilder,
    page_count: u32,
    straddles: Straddles,
}

/// Items per page, and per prefix in a semi-sorted keyspace, for which a three-level index is configured; other numbers
/// cost a little space. If each item has a prefix hash of its own, distinguishing all of them would take three times as
/// much as distinguishing their pages.
const PAGE_ITEMS_EXPECTED: u64 = 32;
const PREFIX_ITEMS_EXPECTED: u64 = 16;

impl IndexBuilder {
    /// The index of a section of hash layout.
    pub fn slots() -> Self {
        Self::new(Pages::Slots(SlotFencesBuilder::new()))
    }

    /// For a section of sorted layout over these hashes, of a keyspace that keeps items of a prefix together or not.
    pub fn sorted(index: SortedIndex, range: HashRange, pages_expected: u64, is_semi_sorted: bool) -> Self {
        let (range_low, range_high) = range.high_halves();
        match index {
            SortedIndex::Fences { resolution_bits } => Self::new(Pages::Fences(PageFencesBuilder::new(
                range_low,
                range_high,
                pages_expected,
                resolution_bits,
            ))),
            SortedIndex::Trie => {
                let config = TrieConfig { range_low, range_high, ..TrieConfig::new(Granularity::ListedPage) };
                // One bucket per eight pages, so that the cost of the bucket directory depends on pages, as the rest
                // does.
                let items_expected = pages_expected.saturating_mul(u64::from(config.bucket_keys_mean / 8));
                let builder = Box::new(TrieBuilder::new(items_expected, config));
                Self::new(Pages::Trie { builder, page_count: 0, straddles: Straddles::default() })
            }
            SortedIndex::DenseTrie => {
                let config = TrieConfig { range_low, range_high, ..TrieConfig::new(Granularity::Key) };
                let items_expected = pages_expected.saturating_mul(PAGE_ITEMS_EXPECTED);
                Self::new(Pages::Dense(Box::new(DensePages {
                    trie: TrieBuilder::new(items_expected, config),
                    starts: SlotFencesBuilder::new(),
                    page_count: 0,
                    straddles: Straddles::default(),
                })))
            }
            SortedIndex::ThreeLevel => {
                let items_expected = pages_expected.saturating_mul(PAGE_ITEMS_EXPECTED).max(1);
                let prefix_items_expected = if is_semi_sorted { PREFIX_ITEMS_EXPECTED } else { 1 };
                let prefixes_expected = items_expected.div_ceil(prefix_items_expected);
                let config = ThreeLevelConfig {
                    range_low,
                    range_high,
                    ..ThreeLevelConfig::new(items_expected, prefixes_expected)
                };
                let builder = Box::new(ThreeLevelBuilder::new(config));
                Self::new(Pages::ThreeLevel { builder, page_count: 0 })
            }
            SortedIndex::SlotPages { tag_bits } => {
                Self::new(Pages::Each(SlotPagesBuilder::new(tag_bits, range)))
            }
        }
    }

    fn new(pages: Pages) -> Self {
        Self { pages, pending: Vec::new(), before: None, before_goes_on: false, is_cut_elsewhere: false }
    }

    /// The same index, over pages that were cut for another one.
    pub fn over_other_pages(self) -> Self {
        Self { is_cut_elsewhere: true, ..self }
    }

    /// The kind that the directory stores.
    pub fn kind(&self) -> IndexKind {
        match self.pages {
            Pages::Slots(_) => IndexKind::SlotFences,
            Pages::Fences(_) => IndexKind::PageFences,
            Pages::Trie { .. } => IndexKind::Trie,
            Pages::Dense(_) => IndexKind::DenseTrie,
            Pages::ThreeLevel { .. } => IndexKind::ThreeLevel,
            Pages::Each(_) => IndexKind::SlotPages,
        }
    }

    /// The group of an item in a section of sorted layout. Ascends with the hash.
    #[inline]
    pub fn group(&self, hash: KeyHash) -> u128 {
        match &self.pages {
            Pages::Fences(builder) => builder.cell_of(hash.high()).into(),
            Pages::Slots(_) | Pages::Trie { .. } | Pages::Dense(_) | Pages::Each(_) => hash.high().into(),
            Pages::ThreeLevel { .. } => hash.0,
        }
    }

    /// Adds an item by its hash; in hash layout by its slot, as the high half of a hash.
    #[inline]
    pub fn push(&mut self, item: KeyHash) {
        self.pending.push(item);
    }

    /// Ends a page with the first `items` pending items. The last of them continues in the next page if `goes_on`.
    ///
    /// The boundary after such a page is directly after its last group, and nowhere else if that can be avoided, so
    /// that the index also tells which lookups need the next page ([`crate::index`]).
    ///
    /// A page without an item contains only the rest of one.
    ///
    /// # Panics
    /// When fewer than `items` are pending, or none.
    pub fn end_page(&mut self, items: usize, goes_on: bool) {
        let first = self.pending[0].high();
        let before = self.before.map(KeyHash::high);
        match &mut self.pages {
            Pages::Slots(builder) => match before {
                Some(before) if self.before_goes_on => builder.push_page(before + 1),
                _ => builder.push_page(first),
            },
            Pages::Fences(builder) => match before {
                Some(before) if self.before_goes_on || self.is_cut_elsewhere => {
                    builder.push_page_after(before, first);
                }
                Some(before) if builder.cell_of(before) < builder.cell_of(first) => {
                    builder.push_aligned_page(first);
                }
                // The first page, or one that begins in the cell in which the last one ended.
                _ => builder.push_page(first),
            },
            Pages::Trie { builder, page_count, straddles } => {
                if before == Some(first) {
                    straddles.extend(first, *page_count);
                }
                self.pending[..items].iter().for_each(|&hash| builder.push(hash));
                builder.end_page();
                *page_count += 1;
            }
            Pages::Dense(pages) => {
                if before == Some(first) {
                    pages.straddles.extend(first, pages.page_count);
                }
                pages.starts.push_page(pages.trie.len());
                self.pending[..items].iter().for_each(|&hash| pages.trie.push(hash));
                // The index leads to the first item of a hash. If a later one is the last of its page and continues,
                // the hash needs an entry.
                let mut backwards = self.pending[..items].iter().rev().map(|hash| hash.high()).chain(before);
                if let (true, Some(last), Some(second)) = (goes_on, backwards.next(), backwards.next())
                    && items > 0
                    && last == second
                {
                    pages.straddles.note(last, pages.page_count);
                }
                pages.page_count += 1;
            }
            Pages::ThreeLevel { builder, page_count } => {
                let page = u64::from(*page_count);
                self.pending[..items].iter().for_each(|&hash| builder.push(hash, page));
                *page_count += 1;
            }
            Pages::Each(builder) => builder.end_page(&self.pending[..items], goes_on),
        }
        if items > 0 {
            self.before = Some(self.pending[items - 1]);
        }
        self.before_goes_on = goes_on;
        self.pending.drain(..items);
    }

    /// The index block with its kind, and the filter: `filter`, or the one that comes with the index.
    pub fn finish_with(self, filter: FilterBuilder) -> (IndexKind, Vec<u8>, FilterBuilder) {
        match self.pages {
            Pages::Each(builder) => builder.finish(),
            _ => (self.kind(), self.finish(), filter),
        }
    }

    /// The bytes of the index block.
    pub fn finish(self) -> Vec<u8> {
        debug_assert!(self.pending.is_empty(), "the last page was not ended");
        match self.pages {
            Pages::Each(builder) => builder.finish().1,
            Pages::Slots(builder) => builder.finish().to_bytes(),
            Pages::Fences(builder) => builder.finish().to_bytes(),
            Pages::Trie { builder, straddles, .. } => PagedTrie::new(builder.finish(), straddles).to_bytes(),
            Pages::Dense(pages) => {
                let DensePages { trie, starts, straddles, .. } = *pages;
                DenseTrie::new(trie.finish(), starts.finish(), straddles).to_bytes()
            }
            Pages::ThreeLevel { builder, .. } => builder.finish().to_bytes(),
        }
    }
}
