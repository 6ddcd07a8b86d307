//! [`SortedItems`]: a whole section of hash layout in memory, put into hash order for a merge.

use alluvium_base::{Corruption, KeyHash};
use alluvium_io::AlignedBuffer;

use super::error::Result;
use super::page::PAGE_BYTES;
use super::section::Section;
use crate::item::Item;

/// Bytes of one read.
const READ_BYTES: usize = 4 << 20;

/// The items of a section by (hash, key), with the pages they lie in.
///
/// Costs the section's pages plus 32 bytes of memory per item. SILT (§3.3) sorts HashStores by external merge; here
/// a section is a shard's share of a log, small enough to sort in memory.
#[derive(Debug)]
pub(crate) struct SortedItems {
    pages: AlignedBuffer,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: KeyHash,
    /// Where the item starts and ends in `pages`.
    start: u64,
    len: u32,
}

impl SortedItems {
    /// Reads and sorts the items of `section`.
    ///
    /// # Errors
    /// [`super::Error::Corruption`] for the first page that is damaged, or an item outside the section's range.
    pub fn load(section: &Section) -> Result<Self> {
        let page_count = section.page_count();
        let mut pages = AlignedBuffer::with_len(page_count as usize * PAGE_BYTES);
        for (number, chunk) in pages.chunks_mut(READ_BYTES).enumerate() {
            let first = (number * (READ_BYTES / PAGE_BYTES)) as u32;
            super::section::read_exact(&**section.file(), chunk, section.page_offset(first))?;
        }
        let mut entries = Vec::with_capacity(section.item_count().min(page_count as u64 * 1360) as usize);
        for number in 0..page_count {
            let base = number as usize * PAGE_BYTES;
            load_page(section, number, base, &pages[base..base + PAGE_BYTES], &mut entries)?;
        }
        if entries.len() as u64 != section.item_count() {
            let found = format!("{} items", entries.len());
            let expected = format!("a section of {} items", section.item_count());
            return Err(
                Corruption::new(section.file().name(), section.page_offset(0), expected, found).into()
            );
        }
        let mut items = Self { pages, entries };
        items.sort();
        Ok(items)
    }

    fn sort(&mut self) {
        self.entries.sort_unstable_by_key(|entry| entry.hash);
        // Equal hashes of different keys are so rare that a second pass over them is cheaper than comparing keys.
        let pages = &self.pages;
        let mut rest = self.entries.as_mut_slice();
        while let Some(first) = rest.windows(2).position(|pair| pair[0].hash == pair[1].hash) {
            let hash = rest[first].hash;
            let len = rest[first..].iter().take_while(|entry| entry.hash == hash).count();
            rest[first..first + len].sort_by(|one, other| key(pages, one).cmp(key(pages, other)));
            rest = &mut rest[first + len..];
        }
    }

    /// Number of items.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The hash of the item at `position` in the order.
    ///
    /// # Panics
    /// When there is none.
    #[inline]
    pub fn hash(&self, position: usize) -> KeyHash {
        self.entries[position].hash
    }

    /// The item at `position` in the order; `None` behind the last.
    #[inline]
    pub fn get(&self, position: usize) -> Option<(KeyHash, Item<'_>)> {
        let entry = self.entries.get(position)?;
        // Never fails: loading decoded the same bytes.
        let (item, _) = Item::decode(bytes(&self.pages, entry))?;
        Some((entry.hash, item))
    }

    /// The items in order.
    pub fn iter(&self) -> impl Iterator<Item = (KeyHash, Item<'_>)> {
        (0..self.len()).map_while(|position| self.get(position))
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> usize {
        self.pages.capacity() + self.entries.capacity() * size_of::<Entry>()
    }
}

fn load_page(
    section: &Section,
    number: u32,
    base: usize,
    bytes: &[u8],
    entries: &mut Vec<Entry>,
) -> Result<()> {
    let page = section.check_page(number, bytes)?;
    let hasher = section.hasher();
    let (low, high) = section.range();
    let bad = |position: usize, expected: String, found: String| {
        let offset = section.page_offset(number) + position as u64;
        Err(Corruption::new(section.file().name(), offset, expected, found).into())
    };
    let mut position = page.items_start();
    let end = page.used_bytes();
    for _ in 0..page.item_count() {
        let Some((item, len)) = Item::decode(&bytes[position..end]) else {
            return bad(position, "an item".to_owned(), "bytes that are none".to_owned());
        };
        let hash = hasher.hash(item.key);
        if hash.high() < low || hash.high() > high {
            return bad(position, format!("a hash in {low:016x}..={high:016x}"), format!("{hash:?}"));
        }
        entries.push(Entry { hash, start: (base + position) as u64, len: len as u32 });
        position += len;
    }
    if position != end {
        let found = format!("{} more bytes", end - position);
        return bad(position, "the end of the page's items".to_owned(), found);
    }
    Ok(())
}

#[inline]
fn bytes<'a>(pages: &'a [u8], entry: &Entry) -> &'a [u8] {
    let start = entry.start as usize;
    &pages[start..start + entry.len as usize]
}

fn key<'a>(pages: &'a [u8], entry: &Entry) -> &'a [u8] {
    Item::decode(bytes(pages, entry)).map_or(&[], |(item, _)| item.key)
}
