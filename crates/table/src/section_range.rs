//! [`SectionRange`]: a part of a section, given by hashes, and the pages that contain it.

use std::ops::Range;
use std::sync::Arc;

use alluvium_base::{Corruption, HashRange, KeyHash};
use alluvium_io::{AlignedBuffer, Storage};

use crate::error::Result;
use crate::item::Item;
use crate::page::Layout;
use crate::read_ahead::{Extent, ReadAhead};
use crate::scanner::SectionScanner;
use crate::section::Section;

/// Minimum number of pages of a prefix for which the first is read beforehand if no filter knows prefixes. To read
/// fewer pages for nothing takes the device no longer than that first read, which would delay all other reads of a
/// scan.
const PROBED_PAGES_MIN: u32 = 32;

/// A part of the hash space for which a section's items are wanted.
#[derive(Clone, Debug)]
pub struct SectionRange {
    /// The section.
    pub section: Arc<Section>,
    /// The hashes wanted.
    pub range: HashRange,
}

impl SectionRange {
    /// The part of the section within `range`, or `None` if there is none.
    pub fn of(section: &Arc<Section>, range: HashRange) -> Option<Self> {
        let range = section.range().clip(range)?;
        Some(Self { section: Arc::clone(section), range })
    }

    /// A scanner of the range without read-ahead: reads `read_bytes` at a time, when they are needed.
    pub(super) fn scanner(&self, read_bytes: usize) -> Result<SectionScanner> {
        Self::scanner_of(std::slice::from_ref(self), read_bytes)
    }

    /// A scanner of these ranges, one after the other, without read-ahead: reads `read_bytes` at a time, when they are
    /// needed.
    pub fn scanner_of(ranges: &[Self], read_bytes: usize) -> Result<SectionScanner> {
        let extents = ranges.iter().map(Self::extent).collect::<Result<Vec<_>>>()?;
        let wanted = ranges.iter().map(|range| range.range).collect();
        Ok(SectionScanner::over(ReadAhead::without(extents, read_bytes), wanted))
    }

    /// The pages to read. They are found in the index, or by a few reads that start where the index would look for an
    /// end of the range. For a whole section this costs nothing.
    pub(super) fn extent(&self) -> Result<Extent> {
        let Self { section, range } = self;
        let own = section.range();
        if range.covers(own) {
            return Ok(Extent { section: Arc::clone(section), pages: 0..section.page_count() });
        }
        if let Some(pages) = self.prefix_pages()? {
            return Ok(Extent { section: Arc::clone(section), pages });
        }
        if section.layout() == Layout::Bucketed && section.page_count() > 0 {
            let index = section.index_without_filter()?;
            let (low, high) = range.high_halves();
            let group = |hash| index.buckets().map(|buckets| buckets.group_pages(buckets.group_of(hash)));
            let pages = group(low).map_or(0, |pages| pages.start)..group(high).map_or(0, |pages| pages.end);
            return Ok(Extent { section: Arc::clone(section), pages });
        }
        let first = if range.low <= own.low { 0 } else { first_page_for(section, KeyHash(range.low))? };
        let is_cut = range.high < own.high && section.page_count() > 0;
        let above = range.high.checked_add(1).filter(|_| is_cut).map(KeyHash);
        let last = above.map(|above| first_page_for(section, above)).transpose()?;
        // The last wanted item may continue in the next page.
        let pages = 1 + u32::from(section.entry().items_go_on);
        let end =
            last.map_or(section.page_count(), |last| last.saturating_add(pages).min(section.page_count()));
        Ok(Extent { section: Arc::clone(section), pages: first..end.max(first) })
    }
}

impl SectionScanner {
    /// Like [`SectionScanner::chain`], for parts of sections of sorted layout. Finds their pages in the indexes, or
    /// with some log2 as many reads as there are pages.
    pub fn chain_ranges(storage: &dyn Storage, ranges: &[SectionRange], read_bytes: usize) -> Result<Self> {
        let extents = ranges.iter().map(SectionRange::extent).collect::<Result<Vec<_>>>()?;
        let wanted = ranges.iter().map(|range| range.range).collect();
        Ok(Self::over(ReadAhead::start(storage, extents, read_bytes), wanted))
    }
}

