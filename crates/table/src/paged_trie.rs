//! [`PagedTrie`]: an entropy-coded trie over pages, and the few hashes whose items are in several pages.
//!
//! ```text
//! 0  8  length of the trie in bytes
//! 8     the trie (see `alluvium_index::trie`)
//!       for each straddle, ascending: high half of the hash (8), first page (4), last page (4)
//! ```
//!
//! A trie leads to one page. Items of one hash that fill more than a page need an additional entry: this is rare by
//! chance, but anybody who knows the seed of a fast hash can produce them.

use alluvium_base::{Corruption, KeyHash};
use alluvium_index::trie::Trie;

use crate::frame::{u32_at, u64_at};
use crate::page_list::{PageList, PageRead, page_number};

const STRADDLE_BYTES: usize = 16;

/// The pages of all items whose hashes have one high half, if they are in several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Straddle {
    hash_high: u64,
    page_first: u32,
    page_last: u32,
}

impl Straddle {
    /// Records that items of `hash_high` continue from the page before `page` into it.
    pub fn extend(straddles: &mut Vec<Self>, hash_high: u64, page: u32) {
        match straddles.last_mut() {
            Some(last) if last.hash_high == hash_high => last.page_last = page,
            _ => straddles.push(Self { hash_high, page_first: page - 1, page_last: page }),
        }
    }
}

/// Finds pages by hashes.
#[derive(Clone, Debug)]
pub(super) struct PagedTrie {
    trie: Trie,
    /// By hash. Empty in nearly every table.
    straddles: Vec<Straddle>,
}

impl PagedTrie {
    /// Joins `trie`, whose positions are pages, with `straddles`, in ascending order of hash.
    pub fn new(trie: Trie, straddles: Vec<Straddle>) -> Self {
        Self { trie, straddles }
    }

    /// Number of pages.
    pub fn pages(&self) -> u64 {
        self.trie.positions()
    }

    /// The pages that may hold an item of hash `hash`. The trie does not show which item is the last of its page: if
    /// `items_go_on`, each lookup also takes the next page.
    #[inline]
    pub fn lookup(&self, hash: KeyHash, items_go_on: bool) -> PageList {
        let read = |page| PageRead::new(page, items_go_on && u64::from(page) + 1 < self.pages());
        if let Ok(at) = self.straddles.binary_search_by_key(&hash.high(), |straddle| straddle.hash_high) {
            return PageList::range(self.straddles[at].page_first, read(self.straddles[at].page_last));
        }
        self.trie.lookup(hash).map_or(PageList::EMPTY, |page| {
            let page = page_number(page);
            PageList::range(page, read(page))
        })
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        self.trie.memory_bytes() + (self.straddles.capacity() * size_of::<Straddle>()) as u64
    }

    /// Encodes it as shown in the module's documentation.
    pub fn to_bytes(&self) -> Vec<u8> {
        let trie = self.trie.to_bytes();
        let mut bytes = Vec::with_capacity(8 + trie.len() + self.straddles.len() * STRADDLE_BYTES);
        bytes.extend_from_slice(&(trie.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&trie);
        for straddle in &self.straddles {
            bytes.extend_from_slice(&straddle.hash_high.to_le_bytes());
            bytes.extend_from_slice(&straddle.page_first.to_le_bytes());
            bytes.extend_from_slice(&straddle.page_last.to_le_bytes());
        }
        bytes
    }

    /// Decodes the bytes of [`PagedTrie::to_bytes`]. The checksum of the block was checked before.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Corruption> {
        let bad =
            |expected: &str| Corruption::new("trie block", 0, expected, format!("{} bytes", bytes.len()));
        let (len, rest) = bytes.split_first_chunk::<8>().ok_or_else(|| bad("a length"))?;
        let (trie, straddles) = usize::try_from(u64::from_le_bytes(*len))
            .ok()
            .and_then(|len| rest.split_at_checked(len))
            .ok_or_else(|| bad("a trie of the length in front of it"))?;
        let trie = Trie::from_bytes(trie).map_err(|corruption| corruption.within("trie block", 8))?;
        let (records, rest) = straddles.as_chunks::<STRADDLE_BYTES>();
        let straddles: Vec<_> = records
            .iter()
            .map(|record| Straddle {
                hash_high: u64_at(record, 0),
                page_first: u32_at(record, 8),
                page_last: u32_at(record, 12),
            })
            .collect();
        let is_sound = rest.is_empty()
            && straddles.is_sorted_by(|one, other| one.hash_high < other.hash_high)
            && straddles.iter().all(|straddle| {
                straddle.page_first < straddle.page_last && u64::from(straddle.page_last) < trie.positions()
            });
        if is_sound {
            Ok(Self { trie, straddles })
        } else {
            Err(bad("straddles in order, each of several pages"))
        }
    }
}
