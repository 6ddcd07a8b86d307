//! [`SlotPages`]: the page of the item in each slot of a filter.

use alluvium_base::{Corruption, KeyHash};

use super::filter::{HashFilter, bucket_slots};
use crate::cuckoo::CuckooTable;

const NAME: &str = "slot pages";
/// Bytes in front of the slots: the number of pages.
const HEADER_BYTES: usize = 4;
const SLOT_BYTES: usize = 4;
/// Slots per bucket.
const BUCKET_SLOTS: usize = 4;
/// An empty slot.
const EMPTY: u32 = u32::MAX;

/// The page of the item in each slot of a [`HashFilter`](super::HashFilter): the offsets of the log's cuckoo table, so
/// that filter and pages together are SILT's LogStore (SOSP 2011, §3.1). Items may be stored in any order. Immutable.
///
/// Cost: 4 bytes per slot, one access per candidate. Stored as the number of pages (4 bytes), then for each slot its
/// page times 2, plus 1 if the item continues in the next page; all ones if the slot is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotPages {
    pages: u32,
    slots: Vec<u32>,
}

/// A page with an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotPage {
    /// The page in which the item begins.
    pub page: u32,
    /// Whether it continues in the next page.
    pub goes_on: bool,
}

impl SlotPage {
    /// The entry as the offset of a cuckoo table.
    ///
    /// # Panics
    /// In debug builds, for pages from 2³¹ − 1 on.
    pub fn to_offset(self) -> u32 {
        debug_assert!(self.page < EMPTY >> 1);
        self.page << 1 | u32::from(self.goes_on)
    }
}

impl SlotPages {
    /// Maximum number of pages.
    pub const PAGES_MAX: u32 = EMPTY >> 1;

    /// The pages of a frozen cuckoo table whose offsets are those of [`SlotPage::to_offset`], in a section of `pages`
    /// pages.
    pub fn from_table(table: &CuckooTable, pages: u32) -> Self {
        let mut slots = vec![EMPTY; table.slots()];
        for (slot, _, offset) in table.entries() {
            slots[slot as usize] = offset;
        }
        Self { pages, slots }
    }

    /// Number of pages of the section.
    pub fn pages(&self) -> u64 {
        self.pages.into()
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The page of the item in `slot`; `None` if the slot is empty or beyond the last.
    #[inline]
    pub fn page_of(&self, slot: u32) -> Option<SlotPage> {
        let entry = *self.slots.get(slot as usize)?;
        (entry != EMPTY).then_some(SlotPage { page: entry >> 1, goes_on: entry & 1 != 0 })
    }

    /// The pages of the items that may be the one with `hash` according to their filter: usually one, none if it is
    /// absent.
    #[inline]
    pub fn candidates(&self, filter: &HashFilter, hash: KeyHash) -> impl Iterator<Item = SlotPage> + '_ {
        filter.candidates(hash).filter_map(|slot| self.page_of(slot))
    }

    /// The pages of all items in the two buckets of a key with `hash`: all that is known without the filter.
    pub fn pages_of_buckets(&self, hash: KeyHash) -> impl Iterator<Item = SlotPage> + '_ {
        let slots = bucket_slots(hash, self.slots.len() as u32);
        slots.into_iter().flatten().filter_map(|slot| self.page_of(slot))
    }

    /// Bytes of memory, this value included.
    pub fn memory_bytes(&self) -> u64 {
        (size_of::<Self>() + self.slots.capacity() * SLOT_BYTES) as u64
    }

    /// The pages as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.slots.len() * SLOT_BYTES);
        bytes.extend_from_slice(&self.pages.to_le_bytes());
        self.slots.iter().for_each(|slot| bytes.extend_from_slice(&slot.to_le_bytes()));
        bytes
    }

    /// The pages that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// If the length is wrong or an entry leads beyond the pages. The offset is relative to `bytes`.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Corruption> {
        let parts = bytes.split_first_chunk::<HEADER_BYTES>();
        let bucket_bytes = BUCKET_SLOTS * SLOT_BYTES;
        let parts = parts.filter(|(_, rest)| !rest.is_empty() && rest.len().is_multiple_of(bucket_bytes));
        let fits = |rest: &[u8]| u32::try_from(rest.len() / SLOT_BYTES).is_ok();
        let Some((pages, rest)) = parts.filter(|(_, rest)| fits(rest)) else {
            let found = format!("{} bytes", bytes.len());
            return Err(Corruption::new(NAME, 0, "whole buckets behind the number of pages", found));
        };
        let pages = u32::from_le_bytes(*pages);
        let word = |word: &[u8]| u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        let slots: Vec<u32> = rest.chunks_exact(SLOT_BYTES).map(word).collect();
        let is_beyond = |&entry: &u32| entry != EMPTY && (entry >> 1) + (entry & 1) >= pages;
        if let Some(slot) = slots.iter().position(is_beyond) {
            let offset = (HEADER_BYTES + slot * SLOT_BYTES) as u64;
            let found = format!("entry {:#x}", slots[slot]);
            return Err(Corruption::new(NAME, offset, format!("one of {pages} pages"), found));
        }
        Ok(Self { pages, slots })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> KeyHash {
        let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        KeyHash::from_halves(mixed, mixed.rotate_left(17).wrapping_mul(0xbf58_476d_1ce4_e5b9))
    }

    fn table(count: u32) -> CuckooTable {
        let table = CuckooTable::with_entries(count as usize + 8);
        for number in 0..count {
            let at = SlotPage { page: number / 30, goes_on: number % 30 == 29 };
            table.insert(hash(number.into()), at.to_offset()).unwrap();
        }
        table
    }

    #[test]
    fn the_filter_and_the_pages_find_the_page_of_each_item() {
        let count = 3_000;
        let table = table(count);
        let filter = HashFilter::from_table(&table, 15);
        let pages = SlotPages::from_table(&table, 101);
        let pages = SlotPages::from_bytes(&pages.to_bytes()).unwrap();
        assert_eq!((pages.pages(), pages.slots()), (101, table.slots()));
        for number in 0..count {
            let expected = SlotPage { page: number / 30, goes_on: number % 30 == 29 };
            let hash = hash(number.into());
            assert!(pages.candidates(&filter, hash).any(|page| page == expected));
            assert!(pages.pages_of_buckets(hash).any(|page| page == expected));
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        let bytes = SlotPages::from_table(&table(300), 11).to_bytes();
        assert!(SlotPages::from_bytes(&bytes).is_ok());
        for len in [0, 3, 4, bytes.len() - 4] {
            assert!(SlotPages::from_bytes(&bytes[..len]).is_err());
        }
        let mut fewer = bytes.clone();
        fewer[0] -= 1;
        assert!(SlotPages::from_bytes(&fewer).unwrap_err().to_string().contains("one of 10 pages"));
    }
}
