//! [`PagedTrie`]: an entropy-coded trie over pages, and the few hashes whose items are in several pages.
//!
//! ```text
//! 0  8  length of the trie in bytes
//! 8     the trie (see `alluvium_index::trie`)
//!       the straddles (see `crate::straddles`)
//! ```

use alluvium_base::{Corruption, KeyHash};
use alluvium_index::trie::Trie;

use crate::index_parts::split_index;
use crate::page_list::{PageList, PageRead, page_number};
use crate::straddles::Straddles;

/// Finds pages by hashes.
#[derive(Clone, Debug)]
pub(super) struct PagedTrie {
    trie: Trie,
    straddles: Straddles,
}

impl PagedTrie {
    /// Joins `trie`, whose positions are pages, with `straddles`.
    pub fn new(trie: Trie, straddles: Straddles) -> Self {
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
        if let Some((first, last)) = self.straddles.pages_of(hash) {
            return PageList::range(first, read(last));
        }
        self.trie.lookup(hash).map_or(PageList::EMPTY, |page| {
            let page = page_number(page);
            PageList::range(page, read(page))
        })
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        self.trie.memory_bytes() + self.straddles.memory_bytes()
    }

    /// Encodes it as shown in the module's documentation.
    pub fn to_bytes(&self) -> Vec<u8> {
        let trie = self.trie.to_bytes();
        let mut bytes = Vec::with_capacity(8 + trie.len());
        bytes.extend_from_slice(&(trie.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&trie);
        self.straddles.encode(&mut bytes);
        bytes
    }

    /// Decodes the bytes of [`PagedTrie::to_bytes`]. The checksum of the block was checked before.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Corruption> {
        let (trie, straddles) = split_index(bytes, "a trie")?;
        let trie = Trie::from_bytes(trie).map_err(|corruption| corruption.within("trie block", 8))?;
        let straddles = Straddles::decode(straddles, trie.positions()).ok_or_else(|| {
            let found = format!("{} bytes", bytes.len());
            Corruption::new("trie block", 0, "straddles in order, each of several pages", found)
        })?;
        Ok(Self { trie, straddles })
    }
}
