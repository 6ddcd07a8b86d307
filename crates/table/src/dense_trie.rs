//! [`DenseTrie`]: an entropy-coded trie over all items, and the rank at which each page starts.
//!
//! ```text
//! 0      8  length of the trie in bytes
//! 8      n  the trie of ranks (see `alluvium_index::trie`)
//! 8 + n  8  length of the list in bytes
//!           the list of the rank of each page's first item (see `alluvium_index::fences::SlotFences`)
//!           the straddles (see `crate::straddles`)
//! ```
//!
//! LIM §3.1.4 and SILT §3.3. The trie alone would lead to an item at a fixed distance from the beginning of its file;
//! items of any size need the list, 0.23 bit/key at 32 items per page. What the additional 1.7 bit/key over a trie of
//! pages buy: a rank, at which a fragment of one key's hash shows that a key is absent (SILT's "key fragments in the
//! same order as the sorted data"), and, where items continue in the next page, which item is the last of its page.

use alluvium_base::{Corruption, KeyHash};
use alluvium_index::fences::SlotFences;
use alluvium_index::trie::{Fragments, Granularity, Trie};

use crate::index_parts::split_index;
use crate::page_list::{PageList, PageRead, page_number};
use crate::straddles::Straddles;

/// Finds ranks and pages by hashes.
#[derive(Clone, Debug)]
pub(super) struct DenseTrie {
    trie: Trie,
    page_starts: SlotFences,
    straddles: Straddles,
}

impl DenseTrie {
    /// Joins `trie`, whose positions are ranks, with the rank of each page's first item and with `straddles`.
    pub fn new(trie: Trie, page_starts: SlotFences, straddles: Straddles) -> Self {
        Self { trie, page_starts, straddles }
    }

    /// Number of items.
    pub fn items(&self) -> u64 {
        self.trie.len()
    }

    /// Number of pages.
    pub fn pages(&self) -> u64 {
        self.page_starts.pages()
    }

    /// The pages that may hold an item of hash `hash`; none if its fragment, among `fragments`, differs from that of
    /// the only item that it may be. If `items_go_on`, the lookup of the last item of a page also takes the next page.
    #[inline]
    pub fn lookup(&self, hash: KeyHash, fragments: Option<&Fragments>, items_go_on: bool) -> PageList {
        if let Some((first, last)) = self.straddles.pages_of(hash) {
            let goes_on = items_go_on && u64::from(last) + 1 < self.pages();
            return PageList::range(first, PageRead::new(last, goes_on));
        }
        let rank = self.trie.lookup(hash);
        let Some(rank) = rank.filter(|&rank| fragments.is_none_or(|fragments| fragments.may_be(rank, hash)))
        else {
            return PageList::EMPTY;
        };
        let Some(page) = self.page_starts.page_of(rank) else { return PageList::EMPTY };
        let goes_on = items_go_on && self.page_starts.first_slot(page + 1) == Some(rank + 1);
        let page = page_number(page);
        PageList::range(page, PageRead::new(page, goes_on))
    }

    /// Bytes of memory.
    pub fn memory_bytes(&self) -> u64 {
        self.trie.memory_bytes() + self.page_starts.memory_bytes() + self.straddles.memory_bytes()
    }

    /// Encodes it as shown in the module's documentation.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (trie, page_starts) = (self.trie.to_bytes(), self.page_starts.to_bytes());
        let mut bytes = Vec::with_capacity(16 + trie.len() + page_starts.len());
        for part in [trie, page_starts] {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(&part);
        }
        self.straddles.encode(&mut bytes);
        bytes
    }

    /// Decodes the bytes of [`DenseTrie::to_bytes`]. The checksum of the block was checked before.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Corruption> {
        let bad =
            |expected: &str| Corruption::new("trie block", 0, expected, format!("{} bytes", bytes.len()));
        let (trie_bytes, rest) = split_index(bytes, "a trie")?;
        let trie = Trie::from_bytes(trie_bytes).map_err(|corruption| corruption.within("trie block", 8))?;
        let starts_at = 16 + trie_bytes.len() as u64;
        let (page_starts, straddles) = split_index(rest, "a list of page starts")
            .map_err(|corruption| corruption.within("trie block", starts_at - 8))?;
        let page_starts = SlotFences::from_bytes(page_starts)
            .map_err(|corruption| corruption.within("trie block", starts_at))?;
        if trie.granularity() != Granularity::Key {
            return Err(bad("a trie of ranks"));
        }
        let is_sound = match page_starts.pages() {
            0 => trie.is_empty(),
            pages => {
                page_starts.first_slot(0) == Some(0)
                    && page_starts.first_slot(pages - 1).is_some_and(|rank| rank <= trie.len())
            }
        };
        if !is_sound {
            return Err(bad("pages that start at ranks from 0 on"));
        }
        let straddles = Straddles::decode(straddles, page_starts.pages())
            .ok_or_else(|| bad("straddles in order, each of several pages"))?;
        Ok(Self { trie, page_starts, straddles })
    }
}
