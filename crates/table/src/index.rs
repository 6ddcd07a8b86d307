//! [`SectionIndex`]: finds the pages that may hold a key from its hash, in memory.

use std::sync::Arc;

use alluvium_base::{Corruption, KeyHash, TableId};
use alluvium_index::bloom_cluster::RunSet;
use alluvium_index::bucketed::BucketDirectory;
use alluvium_index::fences::{PageFences, SlotFences};
use alluvium_index::hash_filter::{HashFilter, SlotPages};
use alluvium_index::three_level::ThreeLevelIndex;

use crate::cluster_filter::ClusterFilter;
use crate::covering_filter::CoveringFilter;
use crate::dense_trie::DenseTrie;
use crate::directory::{IndexKind, SectionEntry};
use crate::index_memory::{Charge, MemoryBytes};
use crate::index_parts::{split_index, three_level};
use crate::index_target::IndexTarget;
use crate::own_filter::OwnFilter;
use crate::page_list::page_number;
use crate::paged_trie::PagedTrie;

/// The filter and the page index of a section, loaded. The filter may have been dropped again.
#[derive(Debug)]
pub(crate) struct SectionIndex {
    pub(super) filter: SectionFilter,
    pub(super) pages: PageIndex,
    /// Whether items of the section continue in the next page. If the last item of a page does, the boundary after the
    /// page is directly after that item's slot or cell; an item that is not the last of its page is further in front of
    /// the boundary.
    pub(super) items_go_on: bool,
    /// Whether the filter uses other bits of the hash than the order does.
    spreads: bool,
    /// Whether the filter contains prefixes as well as items.
    knows_prefixes: bool,
    /// What it was made as from the pages, if it differs from what is stored with them.
    pub(super) made_as: Option<IndexTarget>,
    /// The memory that this takes, if it is kept.
    _charge: Option<Charge>,
}

#[derive(Debug)]
pub(super) enum SectionFilter {
    /// The section has no filter.
    None,
    Loaded(OwnFilter),
    /// Not in memory. Has this number of slots if it is a filter of tags.
    Dropped {
        slots: u32,
    },
    /// For a table in buckets, with the filters of the tables that it covers.
    Cluster(ClusterFilter),
    /// Names one of the tables that it covers.
    Covering(CoveringFilter),
}

#[derive(Clone, Debug)]
pub(super) enum PageIndex {
    /// No pages.
    Empty,
    /// Pages of slots, for a filter that names slots: by their first slot, or slot by slot.
    Slots(SlotFences),
    SlotPages(SlotPages),
    /// Leading hash bits of page boundaries.
    Fences(PageFences),
    /// Entropy-coded trie over pages.
    Trie(Box<PagedTrie>),
    /// Entropy-coded trie over items.
    Dense(Box<DenseTrie>),
    /// For a semi-sorted keyspace, over this number of pages.
    ThreeLevel(Box<ThreeLevelIndex>, u32),
    /// Pages are buckets.
    Buckets(Arc<BucketDirectory>),
}

impl SectionIndex {
    /// Decodes the blocks of a section, either of which may be empty. Offsets of corruptions are relative to the block.
    pub(super) fn decode(entry: &SectionEntry, filter: &[u8], pages: &[u8]) -> Result<Self, Corruption> {
        if entry.index_kind == IndexKind::Buckets {
            return Self::decode_buckets(entry, filter, pages);
        }
        let (filter, pages) = match filter {
            _ if entry.filter_covers => {
                let (pages, cover) = split_index(pages, "a page index")?;
                (SectionFilter::Covering(CoveringFilter::decode(cover, filter)?), pages)
            }
            [] => (SectionFilter::None, pages),
            bytes => (SectionFilter::Loaded(OwnFilter::from_bytes(bytes, entry)?), pages),
        };
        let pages = match entry.index_kind {
            IndexKind::None | IndexKind::Buckets => PageIndex::Empty,
            IndexKind::SlotFences => PageIndex::Slots(SlotFences::from_bytes(pages)?),
            IndexKind::PageFences => PageIndex::Fences(PageFences::from_bytes(pages)?),
            IndexKind::Trie => PageIndex::Trie(Box::new(PagedTrie::from_bytes(pages)?)),
            IndexKind::SlotPages => PageIndex::SlotPages(SlotPages::from_bytes(pages)?),
            IndexKind::DenseTrie => PageIndex::Dense(Box::new(DenseTrie::from_bytes(pages)?)),
            IndexKind::ThreeLevel => {
                PageIndex::ThreeLevel(Box::new(three_level(entry, pages)?), entry.page_count)
            }
        };
        let page_count = match &pages {
            PageIndex::Empty => 0,
            PageIndex::Slots(fences) => fences.pages(),
            PageIndex::Fences(fences) => fences.pages(),
            PageIndex::Trie(trie) => trie.pages(),
            PageIndex::Dense(trie) => trie.pages(),
            PageIndex::ThreeLevel(_, pages) => u64::from(*pages),
            PageIndex::Buckets(buckets) => buckets.pages(),
            PageIndex::SlotPages(pages) => pages.pages(),
        };
        if page_count != u64::from(entry.page_count) {
            let expected = format!("an index of {} pages", entry.page_count);
            return Err(Corruption::new("index", 0, expected, format!("{page_count} pages")));
        }
        let tags = if let SectionFilter::Loaded(filter) = &filter { filter.tags() } else { None };
        if let (PageIndex::Slots(_), Some(filter)) = (&pages, tags)
            && filter.len() as u64 != entry.totals.item_count
        {
            let expected = format!("a filter of {} items", entry.totals.item_count);
            return Err(Corruption::new("filter", 0, expected, format!("{} items", filter.len())));
        }
        if let (PageIndex::SlotPages(pages), Some(filter)) = (&pages, tags)
            && filter.slots() != pages.slots()
        {
            let expected = format!("pages of {} slots", filter.slots());
            return Err(Corruption::new("index", 0, expected, format!("{} slots", pages.slots())));
        }
        if let PageIndex::Dense(trie) = &pages
            && trie.items() != entry.totals.item_count
        {
            let expected = format!("a trie of {} items", entry.totals.item_count);
            return Err(Corruption::new("index", 0, expected, format!("{} items", trie.items())));
        }
        let (items_go_on, spreads) = (entry.items_go_on, entry.hasher.is_semi_sorted());
        let knows_prefixes = entry.filter_knows_prefixes && spreads;
        Ok(Self { filter, pages, items_go_on, spreads, knows_prefixes, made_as: None, _charge: None })
    }