impl SectionRange {
    /// The pages to read if the range is one prefix of a semi-sorted section, or `None` for other ranges and sections.
    /// The range is empty if the filter knows prefixes and not this one. The index distinguishes only prefixes that are
    /// present, so for a prefix with many pages the first is read; the range is empty if it belongs to another prefix.
    fn prefix_pages(&self) -> Result<Option<Range<u32>>> {
        let Self { section, range } = self;
        let (prefix_hash, _) = range.high_halves();
        if *range != HashRange::of_high_half(prefix_hash) || section.page_count() == 0 {
            return Ok(None);
        }
        let index = section.index()?;
        let known = index.has_prefix(prefix_hash);
        if known == Some(false) {
            return Ok(Some(0..0));
        }
        let Some((first, last)) = index.prefix_pages(prefix_hash) else { return Ok(None) };
        let end = last.saturating_add(1).min(section.page_count());
        if first >= end {
            return Ok(Some(0..0));
        }
        if known.is_none() && end - first >= PROBED_PAGES_MIN && !self.has_prefix(first, prefix_hash)? {
            return Ok(Some(0..0));
        }
        let goes_on = u32::from(section.entry().items_go_on);
        Ok(Some(first..(end + goes_on).min(section.page_count())))
    }

    /// Whether an item of the prefix begins in the page.
    fn has_prefix(&self, page: u32, prefix_hash: u64) -> Result<bool> {
        let section = &self.section;
        let mut buffer = AlignedBuffer::new();
        section.read_pages(page, 1, &mut buffer)?;
        let checked = section.check_page(page, &buffer)?;
        let items = checked.encoded_items().map_err(|corruption| section.within_page(page, corruption))?;
        let hash = |key: &[u8]| section.hasher().hash(key).high();
        // If an item continues in the next page, its key may be there: then nothing is known.
        Ok(checked.goes_on() || items.iter().any(|(_, item)| hash(item.item.key) == prefix_hash))
    }
}

/// The page at which a scan for `hash` and everything after it begins.
fn first_page_for(section: &Section, hash: KeyHash) -> Result<u32> {
    let count = section.page_count();
    if count == 0 {
        return Ok(0);
    }
    let index = section.index()?;
    if let Some(page) = index.first_page(hash) {
        return Ok(page);
    }
    // The last page that begins below `hash`: items equal to it may be at the end of that page. An index of present
    // keys usually gives a page close to that of another key, so the search widens from there.
    let hint = index.locate_unfiltered(hash).iter().next().map_or(0, |read| read.page.min(count - 1));
    let mut buffer = AlignedBuffer::new();
    let is_below = |page: u32, buffer: &mut AlignedBuffer| -> Result<bool> {
        Ok(first_hash_from(section, page, buffer)?.is_some_and(|first| first < hash))
    };
    let (mut low, mut high) = (hint, hint);
    let mut step = 1;
    if is_below(hint, &mut buffer)? {
        high = count;
        while let Some(page) = low.checked_add(step).filter(|&page| page < count) {
            if !is_below(page, &mut buffer)? {
                high = page;
                break;
            }
            (low, step) = (page, step.saturating_mul(2));
        }
    } else {
        low = 0;
        while let Some(page) = high.checked_sub(step).filter(|&page| page > 0) {
            if is_below(page, &mut buffer)? {
                low = page;
                break;
            }
            (high, step) = (page, step.saturating_mul(2));
        }
    }
    while high.saturating_sub(low) > 1 {
        let middle = low + (high - low) / 2;
        if is_below(middle, &mut buffer)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// The hash of the first item that begins in `page` or after it: a page may contain only the rest of an item.
fn first_hash_from(section: &Section, page: u32, buffer: &mut AlignedBuffer) -> Result<Option<KeyHash>> {
    for number in page..section.page_count() {
        section.read_pages(number, 1, buffer)?;
        let page = section.check_page(number, buffer)?;
        if page.whole_count() == 0 {
            continue;
        }
        let start = page.items_start();
        let Some((item, _)) = Item::decode(&buffer[start..page.used_bytes()]) else {
            let offset = section.page_offset(number) + start as u64;
            let name = section.file().name();
            return Err(Corruption::new(name, offset, "an item", "other bytes").into());
        };
        return Ok(Some(section.hasher().hash(item.key)));
    }
    Ok(None)
}
