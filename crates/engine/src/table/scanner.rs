//! [`SectionScanner`]: the items of sections in their order, through large sequential reads.

use std::sync::Arc;

use alluvium_base::{Corruption, KeyHash};
use alluvium_io::{AlignedBuffer, Storage};

use super::error::{Error, Result};
use super::page::{Layout, PAGE_BYTES};
use super::read_ahead::{Extent, ReadAhead};
use super::section::Section;
use crate::item::{EncodedItem, Item};

/// Bytes of a read.
#[cfg(test)]
const READ_BYTES: usize = 1 << 20;
/// Bytes of a read where several are in flight, unless memory is short.
pub(crate) const READ_AHEAD_BYTES: usize = 512 << 10;

/// A part of the hash space, of which a section's items are wanted.
#[derive(Clone, Debug)]
pub(crate) struct SectionRange {
    pub section: Arc<Section>,
    /// Lowest [`KeyHash::high`] wanted.
    pub low: u64,
    /// Highest one, included.
    pub high: u64,
}

/// A cursor over the items of a section from a page on, or of several sections one after the other.
///
/// [`SectionScanner::advance`] moves to the next item, [`SectionScanner::current_encoded`] is the item there. Starts
/// before the first item. Every page is checked as it is entered; in a section of sorted layout also that (hash, key)
/// ascends, so that a merge may rely on it.
#[derive(Debug)]
pub(crate) struct SectionScanner {
    reads: ReadAhead,
    /// What part of each section is wanted; empty where everything is.
    wanted: Vec<(u64, u64)>,
    /// The section that the buffer belongs to; `None` before the first read.
    scope: Option<Scope>,
    buffer: AlignedBuffer,
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

/// The section being scanned.
#[derive(Clone, Debug)]
struct Scope {
    /// Its number among the sections to scan.
    number: usize,
    section: Arc<Section>,
    /// Lowest and highest [`KeyHash::high`] wanted.
    wanted: (u64, u64),
}

#[derive(Clone, Copy, Debug)]
struct Current {
    hash: KeyHash,
    start: usize,
    end: usize,
}

impl SectionScanner {
    /// A scanner of all items.
    #[cfg(test)]
    pub fn new(section: Arc<Section>) -> Self {
        Self::from_page(section, 0)
    }

    /// A scanner of the items from `page` on; none when there is no such page.
    #[cfg(test)]
    pub fn from_page(section: Arc<Section>, page: u32) -> Self {
        Self::with_read_bytes(section, page, READ_BYTES)
    }

    /// A scanner from `page` on that reads about `read_bytes` at a time: less for short ranges.
    pub fn with_read_bytes(section: Arc<Section>, page: u32, read_bytes: usize) -> Self {
        let pages = page.min(section.page_count())..section.page_count();
        Self::over(ReadAhead::without([Extent { section, pages }], read_bytes), Vec::new())
    }

    /// A scanner of all items of `sections`, files of `storage`, one section after the other, with reads ahead: it
    /// holds [`READS_AHEAD_MAX`](super::READS_AHEAD_MAX) buffers of `read_bytes`.
    pub fn chain(
        storage: &dyn Storage,
        sections: impl IntoIterator<Item = Arc<Section>>,
        read_bytes: usize,
    ) -> Self {
        let extents = sections.into_iter().map(|section| Extent { pages: 0..section.page_count(), section });
        Self::over(ReadAhead::start(storage, extents, read_bytes), Vec::new())
    }

    /// Like [`SectionScanner::chain`], for parts of sections of sorted layout. Finds their pages in the indexes, or by
    /// about log2 of the number of pages in reads.
    pub fn chain_ranges(storage: &dyn Storage, ranges: &[SectionRange], read_bytes: usize) -> Result<Self> {
        let mut extents = Vec::with_capacity(ranges.len());
        for SectionRange { section, low, high } in ranges {
            let first = first_page_for(section, KeyHash::from_halves(*low, 0))?;
            let above = high.checked_add(1).map(|above| KeyHash::from_halves(above, 0));
            let last = match above {
                Some(above) if section.page_count() > 0 => section.index()?.first_page(above),
                _ => None,
            };
            let end = last.map_or(section.page_count(), |last| (last + 1).min(section.page_count()));
            extents.push(Extent { section: Arc::clone(section), pages: first..end.max(first) });
        }
        let wanted = ranges.iter().map(|range| (range.low, range.high)).collect();
        Ok(Self::over(ReadAhead::start(storage, extents, read_bytes), wanted))
    }

