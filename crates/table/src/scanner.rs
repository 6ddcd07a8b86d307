//! [`SectionScanner`]: iterates over the items of sections in order, by large sequential reads.

use std::sync::Arc;

use alluvium_base::{Corruption, HashRange, KeyHash};
use alluvium_io::{AlignedBuffer, Storage};

use crate::error::{Error, Result};
use crate::group_scan::GroupItems;
use crate::item::{EncodedItem, Item};
use crate::page::PAGE_BYTES;
use crate::read_ahead::{Extent, ReadAhead};
use crate::scan_scope::Scope;
use crate::section::Section;

/// Bytes per read.
#[cfg(test)]
const READ_BYTES: usize = 1 << 20;
/// Bytes per read if several are in flight, unless memory is short.
pub const READ_AHEAD_BYTES: usize = 512 << 10;

/// A cursor over the items of a section from a given page on, or of several sections one after the other.
///
/// [`SectionScanner::advance`] moves to the next item, [`SectionScanner::current_encoded`] is the item there. It starts
/// before the first item. Every page is checked when it is entered; in sections of sorted or bucketed layout the
/// ascending order of (hash, key) is checked as well, so that a merge may rely on it. In a section in buckets it holds
/// the items of one group.
#[derive(Debug)]
pub struct SectionScanner {
    reads: ReadAhead,
    /// The wanted part of each section; empty if everything is wanted.
    wanted: Vec<HashRange>,
    /// The section of the buffer's pages, or `None` before the first read.
    scope: Option<Scope>,
    buffer: AlignedBuffer,
    /// Number of the first page in the buffer.
    buffer_page: u32,
    /// Position in the buffer of the page after the current one.
    next_page: usize,
    /// Position of the next item.
    position: usize,
    /// Position at which the items of the current page end.
    items_end: usize,
    items_left: usize,
    /// The beginning of the item that continues in the next page, later the whole item.
    joined: Vec<u8>,
    /// Whether an item after those of the current page continues in the next one.
    goes_on: bool,
    /// Whether `joined` is the next item.
    joined_waits: bool,
    /// In bucketed layout, the items of the group of buckets that the scanner is in.
    group: GroupItems,
    current: Option<Current>,
    /// Key of the previous item, if that has left the buffer or the key was needed.
    previous_key: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Current {
    hash: KeyHash,
    start: usize,
    end: usize,
    place: Place,
}

/// What stores an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Buffer,
    Joined,
    Group,
}

impl SectionScanner {
    /// A scanner of all items.
    #[cfg(test)]
    pub fn new(section: Arc<Section>) -> Self {
        Self::with_read_bytes(section, 0, READ_BYTES)
    }

    /// A scanner from `page` on that reads some `read_bytes` at a time: less for short ranges.
    pub fn with_read_bytes(section: Arc<Section>, page: u32, read_bytes: usize) -> Self {
        let pages = page.min(section.page_count())..section.page_count();
        Self::over(ReadAhead::without([Extent { section, pages }], read_bytes), Vec::new())
    }

    /// A scanner of all items of `sections`, files of `storage`, one section after the other, with read-ahead. Holds
    /// [`READS_AHEAD_MAX`](crate::READS_AHEAD_MAX) buffers of `read_bytes`.
    pub fn chain(
        storage: &dyn Storage,
        sections: impl IntoIterator<Item = Arc<Section>>,
        read_bytes: usize,
    ) -> Self {
        let extents = sections.into_iter().map(|section| Extent { pages: 0..section.page_count(), section });
        Self::over(ReadAhead::start(storage, extents, read_bytes), Vec::new())
    }

    /// Reads the beginnings of all `scanners` together. To be called before any of them advances.
    pub fn begin_together(storage: &dyn Storage, scanners: &mut [Self]) -> Result<()> {
        ReadAhead::begin_together(storage, scanners.iter_mut().map(|scanner| &mut scanner.reads))
    }

