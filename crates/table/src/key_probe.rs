//! [`KeyProbe`]: finds out whether a table has keys of a hash, for ascending hashes.

use std::ops::Range;
use std::sync::Arc;

use alluvium_base::KeyHash;
use alluvium_io::AlignedBuffer;

use crate::error::Result;
use crate::item::Item;
use crate::page::{PAGE_BYTES, page_tag};
use crate::page_list::PageRead;
use crate::section::Section;

/// Maximum pages of a read, used if nearly every page is needed.
const READ_PAGES_MAX: u32 = 32;

/// What a table has of a hash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// An item of the key.
    pub same_key: bool,
    /// An item of another key.
    pub other_key: bool,
}

/// Looks for keys in a section of sorted layout, regardless of its filter. The hashes ascend, so each page is read
/// once: alone if few pages are needed, in reads of many if most are.
#[derive(Debug)]
pub(super) struct KeyProbe {
    section: Arc<Section>,
    buffer: AlignedBuffer,
    /// The pages in the buffer.
    pages: Range<u32>,
    /// Pages of the next read if it begins where the last one ended or soon after.
    ahead: u32,
    /// The page, and perhaps the one after it, whose items are in `items`.
    opened: Option<PageRead>,
    /// Hashes of the items that begin in the page, and the positions of their keys in `keys`.
    items: Vec<(KeyHash, Range<usize>)>,
    keys: Vec<u8>,
}

impl KeyProbe {
    pub fn new(section: Arc<Section>) -> Self {
        Self {
            section,
            buffer: AlignedBuffer::new(),
            pages: 0..0,
            ahead: 1,
            opened: None,
            items: Vec::new(),
            keys: Vec::new(),
        }
    }

    /// What the section has of the key's hash.
    pub fn look(&mut self, hash: KeyHash, key: &[u8]) -> Result<Seen> {
        let mut seen = Seen::default();
        for read in self.section.locate_covered(hash)?.iter() {
            if self.opened != Some(read) {
                self.open(read)?;
            }
            for (_, range) in self.items.iter().filter(|(other, _)| *other == hash) {
                let is_same = self.keys[range.clone()] == *key;
                seen = Seen { same_key: seen.same_key || is_same, other_key: seen.other_key || !is_same };
            }
        }
        Ok(seen)
    }

    fn open(&mut self, read: PageRead) -> Result<()> {
        self.opened = None;
        self.load(read)?;
        let (items, keys, section) = (&mut self.items, &mut self.keys, &self.section);
        items.clear();
        keys.clear();
        let mut note = |item: &Item<'_>| {
            let start = keys.len();
            keys.extend_from_slice(item.key);
            items.push((section.hasher().hash(item.key), start..keys.len()));
        };
        let start = (read.page - self.pages.start) as usize * PAGE_BYTES;
        let (first, rest) = self.buffer[start..].split_at(PAGE_BYTES);
        let page = section.check_page(read.page, first)?;
        let within = |corruption| section.within_page(read.page, corruption);
        for (_, item) in page.items().map_err(within)? {
            note(&item);
        }
        if read.count > 1
            && let Some((tag, begun)) = page.begun().map_err(within)?
        {
            let carried = section.check_page(read.page + 1, &rest[..PAGE_BYTES])?.carried();
            let whole = [begun, carried].concat();
            // Bytes that are not an item have no key: a read of them reports that.
            if let Some((item, _)) = Item::decode(&whole)
                && page_tag(section.hasher().hash(item.key)) == tag
            {
                note(&item);
            }
        }
        self.opened = Some(read);
        Ok(())
    }

    /// Reads the pages of `read` into the buffer unless they are there.
    fn load(&mut self, read: PageRead) -> Result<()> {
        let end = read.page + read.count;
        if read.page >= self.pages.start && end <= self.pages.end {
            return Ok(());
        }
        let is_near = read.page >= self.pages.start && read.page.saturating_sub(self.pages.end) < self.ahead;
        self.ahead = if is_near { (2 * self.ahead).min(READ_PAGES_MAX) } else { 1 };
        let end = (read.page + self.ahead).max(end).min(self.section.page_count());
        self.pages = 0..0;
        self.section.read_pages(read.page, (end - read.page) as usize, &mut self.buffer)?;
        self.pages = read.page..end;
        Ok(())
    }
}