    /// Decodes the blocks of a table in buckets. Without `filter` it stays on flash.
    fn decode_buckets(entry: &SectionEntry, filter: &[u8], index: &[u8]) -> Result<Self, Corruption> {
        let (buckets, cluster) = split_index(index, "a bucket directory")?;
        let buckets = BucketDirectory::from_bytes(buckets).map_err(|error| error.within("index", 8))?;
        if buckets.pages() != u64::from(entry.page_count) {
            let expected = format!("a directory of {} pages", entry.page_count);
            return Err(Corruption::new("index", 8, expected, format!("{} pages", buckets.pages())));
        }
        let filter = match (entry.filter_is_static, filter) {
            (false, _) => {
                SectionFilter::Cluster(ClusterFilter::decode(cluster, entry.range.high_halves(), filter)?)
            }
            (true, _) if !cluster.is_empty() => {
                let found = format!("{} bytes after it", cluster.len());
                return Err(Corruption::new("index", 0, "a bucket directory alone", found));
            }
            (true, []) => SectionFilter::Dropped { slots: 0 },
            (true, bytes) => SectionFilter::Loaded(OwnFilter::from_bytes(bytes, entry)?),
        };
        let pages = PageIndex::Buckets(Arc::new(buckets));
        let (items_go_on, spreads, knows_prefixes) = (false, false, false);
        Ok(Self { filter, pages, items_go_on, spreads, knows_prefixes, made_as: None, _charge: None })
    }

    /// The same index for a filter of tags that is absent, with this number of slots.
    pub(super) fn lacking_filter(self, slots: u32) -> Self {
        Self { filter: SectionFilter::Dropped { slots }, ..self }
    }

    /// The same index, made from the pages as `target` instead of what is stored.
    pub(super) fn made_as(self, target: IndexTarget) -> Self {
        Self { made_as: Some(target), ..self }
    }

    /// The same index, with its memory counted by `charge`.
    pub(super) fn charged(self, charge: Charge) -> Self {
        Self { _charge: Some(charge), ..self }
    }

    /// The same index without the filter, its memory counted by `charge`.
    pub(super) fn without_filter(&self, charge: Charge) -> Self {
        let filter = match &self.filter {
            SectionFilter::None => SectionFilter::None,
            SectionFilter::Loaded(filter) => {
                SectionFilter::Dropped { slots: filter.tags().map_or(0, |tags| tags.slots() as u32) }
            }
            SectionFilter::Dropped { slots } => SectionFilter::Dropped { slots: *slots },
            SectionFilter::Cluster(cluster) => SectionFilter::Cluster(cluster.away()),
            SectionFilter::Covering(covering) => SectionFilter::Covering(covering.away()),
        };
        let pages = self.pages.clone();
        let Self { items_go_on, spreads, knows_prefixes, made_as, .. } = *self;
        Self { filter, pages, items_go_on, spreads, knows_prefixes, made_as, _charge: Some(charge) }
    }

    /// Whether nothing has been dropped.
    #[inline]
    pub fn is_whole(&self) -> bool {
        match &self.filter {
            SectionFilter::Dropped { .. } => false,
            SectionFilter::Cluster(cluster) => cluster.is_in_memory(),
            SectionFilter::Covering(covering) => covering.is_in_memory(),
            SectionFilter::None | SectionFilter::Loaded(_) => true,
        }
    }

