//! [`Section`]: one keyspace's items over one range of hashes, within a table file.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use alluvium_base::{Corruption, KeyHash, KeyHasher};
use alluvium_io::{AlignedBuffer, File};

use super::directory::{BlockHandle, SectionEntry};
use super::error::{Error, Result};
use super::frame::{Identity, check_sum};
use super::index::{MemoryBytes, SectionIndex};
use super::page::{Layout, PAGE_BYTES, Page, page_seed};
use super::page_list::{PageList, PageRead};
#[cfg(test)]
use crate::item::Item;

/// A section of an open table. Immutable and shared between threads; lookups take no lock once the index is loaded.
///
/// A lookup is [`Section::locate`], one read at [`Section::page_offset`] and [`Section::search`]; the caller reads, so
/// that it can keep many reads in flight. Pages are numbered within the section.
pub(crate) struct Section {
    file: Arc<dyn File>,
    identity: Identity,
    entry: SectionEntry,
    index: OnceLock<SectionIndex>,
    /// Held while loading, so that two first lookups don't both read the index.
    loading: Mutex<()>,
}

impl Section {
    pub(super) fn new(file: Arc<dyn File>, identity: Identity, entry: SectionEntry) -> Self {
        Self { file, identity, entry, index: OnceLock::new(), loading: Mutex::new(()) }
    }

    /// Keyspace that the items belong to.
    pub fn keyspace(&self) -> u32 {
        self.entry.keyspace
    }

    /// How keys of this section become hashes.
    pub fn hasher(&self) -> KeyHasher {
        self.entry.hasher
    }

    /// Lowest and highest [`KeyHash::high`] that the section covers, both included.
    pub fn range(&self) -> (u64, u64) {
        (self.entry.range_low, self.entry.range_high)
    }

    /// The order of the items.
    pub fn layout(&self) -> Layout {
        self.entry.layout
    }

    /// Newest log segment whose items are in the section; 0 when the file does not say. Everything that older segments
    /// held for the keyspace and range is in this section or in older ones.
    pub fn newest_segment(&self) -> u64 {
        self.entry.newest_segment
    }

    /// Items, tombstones included.
    pub fn item_count(&self) -> u64 {
        self.entry.totals.item_count
    }

    /// Items that are tombstones.
    pub fn tombstone_count(&self) -> u64 {
        self.entry.totals.tombstone_count
    }

    /// Items that expire some time.
    pub fn expiring_count(&self) -> u64 {
        self.entry.totals.expiring_count
    }

    /// Items that have expired, about: one eighth of [`Section::expiring_count`] too few at most.
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
    #[cfg(test)]
    pub fn key_bytes(&self) -> u64 {
        self.entry.totals.key_bytes
    }

    /// Bytes of all values.
    #[cfg(test)]
    pub fn value_bytes(&self) -> u64 {
        self.entry.totals.value_bytes
    }

    /// Bytes of keys and values of items that are no tombstones.
    #[cfg(test)]
    pub fn live_bytes(&self) -> u64 {
        self.entry.totals.live_bytes
    }

    /// Bytes that the pages use; the rest of [`Section::pages_bytes`] is lost to packing.
    pub fn used_bytes(&self) -> u64 {
        self.entry.totals.used_bytes
    }

    /// Number of pages.
    pub fn page_count(&self) -> u32 {
        self.entry.page_count
    }

    /// Bytes of all pages.
    pub fn pages_bytes(&self) -> u64 {
        u64::from(self.entry.page_count) * PAGE_BYTES as u64
    }

    /// The file that holds the section: for reads of pages and for giving their space back.
    pub fn file(&self) -> &Arc<dyn File> {
        &self.file
    }

    pub(super) fn entry(&self) -> &SectionEntry {
        &self.entry
    }

