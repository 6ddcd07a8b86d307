//! [`SectionRange`]: a part of a section, by hashes, and the pages where it lies.

use std::sync::Arc;

use alluvium_base::{Corruption, KeyHash};
use alluvium_io::AlignedBuffer;

use super::error::Result;
use super::page::Layout;
use super::read_ahead::Extent;
use super::section::Section;
use crate::item::Item;

/// A part of the hash space, of which a section's items are wanted.
#[derive(Clone, Debug)]
pub(crate) struct SectionRange {
    pub section: Arc<Section>,
    /// Lowest [`KeyHash::high`] wanted.
    pub low: u64,
    /// Highest one, included.
    pub high: u64,
}

impl SectionRange {
    /// The pages to read: found in the index, or by about log2 of the number of pages in reads.
    pub(super) fn extent(&self) -> Result<Extent> {
        let Self { section, low, high } = self;
        if section.layout() == Layout::Bucketed && section.page_count() > 0 {
            let index = section.index_without_filter()?;
            let group = |hash| index.buckets().map(|buckets| buckets.group_pages(buckets.group_of(hash)));
            let pages = group(*low).map_or(0, |pages| pages.start)..group(*high).map_or(0, |pages| pages.end);
            return Ok(Extent { section: Arc::clone(section), pages });
        }
        let first = first_page_for(section, KeyHash::from_halves(*low, 0))?;
        let above = high.checked_add(1).map(|above| KeyHash::from_halves(above, 0));
        let last = match above {
            Some(above) if section.page_count() > 0 => section.index()?.first_page(above),
            _ => None,
        };
        // The last item wanted may go on in the page behind its own.
        let pages = 1 + u32::from(section.entry().items_go_on);
        let end =
            last.map_or(section.page_count(), |last| last.saturating_add(pages).min(section.page_count()));
        Ok(Extent { section: Arc::clone(section), pages: first..end.max(first) })
    }
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
