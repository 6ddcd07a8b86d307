//! [`SectionScanner`]: the items of a section in their order, through large sequential reads.

use std::sync::Arc;

use alluvium_base::{Corruption, KeyHash};
use alluvium_io::AlignedBuffer;

use super::error::{Error, Result};
use super::page::{Layout, PAGE_BYTES};
use super::section::Section;
use crate::item::{EncodedItem, Item};

/// Default bytes of a read: 1 MiB keeps a device at its sequential rate, and merges hold one buffer per run.
const READ_BYTES: usize = 1 << 20;

/// A cursor over the items of a section, from a page on.
///
/// [`SectionScanner::advance`] moves to the next item, [`SectionScanner::current`] is the item there; a merge compares
/// the current items of several scanners. Starts before the first item. Every page is checked as it is entered; in a
/// section of sorted layout also that (hash, key) ascends, so that a merge may rely on it.
#[derive(Debug)]
pub(crate) struct SectionScanner {
    section: Arc<Section>,
    buffer: AlignedBuffer,
    read_pages: usize,
    /// First page that is not in the buffer yet.
    unread_page: u32,
    /// Page that the buffer begins with.
    buffer_page: u32,
    /// Start of the page after the current one, within the buffer.
    next_page: usize,
    /// Where the next item starts.
    position: usize,
    /// Where the items of the current page end.
    items_end: usize,
    items_left: usize,
    current: Option<Current>,
    /// Key of the item before, where it has left the buffer or was needed.
    previous_key: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Current {
    hash: KeyHash,
    start: usize,
    end: usize,
}

impl SectionScanner {
    /// A scanner of all items.
    pub fn new(section: Arc<Section>) -> Self {
        Self::from_page(section, 0)
    }

    /// A scanner of the items from `page` on; none when there is no such page.
    pub fn from_page(section: Arc<Section>, page: u32) -> Self {
        Self::with_read_bytes(section, page, READ_BYTES)
    }

    /// A scanner from `page` on that reads about `read_bytes` at a time: less for short ranges.
    pub fn with_read_bytes(section: Arc<Section>, page: u32, read_bytes: usize) -> Self {
        let pages_max = section.page_count().saturating_sub(page) as usize;
        Self {
            read_pages: (read_bytes / PAGE_BYTES).clamp(1, pages_max.max(1)),
            section,
            buffer: AlignedBuffer::new(),
            unread_page: page,
            buffer_page: page,
            next_page: 0,
            position: 0,
            items_end: 0,
            items_left: 0,
            current: None,
            previous_key: Vec::new(),
        }
    }

    /// A scanner of sorted layout that starts with the first item whose hash is at least `hash`: it stands there, so
    /// read [`SectionScanner::current`] before advancing. Reads about log2 of the number of pages before.
    pub fn seek(section: Arc<Section>, hash: KeyHash, read_bytes: usize) -> Result<Self> {
        let page = first_page_for(&section, hash)?;
        let mut scanner = Self::with_read_bytes(section, page, read_bytes);
        while scanner.advance()? {
            if scanner.current.is_some_and(|current| current.hash >= hash) {
                break;
            }
        }
        Ok(scanner)
    }

    /// The hash and the item that the scanner stands on; `None` before the first and behind the last.
    #[inline]
    #[cfg(test)]
    pub fn current(&self) -> Option<(KeyHash, Item<'_>)> {
        let Current { hash, start, end } = self.current?;
        Item::decode(&self.buffer[start..end]).map(|(item, _)| (hash, item))
    }

    /// The current item with its hash and its encoding.
    #[inline]
    pub fn current_encoded(&self) -> Option<(KeyHash, EncodedItem<'_>)> {
        let Current { hash, start, end } = self.current?;
        EncodedItem::decode(&self.buffer[start..end]).map(|item| (hash, item))
    }

    /// Moves to the next item; `false` behind the last.
    ///
    /// # Errors
    /// After an error the scanner stands on no item, and the scan is over.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        let previous = self.current.take();
        let left_page = self.items_left == 0;
        if left_page {
            self.keep_key(previous);
            if !self.enter_next_page().map_err(|error| self.stop(error))? {
                return Ok(false);
            }
        }
        self.step(previous, left_page).map_err(|corruption| {
            let offset = self.section.page_offset(self.buffer_page);
            let corruption = corruption.within(self.section.file().name(), offset);
            self.stop(corruption.into())
        })?;
        Ok(true)
    }

    /// Moves to the next item and returns it: [`SectionScanner::advance`] and [`SectionScanner::current`] in one.
    #[inline]
    #[cfg(test)]
    pub fn next(&mut self) -> Result<Option<(KeyHash, Item<'_>)>> {
        Ok(if self.advance()? { self.current() } else { None })
    }