    /// The filter of a table in buckets, in memory or not.
    #[inline]
    pub(super) fn cluster(&self) -> Option<&ClusterFilter> {
        match &self.filter {
            SectionFilter::Cluster(cluster) => Some(cluster),
            _ => None,
        }
    }

    /// The filter that names one of several tables of sorted layout, in memory or not.
    #[inline]
    pub(super) fn covering(&self) -> Option<&CoveringFilter> {
        match &self.filter {
            SectionFilter::Covering(covering) => Some(covering),
            _ => None,
        }
    }

    /// File numbers of the other tables for which the filter answers, young to old, or `None` for a filter that answers
    /// for one table only.
    #[inline]
    pub(super) fn covers(&self) -> Option<&[TableId]> {
        match &self.filter {
            SectionFilter::Cluster(cluster) => Some(cluster.covers()),
            SectionFilter::Covering(covering) => Some(&covering.known().covers),
            SectionFilter::None | SectionFilter::Loaded(_) | SectionFilter::Dropped { .. } => None,
        }
    }

    /// The tables that may hold a key, as in [`ClusterFilter::runs_of`] and [`CoveringFilter::runs_of`].
    #[inline]
    pub(super) fn runs_of(&self, hash: KeyHash) -> Option<RunSet> {
        match &self.filter {
            SectionFilter::Cluster(cluster) => cluster.runs_of(hash),
            SectionFilter::Covering(covering) => covering.runs_of(self.placing(hash)),
            SectionFilter::None | SectionFilter::Loaded(_) | SectionFilter::Dropped { .. } => None,
        }
    }

    /// Whether a filter is in memory.
    pub fn has_filter(&self) -> bool {
        match &self.filter {
            SectionFilter::Loaded(_) => true,
            SectionFilter::Cluster(cluster) => cluster.is_in_memory(),
            SectionFilter::Covering(covering) => covering.is_in_memory(),
            SectionFilter::None | SectionFilter::Dropped { .. } => false,
        }
    }

    /// The positions of pages of a table in buckets.
    pub fn buckets(&self) -> Option<&Arc<BucketDirectory>> {
        match &self.pages {
            PageIndex::Buckets(buckets) => Some(buckets),
            _ => None,
        }
    }

    /// The first page that may hold an item of hash `hash` or above, or `None` if this index cannot tell.
    pub fn first_page(&self, hash: KeyHash) -> Option<u32> {
        match &self.pages {
            PageIndex::Fences(fences) => fences.lookup(hash.high()).map(|range| page_number(range.first)),
            PageIndex::Buckets(buckets) => Some(buckets.group_pages(buckets.group_of(hash.high())).start),
            _ => None,
        }
    }

    /// First and last page in which items of a prefix with this hash begin, or those of another prefix if it has no
    /// items. Returns `None` if this index cannot tell.
    pub fn prefix_pages(&self, prefix_hash: u64) -> Option<(u32, u32)> {
        match &self.pages {
            PageIndex::ThreeLevel(index, _) => {
                let range = index.prefix_pages(prefix_hash)?;
                Some((page_number(range.first), page_number(range.last)))
            }
            _ => None,
        }
    }

    /// Whether the section has items of the prefix with this hash, according to its filter: `Some(true)` is
    /// occasionally wrong. Returns `None` if no filter in memory contains prefixes.
    pub fn has_prefix(&self, prefix_hash: u64) -> Option<bool> {
        match &self.filter {
            SectionFilter::Loaded(filter) if self.knows_prefixes => {
                Some(filter.may_contain(KeyHash::of_prefix(prefix_hash)))
            }
            _ => None,
        }
    }

    /// The bits of a hash by which the filter places it.
    #[inline]
    pub(super) fn placing(&self, hash: KeyHash) -> KeyHash {
        if self.spreads { hash.spread() } else { hash }
    }

    /// The section's own filter of tags, if it has one.
    pub fn tags(&self) -> Option<&HashFilter> {
        match &self.filter {
            SectionFilter::Loaded(filter) => filter.tags(),
            _ => None,
        }
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> MemoryBytes {
        let (filter, known) = match &self.filter {
            SectionFilter::Loaded(filter) => (filter.memory_bytes(), 0),
            SectionFilter::Cluster(cluster) => cluster.memory_bytes(),
            SectionFilter::Covering(covering) => covering.memory_bytes(),
            SectionFilter::None | SectionFilter::Dropped { .. } => (0, 0),
        };
        MemoryBytes {
            filter,
            index: known
                + match &self.pages {
                    PageIndex::Empty => 0,
                    PageIndex::Slots(fences) => fences.memory_bytes(),
                    PageIndex::Fences(fences) => fences.memory_bytes(),
                    PageIndex::Trie(trie) => trie.memory_bytes(),
                    PageIndex::Dense(trie) => trie.memory_bytes(),
                    PageIndex::ThreeLevel(index, _) => index.memory_bytes(),
                    PageIndex::Buckets(buckets) => buckets.memory_bytes(),
                    PageIndex::SlotPages(pages) => pages.memory_bytes(),
                },
        }
    }
}