    fn over(reads: ReadAhead, wanted: Vec<(u64, u64)>) -> Self {
        Self {
            reads,
            wanted,
            scope: None,
            buffer: AlignedBuffer::new(),
            buffer_page: 0,
            next_page: 0,
            position: 0,
            items_end: 0,
            items_left: 0,
            current: None,
            previous_key: Vec::new(),
        }
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

    /// The number of the section that the current item is of, among those that are scanned.
    #[inline]
    pub fn section_number(&self) -> usize {
        self.scope.as_ref().map_or(0, |scope| scope.number)
    }

    /// Moves to the next item; `false` behind the last.
    ///
    /// # Errors
    /// After an error the scanner stands on no item, and the scan is over.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        let mut previous = self.current.take();
        loop {
            let left_page = self.items_left == 0;
            if left_page {
                self.keep_key(previous);
                match self.enter_next_page().map_err(|error| self.stop(error))? {
                    Entered::Page => {}
                    Entered::Section => previous = None,
                    Entered::End => return Ok(false),
                }
            }
            let scope = self.scope.as_ref().expect("a page of it was entered");
            let item = step(scope, &self.buffer[..self.items_end], self.position)
                .and_then(|item| self.check_order(item, previous, left_page).map(|()| item))
                .map_err(|corruption| self.corrupt(corruption))?;
            self.position = item.end;
            self.items_left -= 1;
            if self.items_left == 0 && self.position != self.items_end {
                let found = format!("{} more bytes", self.items_end - self.position);
                return Err(self.corrupt(fault(self.position, "the end of the page's items", found)));
            }
            let (low, high) = self.scope.as_ref().map_or((0, u64::MAX), |scope| scope.wanted);
            if item.hash.high() >= low && item.hash.high() <= high {
                self.current = Some(item);
                return Ok(true);
            }
            previous = Some(item);
        }
    }

    /// Hash and key ascend in a section of sorted layout. The key of the `previous` item was kept if the scanner
    /// `left_page`.
    #[inline]
    fn check_order(
        &mut self,
        item: Current,
        previous: Option<Current>,
        left_page: bool,
    ) -> std::result::Result<(), Corruption> {
        match previous {
            Some(previous) if item.hash <= previous.hash && self.is_sorted() => {
                self.check_tie(item.hash, previous, left_page)
            }
            _ => Ok(()),
        }
    }

    fn is_sorted(&self) -> bool {
        self.scope.as_ref().is_some_and(|scope| scope.section.layout() == Layout::Sorted)
    }

    #[cold]
    fn corrupt(&mut self, corruption: Corruption) -> Error {
        let Some(Scope { section, .. }) = &self.scope else { return corruption.into() };
        let corruption = corruption.within(section.file().name(), section.page_offset(self.buffer_page));
        self.stop(corruption.into())
    }

    /// Moves to the next item and returns it: [`SectionScanner::advance`] and [`SectionScanner::current`] in one.
    #[inline]
    #[cfg(test)]
    pub fn next(&mut self) -> Result<Option<(KeyHash, Item<'_>)>> {
        Ok(if self.advance()? { self.current() } else { None })
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

    /// Enters the next page that has items.
    fn enter_next_page(&mut self) -> Result<Entered> {
        let number_before = self.scope.as_ref().map(|scope| scope.number);
        loop {
            if self.next_page == self.buffer.len() && !self.read_on()? {
                return Ok(Entered::End);
            }
            let Some(Scope { section, number, .. }) = &self.scope else { return Ok(Entered::End) };
            let start = self.next_page;
            self.next_page += PAGE_BYTES;
            let page_number = self.buffer_page + (start / PAGE_BYTES) as u32;
            let page = section.check_page(page_number, &self.buffer[start..self.next_page])?;
            self.items_left = page.item_count();
            self.position = start + page.items_start();
            self.items_end = start + page.used_bytes();
            if self.items_left > 0 {
                let same = number_before == Some(*number);
                return Ok(if same { Entered::Page } else { Entered::Section });
            }
        }
    }

    /// Fills the buffer with the next pages; `false` when there are none.
    #[cold]
    fn read_on(&mut self) -> Result<bool> {
        self.next_page = 0;
        let Some(piece) = self.reads.next(std::mem::take(&mut self.buffer))? else { return Ok(false) };
        self.buffer = piece.buffer;
        self.buffer_page = piece.extent.pages.start;
        if self.scope.as_ref().is_none_or(|scope| scope.number != piece.number) {
            let wanted = self.wanted.get(piece.number).copied().unwrap_or((0, u64::MAX));
            self.scope = Some(Scope { number: piece.number, section: piece.extent.section, wanted });
        }
        Ok(true)
    }

    /// Ends the scan because of `error`: what follows damage has no known order.
    #[cold]
    fn stop(&mut self, error: Error) -> Error {
        self.buffer.clear();
        self.next_page = 0;
        self.reads.stop();
        self.items_left = 0;
        self.current = None;
        error
    }
}

/// What [`SectionScanner::enter_next_page`] came to.
enum Entered {
    /// Another page of the same section.
    Page,
    /// The first page of a section.
    Section,
    /// Nothing is left.
    End,
}

/// The item at `position` of `bytes`, which end where its page's items do. Offsets of corruptions are relative to the
/// buffer.
#[inline]
fn step(scope: &Scope, bytes: &[u8], position: usize) -> std::result::Result<Current, Corruption> {
    let Some((item, len)) = bytes.get(position..).and_then(Item::decode) else {
        return Err(fault(position, "an item", "bytes that are none"));
    };
    let hash = scope.section.hasher().hash(item.key);
    let (low, high) = scope.section.range();
    if hash.high() < low || hash.high() > high {
        return Err(fault(position, format!("a hash in {low:016x}..={high:016x}"), format!("{hash:?}")));
    }
    Ok(Current { hash, start: position, end: position + len })
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
