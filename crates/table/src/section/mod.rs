//! [`Section`]: one keyspace's items over one range of hashes, within a table file.

mod asked;
mod clustered;
mod kept_index;
mod kept_pages;
mod made_index;
mod rebuilt_index;
mod worth;

use std::fmt;
use std::slice;
use std::sync::{Arc, Weak};

use alluvium_base::{Corruption, HashRange, KeyHash, KeyHasher, KeyspaceId, TableId};
use alluvium_index::prefetch_element;
use alluvium_io::sync::ArcSwapOption;
use alluvium_io::sync::Mutex;
use alluvium_io::sync::atomic::{AtomicBool, AtomicU64};
use alluvium_io::{AlignedBuffer, File};

use crate::directory::SectionEntry;
use crate::error::{Error, Result};
use crate::frame::Identity;
use crate::index::SectionIndex;
use crate::index_memory::{Charge, IndexMemory};
#[cfg(test)]
use crate::item::Item;
use crate::page::{Layout, PAGE_BYTES, Page, page_seed};
use crate::page_list::{PageList, PageRead};
use crate::page_slots::PageSlots;
#[cfg(test)]
use crate::search::Place;
use crate::segment_span::SegmentSpan;
use made_index::MakingState;

/// A section of an open table. Immutable and shared between threads; lookups take no lock once the index is loaded.
/// Filter and index may be dropped from memory and loaded again at any time: a lookup continues with those it has.
///
/// A lookup is [`Section::ask`], one read at [`Section::page_offset`] and [`Section::search`]. The caller reads, so
/// that it can have many reads in flight. Pages are numbered within the section.
pub struct Section {
    file: Arc<dyn File>,
    identity: Identity,
    entry: SectionEntry,
    index: ArcSwapOption<SectionIndex>,
    pages: ArcSwapOption<PageSlots>,
    /// Held while index or pages change, so that two first lookups do not both read the index.
    loading: Mutex<()>,
    memory: Arc<IndexMemory>,
    /// Whether the filter of a table above this one answers for it, so that its own is not needed in memory.
    is_covered: AtomicBool,
    /// Whether the filter was found damaged: lookups work without it.
    is_filter_damaged: AtomicBool,
    /// The number of releases of memory when filter or index was last refused room.
    refused_at: AtomicU64,
    /// The same for the pages.
    pages_refused_at: AtomicU64,
    /// The state of an index that is made from the pages instead of the stored one.
    making: MakingState,
    /// Whether the section is registered with `memory` as one that may have something to drop.
    is_registered: AtomicBool,
    /// This section, for callers that may drop its index.
    me: Weak<Self>,
    /// Its memory without filter and index.
    _charge: Charge,
}

/// Memory of a section without filter and index, including what versions and registers hold for it.
const SECTION_BYTES: u64 = size_of::<Section>() as u64 + 128;