    pub(super) fn over(reads: ReadAhead, wanted: Vec<HashRange>) -> Self {
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
            joined: Vec::new(),
            goes_on: false,
            joined_waits: false,
            group: GroupItems::default(),
            current: None,
            previous_key: Vec::new(),
        }
    }

    /// The hash and the item at the current position; `None` before the first and after the last item.
    #[inline]
    #[cfg(test)]
    pub fn current(&self) -> Option<(KeyHash, Item<'_>)> {
        let current = self.current?;
        Item::decode(self.bytes_of(current)).map(|(item, _)| (current.hash, item))
    }

    /// The current item with its hash and its encoded bytes.
    #[inline]
    pub fn current_encoded(&self) -> Option<(KeyHash, EncodedItem<'_>)> {
        let current = self.current?;
        EncodedItem::decode(self.bytes_of(current)).map(|item| (current.hash, item))
    }

    #[inline]
    fn bytes_of(&self, item: Current) -> &[u8] {
        let bytes = match item.place {
            Place::Buffer => &self.buffer[..],
            Place::Joined => &self.joined[..],
            Place::Group => self.group.bytes(),
        };
        &bytes[item.start..item.end]
    }

    /// The number of the current item's section among those that are scanned.
    #[inline]
    pub fn section_number(&self) -> usize {
        self.scope.as_ref().map_or(0, |scope| scope.number)
    }

    /// Moves to the next item; returns `false` after the last.
    ///
    /// # Errors
    /// After an error the scanner is at no item, and the scan is over.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        let mut previous = self.current.take();
        loop {
            let left_page = self.items_left == 0 && !self.joined_waits;
            if left_page {
                self.keep_key(previous);
                match self.enter_next_page().map_err(|error| self.stop(error))? {
                    Entered::Page => {}
                    Entered::Section => previous = None,
                    Entered::End => return Ok(false),
                }
            }
            let item = self.step().map_err(|corruption| self.corrupt(corruption))?;
            self.check_order(item, previous, left_page).map_err(|corruption| self.corrupt(corruption))?;
            let wanted = self.scope.as_ref().map_or(HashRange::ALL, |scope| scope.wanted);
            if wanted.contains(item.hash.0) {
                self.current = Some(item);
                return Ok(true);
            }
            previous = Some(item);
        }
    }

    /// Moves over the next item of the current page. Offsets of corruptions are relative to the buffer.
    #[inline]
    fn step(&mut self) -> std::result::Result<Current, Corruption> {
        let scope = self.scope.as_mut().expect("a page of it was entered");
        if let Some((hash, range)) = self.group.next() {
            self.items_left -= 1;
            return Ok(Current { hash, start: range.start, end: range.end, place: Place::Group });
        }
        let is_joined = std::mem::take(&mut self.joined_waits);
        let (bytes, start) =
            if is_joined { (&self.joined[..], 0) } else { (&self.buffer[..self.items_end], self.position) };
        let Some((item, len)) = bytes.get(start..).and_then(Item::decode) else {
            return Err(fault(start, "an item", "other bytes"));
        };
        let hash = scope.section.hasher().hash_next(item.key, &mut scope.last_prefix);
        let range = scope.section.range();
        if !range.contains(hash.0) {
            return Err(fault(start, format!("a hash in {range}"), format!("{hash:?}")));
        }
        let end = start + len;
        let (is_last, goes_on) = if is_joined {
            (true, false)
        } else {
            self.position = end;
            self.items_left -= 1;
            (self.items_left == 0, self.goes_on)
        };
        if is_last && (end != bytes.len()) != goes_on {
            let found = format!("{} more bytes", bytes.len() - end);
            return Err(fault(end, "the end of the page's items", found));
        }
        let place = if is_joined { Place::Joined } else { Place::Buffer };
        Ok(Current { hash, start, end, place })
    }

    /// Checks that hash and key ascend in a section of sorted layout. The key of the `previous` item was kept if the
    /// scanner `left_page`.
    #[inline]
    fn check_order(
        &mut self,
        item: Current,
        previous: Option<Current>,
        left_page: bool,
    ) -> std::result::Result<(), Corruption> {
        let is_ordered = self.scope.as_ref().is_some_and(|scope| scope.section.layout().is_ordered());
        match previous {
            Some(previous) if item.hash <= previous.hash && is_ordered => {
                self.check_tie(item, previous, left_page)
            }
            _ => Ok(()),
        }
    }

    #[cold]
    fn corrupt(&mut self, corruption: Corruption) -> Error {
        let Some(Scope { section, .. }) = &self.scope else { return corruption.into() };
        let corruption = corruption.within(section.file().name(), section.page_offset(self.buffer_page));
        self.stop(corruption.into())
    }

    /// Moves to the next item and returns it: [`SectionScanner::advance`] and [`SectionScanner::current`] in one call.
    #[inline]
    #[cfg(test)]
    pub(crate) fn next(&mut self) -> Result<Option<(KeyHash, Item<'_>)>> {
        Ok(if self.advance()? { self.current() } else { None })
    }

    /// Checks that the keys of items of equal hash ascend.
    #[cold]
    fn check_tie(
        &mut self,
        item: Current,
        previous: Current,
        left_page: bool,
    ) -> std::result::Result<(), Corruption> {
        if !left_page {
            self.keep_key(Some(previous));
        }
        let key = Item::decode(self.bytes_of(item)).map(|(item, _)| item.key);
        if item.hash == previous.hash && key > Some(&self.previous_key) {
            return Ok(());
        }
        let found = format!("{:?} after {:?}", item.hash, previous.hash);
        Err(fault(item.start, "ascending hashes, and keys among equal ones", found))
    }

    /// Keeps the key of `item`, which is about to leave the buffer.
    #[inline]
    fn keep_key(&mut self, item: Option<Current>) {
        let Some(item) = item else { return };
        let mut kept = std::mem::take(&mut self.previous_key);
        if let Some((item, _)) = Item::decode(self.bytes_of(item)) {
            kept.clear();
            kept.extend_from_slice(item.key);
        }
        self.previous_key = kept;
    }

    /// Enters the next page that has items, or finishes one.
    fn enter_next_page(&mut self) -> Result<Entered> {
        let number_before = self.scope.as_ref().map(|scope| scope.number);
        loop {
            self.keep_beginning();
            if self.next_page == self.buffer.len() && !self.read_on()? {
                return Ok(Entered::End);
            }
            let Some(Scope { section, number, buckets, .. }) = &self.scope else { return Ok(Entered::End) };
            let start = self.next_page;
            self.next_page += PAGE_BYTES;
            let page_number = self.buffer_page + (start / PAGE_BYTES) as u32;
            let page = section.check_page(page_number, &self.buffer[start..self.next_page])?;
            if let Some(buckets) = buckets {
                if !self.group.take_in(section, buckets, page_number, &page)? {
                    continue;
                }
                self.items_left = self.group.len();
                let same = number_before == Some(*number);
                return Ok(if same { Entered::Page } else { Entered::Section });
            }
            self.items_left = page.whole_count();
            self.position = start + page.items_start();
            self.items_end = start + page.used_bytes();
            self.goes_on = page.goes_on();
            // A scan that begins here ignores the rest of an item that began before.
            let is_begun = !self.joined.is_empty();
            if is_begun == page.carried_range().is_empty() && (is_begun || page_number == 0) {
                let found = format!("{} bytes", page.carried_range().len());
                let expected = "the rest of the previous item, if that continues";
                let corruption = Corruption::new("page", 0, expected, found);
                return Err(section.within_page(page_number, corruption).into());
            }
            if is_begun {
                self.joined.extend_from_slice(&self.buffer[start..self.next_page][page.carried_range()]);
                self.joined_waits = true;
            }
            if self.items_left > 0 || self.joined_waits {
                let same = number_before == Some(*number);
                return Ok(if same { Entered::Page } else { Entered::Section });
            }
        }
    }

    /// Keeps the beginning of an item that continues after the page about to be left.
    fn keep_beginning(&mut self) {
        self.joined.clear();
        if std::mem::take(&mut self.goes_on) {
            self.joined.extend_from_slice(&self.buffer[self.position..self.items_end]);
        }
    }

    /// Fills the buffer with the next pages. Returns `false` at the end.
    #[cold]
    fn read_on(&mut self) -> Result<bool> {
        let pages_end = self.buffer_page + (self.next_page / PAGE_BYTES) as u32;
        self.next_page = 0;
        let piece = self.reads.next(std::mem::take(&mut self.buffer))?;
        let next_number = piece.as_ref().map(|piece| piece.number);
        if let Some(Scope { number, section, .. }) = &self.scope
            && next_number != Some(*number)
            && !self.joined.is_empty()
        {
            // If only a part of the section is scanned, an item that ends after it is not wanted.
            if pages_end == section.page_count() {
                let corruption =
                    Corruption::new("page", 0, "a next page in which the last item continues", "none");
                return Err(section.within_page(pages_end - 1, corruption).into());
            }
            self.joined.clear();
        }
        let Some(piece) = piece else { return Ok(false) };
        self.buffer = piece.buffer;
        self.buffer_page = piece.extent.pages.start;
        if self.scope.as_ref().is_none_or(|scope| scope.number != piece.number) {
            let wanted = self.wanted.get(piece.number).copied().unwrap_or(HashRange::ALL);
            self.group.clear();
            self.scope = Some(Scope::new(piece.number, piece.extent.section, wanted)?);
        }
        Ok(true)
    }

    /// Ends the scan because of `error`: after damage the order is unknown.
    #[cold]
    fn stop(&mut self, error: Error) -> Error {
        self.buffer.clear();
        self.next_page = 0;
        self.reads.stop();
        self.items_left = 0;
        self.goes_on = false;
        self.joined_waits = false;
        self.group.clear();
        self.current = None;
        error
    }
}

/// The result of [`SectionScanner::enter_next_page`].
enum Entered {
    /// Another page of the same section.
    Page,
    /// The first page of a section.
    Section,
    /// Nothing is left.
    End,
}

#[cold]
fn fault(position: usize, expected: impl Into<String>, found: impl Into<String>) -> Corruption {
    Corruption::new("scan", position as u64, expected, found)
}