    /// Makes the item at the position current. The key of the `previous` one was kept if the scanner `left_page`.
    ///
    /// Offsets of corruptions are relative to the buffer.
    #[inline]
    fn step(&mut self, previous: Option<Current>, left_page: bool) -> std::result::Result<(), Corruption> {
        let start = self.position;
        let Some((item, len)) = self.buffer.get(start..self.items_end).and_then(Item::decode) else {
            return Err(fault(start, "an item", "bytes that are none"));
        };
        let hash = self.section.hasher().hash(item.key);
        if let Some(previous) = previous
            && hash <= previous.hash
            && self.section.layout() == Layout::Sorted
        {
            self.check_tie(hash, previous, left_page)?;
        }
        let (low, high) = self.section.range();
        if hash.high() < low || hash.high() > high {
            return Err(fault(start, format!("a hash in {low:016x}..={high:016x}"), format!("{hash:?}")));
        }
        self.position = start + len;
        self.items_left -= 1;
        if self.items_left == 0 && self.position != self.items_end {
            let found = format!("{} more bytes", self.items_end - self.position);
            return Err(fault(self.position, "the end of the page's items", found));
        }
        self.current = Some(Current { hash, start, end: start + len });
        Ok(())
    }

    /// Equal hashes are in order when their keys ascend.
    #[cold]
    fn check_tie(
        &mut self,
        hash: KeyHash,
        previous: Current,
        left_page: bool,
    ) -> std::result::Result<(), Corruption> {
        if !left_page {
            self.keep_key(Some(previous));
        }
        let key = Item::decode(&self.buffer[self.position..self.items_end]).map(|(item, _)| item.key);
        if hash == previous.hash && key > Some(&self.previous_key) {
            return Ok(());
        }
        let found = format!("{hash:?} after {:?}", previous.hash);
        Err(fault(self.position, "ascending hashes, and keys among equal ones", found))
    }

    /// Keeps the key of `item`, which is about to leave the buffer.
    #[inline]
    fn keep_key(&mut self, item: Option<Current>) {
        if let Some(Current { start, end, .. }) = item
            && let Some((item, _)) = Item::decode(&self.buffer[start..end])
        {
            self.previous_key.clear();
            self.previous_key.extend_from_slice(item.key);
        }
    }

    /// Enters the next page that has items; `false` behind the last page.
    fn enter_next_page(&mut self) -> Result<bool> {
        loop {
            if self.next_page == self.buffer.len() && !self.read_on()? {
                return Ok(false);
            }
            let start = self.next_page;
            self.next_page += PAGE_BYTES;
            let number = self.buffer_page + (start / PAGE_BYTES) as u32;
            let page = self.section.check_page(number, &self.buffer[start..self.next_page])?;
            self.items_left = page.item_count();
            self.position = start + page.items_start();
            self.items_end = start + page.used_bytes();
            if self.items_left > 0 {
                return Ok(true);
            }
        }
    }

    /// Fills the buffer with the next pages; `false` when there are none.
    #[cold]
    fn read_on(&mut self) -> Result<bool> {
        let left = self.section.page_count().saturating_sub(self.unread_page);
        let count = self.read_pages.min(left as usize);
        if count == 0 {
            return Ok(false);
        }
        self.section.read_pages(self.unread_page, count, &mut self.buffer)?;
        self.buffer_page = self.unread_page;
        self.unread_page += count as u32;
        self.next_page = 0;
        Ok(true)
    }

    /// Ends the scan because of `error`: what follows damage has no known order.
    #[cold]
    fn stop(&mut self, error: Error) -> Error {
        self.buffer.clear();
        self.next_page = 0;
        self.unread_page = self.section.page_count();
        self.items_left = 0;
        self.current = None;
        error
    }
}

#[cold]
fn fault(position: usize, expected: impl Into<String>, found: impl Into<String>) -> Corruption {
    Corruption::new("scan", position as u64, expected, found)
}

/// The page where a scan for `hash` and everything behind it begins.
fn first_page_for(section: &Section, hash: KeyHash) -> Result<u32> {
    if section.page_count() == 0 {
        return Ok(0);
    }
    if let Some(page) = section.index()?.first_page(hash) {
        return Ok(page);
    }
    // The last page that begins below `hash`: items equal to it may end that page.
    let (mut low, mut high) = (0, section.page_count());
    let mut buffer = AlignedBuffer::new();
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        section.read_pages(middle, 1, &mut buffer)?;
        let page = section.check_page(middle, &buffer)?;
        let start = page.items_start();
        let Some((item, _)) = Item::decode(&buffer[start..page.used_bytes()]) else {
            let offset = section.page_offset(middle) + start as u64;
            let name = section.file().name();
            return Err(Corruption::new(name, offset, "an item", "bytes that are none").into());
        };
        if section.hasher().hash(item.key) < hash {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