    /// The index, loaded on first use: two reads at most. A failure is not remembered: the next call tries again.
    pub fn index(&self) -> Result<&SectionIndex> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        // A thread that panicked while it held the lock left nothing half done.
        let _guard = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let loaded = self.load_index()?;
        Ok(self.index.get_or_init(|| loaded))
    }

    /// Memory of filter and index; zero until they are loaded.
    pub fn memory_bytes(&self) -> MemoryBytes {
        self.index.get().map_or(MemoryBytes::default(), SectionIndex::memory_bytes)
    }

    /// The pages that may hold a key of hash `hash`: usually one, and none when the filter rejects it.
    ///
    /// Of hash layout: `1 + 8 · 2^-tag bits` pages for a key that is there, `8 · 2^-tag bits` for others. Of sorted
    /// layout: exactly one, unless items of equal leading hash bits fill more. Of a key that may be the last of its
    /// page and go on in the next one, that too, in the same read: never in sections of small items, and of one get in
    /// four of 1 KiB items.
    #[inline]
    pub fn locate(&self, hash: KeyHash) -> Result<PageList> {
        if self.entry.page_count == 0 {
            return Ok(PageList::EMPTY);
        }
        let pages = self.index()?.locate(hash);
        match pages.iter().find(|read| read.page >= self.entry.page_count - (read.count - 1)) {
            None => Ok(pages),
            Some(read) => Err(self.beyond(read)),
        }
    }

    /// Starts loading what [`Section::locate`] looks at first, where the index is in memory.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        if let Some(filter) = self.index.get().and_then(SectionIndex::filter) {
            filter.prefetch(hash);
        }
    }

    #[cold]
    fn beyond(&self, read: PageRead) -> Error {
        let expected = format!("an index over {} pages", self.entry.page_count);
        Corruption::new(self.file.name(), self.entry.index.offset, expected, format!("{read:?}")).into()
    }

    /// Where `page` lies in the file.
    #[inline]
    pub fn page_offset(&self, page: u32) -> u64 {
        (self.entry.first_page + u64::from(page)) * PAGE_BYTES as u64
    }

    /// Checks that `bytes` are the page numbered `page`.
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
        for read in self.locate(hash)?.iter() {
            self.read_pages(read.page, read.count as usize, buffer)?;
            place = self.find(read, buffer, hash, key)?;
            if place.is_some() {
                break;
            }
        }
        Ok(place.and_then(|start| Item::decode(&buffer[start..])).map(|(item, _)| item))
    }

    /// Reads `count` pages from `first` into `buffer`, which they fill.
    pub(super) fn read_pages(&self, first: u32, count: usize, buffer: &mut AlignedBuffer) -> Result<()> {
        buffer.resize_unspecified(count * PAGE_BYTES);
        read_exact(&*self.file, buffer, self.page_offset(first))
    }

    fn load_index(&self) -> Result<SectionIndex> {
        let filter = self.read_block(self.entry.filter, "filter")?;
        let index = self.read_block(self.entry.index, "index")?;
        self.decode_index(&filter, &index)
    }

    /// Where filter and index lie; without those that are empty.
    pub(super) fn index_blocks(&self) -> impl Iterator<Item = BlockHandle> {
        [self.entry.filter, self.entry.index].into_iter().filter(|block| block.len > 0)
    }

    /// Like [`Section::index`], from `bytes` that were read at `start` and hold filter and index.
    pub(super) fn load_index_from(&self, bytes: &[u8], start: u64) -> Result<()> {
        let block = |block: BlockHandle, what| {
            let from = block.offset.saturating_sub(start) as usize;
            let bytes = if block.len == 0 { &[] } else { &bytes[from..from + block.len as usize] };
            self.check_block(bytes, block, what)
        };
        let index =
            self.decode_index(block(self.entry.filter, "filter")?, block(self.entry.index, "index")?)?;
        self.index.get_or_init(|| index);
        Ok(())
    }

    fn decode_index(&self, filter: &[u8], index: &[u8]) -> Result<SectionIndex> {
        SectionIndex::decode(&self.entry, filter, index)
            .map_err(|corruption| corruption.within(self.file.name(), self.entry.index.offset).into())
    }

    fn check_block<'a>(&self, bytes: &'a [u8], block: BlockHandle, what: &str) -> Result<&'a [u8]> {
        if block.len > 0 {
            let seed = self.identity.seed ^ block.offset;
            check_sum(bytes, block.checksum, seed, self.file.name(), block.offset, what)?;
        }
        Ok(bytes)
    }

    /// Reads a block with aligned reads and checks its checksum.
    fn read_block(&self, block: BlockHandle, what: &str) -> Result<Vec<u8>> {
        if block.len == 0 {
            return Ok(Vec::new());
        }
        // The directory's reader checked that the block lies within the file, so its length is no fantasy.
        let start = block.offset - block.offset % PAGE_BYTES as u64;
        let skip = (block.offset - start) as usize;
        let len = block.len as usize;
        let mut buffer = AlignedBuffer::with_len((skip + len).next_multiple_of(PAGE_BYTES));
        read_exact(&*self.file, &mut buffer, start)?;
        Ok(self.check_block(&buffer[skip..skip + len], block, what)?.to_vec())
    }
}

impl fmt::Debug for Section {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Section").field("file", &self.file.name()).field("entry", &self.entry).finish()
    }
}

/// Fills `buffer` from `offset` of `file`; an early end is a corruption.
pub(super) fn read_exact(file: &dyn File, buffer: &mut [u8], offset: u64) -> Result<()> {
    let read = file.read_at(buffer, offset).map_err(Error::io("read", file.name()))?;
    if read < buffer.len() {
        let expected = format!("{} bytes", buffer.len());
        return Err(Corruption::new(file.name(), offset, expected, format!("{read}, then the end")).into());
    }
    Ok(())
}