impl Section {
    /// A section whose filter and index will be counted in `memory` and bounded by it.
    pub(super) fn new(
        file: Arc<dyn File>,
        identity: Identity,
        entry: SectionEntry,
        memory: &Arc<IndexMemory>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            file,
            identity,
            entry,
            index: ArcSwapOption::empty(),
            pages: ArcSwapOption::empty(),
            loading: Mutex::new(()),
            memory: Arc::clone(memory),
            is_covered: AtomicBool::new(false),
            is_filter_damaged: AtomicBool::new(false),
            refused_at: AtomicU64::new(u64::MAX),
            pages_refused_at: AtomicU64::new(u64::MAX),
            making: MakingState::default(),
            is_registered: AtomicBool::new(false),
            me: Weak::clone(me),
            _charge: memory.charge_table(SECTION_BYTES),
        })
    }

    /// Keyspace that the items belong to.
    #[inline]
    pub fn keyspace(&self) -> KeyspaceId {
        self.entry.keyspace
    }

    /// The hasher of the section's keys.
    #[inline]
    pub fn hasher(&self) -> KeyHasher {
        self.entry.hasher
    }

    /// The hashes that the section covers.
    #[inline]
    pub fn range(&self) -> HashRange {
        self.entry.range
    }

    /// Approximate share of the section's items that is in the range; exact if that is all of them. Costs no read.
    pub fn share_within(&self, range: HashRange) -> f64 {
        let own = self.range();
        let Some(range) = range.clip(own) else { return 0.0 };
        if range == own {
            return 1.0;
        }
        if self.hasher().is_semi_sorted() {
            return self.entry.marks.share_within(range, own.low);
        }
        (range.high - range.low) as f64 / ((own.high - own.low) as f64).max(1.0)
    }

    /// The last hash of each of the equal parts of the section's items; empty if hashes are uniform.
    pub fn marks(&self) -> &[u128] {
        if self.hasher().is_semi_sorted() { self.entry.marks.hashes() } else { &[] }
    }

    /// The order of the items.
    #[inline]
    pub fn layout(&self) -> Layout {
        self.entry.layout
    }

    /// Whether the items of a narrow range of hashes may be anywhere in a section of a run. They may if the items are
    /// in the order of slots. If they are in buckets, they may be in any page of a group, and a run's section has few
    /// groups.
    pub fn is_scattered(&self) -> bool {
        matches!(self.layout(), Layout::Hash | Layout::Bucketed)
    }

    /// Log segments from which the section's items come.
    pub fn segments(&self) -> SegmentSpan {
        self.entry.segments
    }

    /// Number of the level in the keyspace's plan for which the section was made, or `None` if the file does not say.
    pub fn level(&self) -> Option<usize> {
        self.entry.level.map(usize::from)
    }

    /// Number of plans that the keyspace had before the one for which the section was made.
    pub fn plan_number(&self) -> u16 {
        self.entry.plan_number
    }

    /// Items, tombstones included.
    #[inline]
    pub fn item_count(&self) -> u64 {
        self.entry.totals.item_count
    }

    /// Items that are tombstones.
    pub fn tombstone_count(&self) -> u64 {
        self.entry.totals.tombstone_count
    }

    /// Items that have an expiry.
    pub(crate) fn expiring_count(&self) -> u64 {
        self.entry.totals.expiring_count
    }

    /// Approximate number of expired items: at most one eighth of the expiring items too low.
    pub fn expired_estimate(&self, now_ms: u64) -> u64 {
        match self.expiring_count() {
            0 => 0,
            count => (count as f64 * self.entry.expiry.share_expired(now_ms)) as u64,
        }
    }

    /// Whether some item may have expired.
    pub fn any_expired(&self, now_ms: u64) -> bool {
        self.expiring_count() > 0 && self.entry.expiry.any_expired(now_ms)
    }

    /// Bytes of all keys.
    pub fn key_bytes(&self) -> u64 {
        self.entry.totals.key_bytes
    }

    /// Bytes of all values.
    pub fn value_bytes(&self) -> u64 {
        self.entry.totals.value_bytes
    }

    /// Bytes of keys and values of items that are not tombstones.
    #[cfg(test)]
    pub fn live_bytes(&self) -> u64 {
        self.entry.totals.live_bytes
    }

    /// Bytes that the pages use; the rest of [`Section::pages_bytes`] is lost to packing.
    pub fn used_bytes(&self) -> u64 {
        self.entry.totals.used_bytes
    }

    /// Number of pages.
    #[inline]
    pub fn page_count(&self) -> u32 {
        self.entry.page_count
    }

    /// Bytes of all pages.
    pub fn pages_bytes(&self) -> u64 {
        u64::from(self.entry.page_count) * PAGE_BYTES as u64
    }

    /// The file that contains the section: for reads of pages and for giving their space back.
    #[inline]
    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    pub(super) fn identity(&self) -> Identity {
        self.identity
    }

    /// The entry of the section in the directory of its file.
    pub fn entry(&self) -> &SectionEntry {
        &self.entry
    }

    /// Number of the file that contains the section.
    #[inline]
    pub fn file_number(&self) -> TableId {
        self.identity.file_number
    }

    /// The pages that may hold a key of hash `hash`: usually one, and none if the filter rejects it.
    ///
    /// In hash layout: `1 + 8 · 2^-tag bits` pages for a key that is present, `8 · 2^-tag bits` for others. In sorted
    /// layout: exactly one, unless items of equal leading hash bits fill more. If the key may be the last of its page
    /// and continue in the next one, the read includes that page: never in sections of small items, and for one get in
    /// four of 1 KiB items.
    #[inline]
    pub(crate) fn locate(&self, hash: KeyHash) -> Result<PageList> {
        if self.entry.page_count == 0 {
            return Ok(PageList::EMPTY);
        }
        let pages = match &*self.index.load() {
            Some(index) if index.is_whole() => index.locate(hash),
            _ => self.locate_degraded(hash)?,
        };
        self.within_pages(pages)
    }

    #[inline]
    fn within_pages(&self, pages: PageList) -> Result<PageList> {
        match pages.iter().find(|read| read.page >= self.entry.page_count - (read.count - 1)) {
            None => Ok(pages),
            Some(read) => Err(self.beyond(read)),
        }
    }

    /// Loads the index if it may, and otherwise uses what there is: in hash layout without a filter, all pages of the
    /// two buckets.
    #[cold]
    fn locate_degraded(&self, hash: KeyHash) -> Result<PageList> {
        let index = self.index()?;
        let pages = index.locate(hash);
        if !index.is_whole() {
            self.memory.count_unfiltered_pages(pages.len() as u64);
        }
        Ok(pages)
    }

    /// Starts loading what [`Section::prefetch_index`] reads.
    #[inline]
    pub fn prefetch_head(&self) {
        prefetch_element(slice::from_ref(&self.index), 0);
    }

    /// Starts loading what [`Section::prefetch`] reads.
    #[inline]
    pub fn prefetch_index(&self) {
        if let Some(index) = &*self.index.load() {
            prefetch_element(slice::from_ref(&**index), 0);
        }
    }

    /// Starts loading what [`Section::ask`] reads first, if it is in memory. Returns the number of tables below this
    /// one for which it answers.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) -> usize {
        match &*self.index.load() {
            Some(index) => {
                index.prefetch(hash);
                index.covers().map_or(0, <[TableId]>::len)
            }
            None => 0,
        }
    }

    #[cold]
    fn beyond(&self, read: PageRead) -> Error {
        let expected = format!("an index over {} pages", self.entry.page_count);
        Corruption::new(self.file.name(), self.entry.index.offset, expected, format!("{read:?}")).into()
    }

    /// Offset of `page` in the file.
    #[inline]
    pub fn page_offset(&self, page: u32) -> u64 {
        (self.entry.first_page + u64::from(page)) * PAGE_BYTES as u64
    }

    /// Checks that `bytes` is the page with the number `page`.
    #[inline]
    pub(super) fn check_page<'a>(&self, page: u32, bytes: &'a [u8]) -> Result<Page<'a>> {
        let seed = page_seed(self.identity.seed, self.entry.first_page + u64::from(page));
        Page::check(bytes, seed, self.entry.layout)
            .map_err(|corruption| corruption.within(self.file.name(), self.page_offset(page)).into())
    }

    /// Reads and searches all pages that may hold `key`, one after the other, through `buffer`.
    #[cfg(test)]
    pub fn get<'a>(
        &self,
        hash: KeyHash,
        key: &[u8],
        buffer: &'a mut AlignedBuffer,
    ) -> Result<Option<Item<'a>>> {
        let mut place = None;
        let mut reads: Vec<PageRead> = self.locate(hash)?.iter().collect();
        reads.reverse();
        while let Some(read) = reads.pop() {
            self.read_pages(read.page, read.count as usize, buffer)?;
            match self.find(read, buffer, hash, key)? {
                Place::Here(start) => {
                    place = Some(start);
                    break;
                }
                Place::Nowhere => {}
                Place::On(page) => reads.push(PageRead::new(page, false)),
            }
        }
        Ok(place.and_then(|start| Item::decode(&buffer[start..])).map(|(item, _)| item))
    }

    /// Reads `count` pages from `first` on into `buffer`, which they fill.
    pub(super) fn read_pages(&self, first: u32, count: usize, buffer: &mut AlignedBuffer) -> Result<()> {
        buffer.resize_unspecified(count * PAGE_BYTES);
        read_exact(&*self.file, buffer, self.page_offset(first))
    }
}

pub use asked::{Asked, ColumnRead, Verdict};
pub use made_index::Made;

impl fmt::Debug for Section {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Section").field("file", &self.file.name()).field("entry", &self.entry).finish()
    }
}

/// Fills `buffer` from `offset` of `file`. An early end of the file is a corruption.
pub(super) fn read_exact(file: &dyn File, buffer: &mut [u8], offset: u64) -> Result<()> {
    let read = file.read_at(buffer, offset).map_err(Error::io("read", file.name()))?;
    if read < buffer.len() {
        let expected = format!("{} bytes", buffer.len());
        return Err(Corruption::new(file.name(), offset, expected, format!("{read}, then the end")).into());
    }
    Ok(())
}
