//! [`Straddles`]: the few hashes whose items are in several pages, beside a trie.
//!
//! ```text
//! for each, ascending: high half of the hash (8), first page (4), last page (4)
//! ```
//!
//! A trie leads to one page. Items of one hash that fill more than a page need an additional entry: this is rare by
//! chance, but anybody who knows the seed of a fast hash can produce them.

use alluvium_base::KeyHash;

use crate::frame::{u32_at, u64_at};

const STRADDLE_BYTES: usize = 16;

/// The pages of all items whose hashes have one high half: several, or one for a dense trie ([`Straddles::note`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Straddle {
    hash_high: u64,
    page_first: u32,
    page_last: u32,
}

/// All of a section, by hash. Empty in nearly every table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Straddles(Vec<Straddle>);

impl Straddles {
    /// Records that items of `hash_high` continue from the page before `page` into it.
    pub fn extend(&mut self, hash_high: u64, page: u32) {
        match self.0.last_mut() {
            Some(last) if last.hash_high == hash_high => last.page_last = page,
            _ => self.0.push(Straddle { hash_high, page_first: page - 1, page_last: page }),
        }
    }

    /// Records that several items of `hash_high` are in `page`, the last of which continues in the next page.
    pub fn note(&mut self, hash_high: u64, page: u32) {
        match self.0.last_mut() {
            Some(last) if last.hash_high == hash_high => last.page_last = page,
            _ => self.0.push(Straddle { hash_high, page_first: page, page_last: page }),
        }
    }

    /// First and last page of the items of this hash, if it has an entry.
    #[inline]
    pub fn pages_of(&self, hash: KeyHash) -> Option<(u32, u32)> {
        let at = self.0.binary_search_by_key(&hash.high(), |straddle| straddle.hash_high).ok()?;
        Some((self.0[at].page_first, self.0[at].page_last))
    }

    /// Bytes of memory beside this value.
    pub fn memory_bytes(&self) -> u64 {
        (self.0.capacity() * size_of::<Straddle>()) as u64
    }

    /// Appends them as shown in the module's documentation.
    pub fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.reserve(self.0.len() * STRADDLE_BYTES);
        for straddle in &self.0 {
            bytes.extend_from_slice(&straddle.hash_high.to_le_bytes());
            bytes.extend_from_slice(&straddle.page_first.to_le_bytes());
            bytes.extend_from_slice(&straddle.page_last.to_le_bytes());
        }
    }

    /// Those that `bytes` consists of, or `None` if they are not in order, each of some of `pages` pages.
    pub fn decode(bytes: &[u8], pages: u64) -> Option<Self> {
        let (records, rest) = bytes.as_chunks::<STRADDLE_BYTES>();
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
                straddle.page_first <= straddle.page_last && u64::from(straddle.page_last) < pages
            });
        is_sound.then_some(Self(straddles))
    }
}
