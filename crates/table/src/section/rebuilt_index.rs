//! Filter or index of a section despite damage to their blocks: uses the sound one of the two, and rebuilds the other
//! from the pages.

use alluvium_base::{Corruption, KeyHash};

use super::Section;
use crate::directory::{IndexKind, SectionEntry};
use crate::error::{Error, Result};
use crate::index::SectionIndex;
use crate::index_builder::{IndexBuilder, SortedIndex};
use crate::page::Layout;

/// Slots per bucket of a filter of tags.
const BUCKET_SLOTS: u64 = 4;
/// Bytes of a filter block in addition to the tags: a header and a checksum.
const FILTER_FRAME_BYTES: u64 = 32;

impl Section {
    /// Replaces filter and index after reading them gave `corruption`. Without the filter each lookup searches a page,
    /// in hash layout those of two buckets. An index is rebuilt from the pages, which reads all of them. Leads to the
    /// same pages as sound blocks would.
    ///
    /// # Errors
    /// `corruption` if that is impossible: in hash layout if both are damaged, if a page is damaged as well as the
    /// index, or for a table in buckets or with a filter that answers for other tables.
    pub(super) fn index_in_spite_of(
        &self,
        with_filter: bool,
        corruption: Corruption,
    ) -> Result<SectionIndex> {
        let entry = &self.entry;
        if entry.filter_covers || entry.layout == Layout::Bucketed && !entry.filter_is_static {
            return Err(corruption.into());
        }
        let filter = match with_filter || entry.layout == Layout::Hash {
            true => unless_damaged(self.read_block(entry.filter, "filter"))?,
            false => Some(Vec::new()),
        };
        let filter = filter.filter(|filter| SectionIndex::is_filter(entry, filter));
        let pages = unless_damaged(self.read_block(entry.index, "index"))?;
        let index = self.index_around(filter.as_deref(), pages.as_deref());
        let index = index.ok_or_else(|| Error::from(corruption))?;
        self.memory.count_damaged(1);
        if filter.is_none() {
            // Not to be read again.
            self.set_filter_damaged();
        }
        Ok(index)
    }

    /// The index from the sound ones of a filter and a block of pages.
    fn index_around(&self, filter: Option<&[u8]>, pages: Option<&[u8]>) -> Option<SectionIndex> {
        let entry = &self.entry;
        let decode = |entry: &SectionEntry, pages: &[u8]| {
            SectionIndex::decode_around(entry, filter, pages, self.filter_slots()).ok()
        };
        if let Some(index) = pages.and_then(|pages| decode(entry, pages)) {
            return Some(index);
        }
        let rebuilt = match entry.layout {
            Layout::Hash => filter.and_then(|filter| self.rebuild_slots(filter)),
            Layout::Sorted => self.rebuild_sorted(),
            Layout::Bucketed | Layout::Names => None,
        };
        let (index_kind, pages) = rebuilt?;
        decode(&SectionEntry { index_kind, ..entry.clone() }, &pages)
    }

    /// Number of slots of the filter of tags, computed from its length.
    fn filter_slots(&self) -> u32 {
        let bits = self.entry.filter.len.saturating_sub(FILTER_FRAME_BYTES) * 8;
        let buckets = bits / (BUCKET_SLOTS * u64::from(self.entry.filter_tag_bits.max(1)));
        (buckets * BUCKET_SLOTS) as u32
    }

    /// The items are in the order of the filter's occupied slots.
    fn rebuild_slots(&self, filter: &[u8]) -> Option<(IndexKind, Vec<u8>)> {
        let slots = SectionIndex::occupied_slots(filter)?;
        let mut slots = slots.into_iter().map(|slot| KeyHash(u128::from(slot) << 64));
        self.rebuild(IndexBuilder::slots(), |_| slots.next())
    }

    /// A trie does not depend on where pages end, whatever index they were cut for.
    fn rebuild_sorted(&self) -> Option<(IndexKind, Vec<u8>)> {
        let index = match self.entry.index_kind {
            IndexKind::ThreeLevel => SortedIndex::ThreeLevel,
            IndexKind::DenseTrie => SortedIndex::DenseTrie,
            _ => SortedIndex::Trie,
        };
        let pages = u64::from(self.entry.page_count);
        let builder = IndexBuilder::sorted(index, self.range(), pages, self.entry.hasher.is_semi_sorted());
        self.rebuild(builder, Some)
    }

    /// The index over all pages, with each item's hash mapped by `place`, or `None` if a page is damaged.
    pub(super) fn rebuild(
        &self,
        mut builder: IndexBuilder,
        mut place: impl FnMut(KeyHash) -> Option<KeyHash>,
    ) -> Option<(IndexKind, Vec<u8>)> {
        let mut ends: Vec<(usize, bool)> = Vec::new();
        let mut is_whole = true;
        let mut pending = 0;
        let mut items = 0;
        let found = self.salvage_hashes(|hashes, goes_on| {
            for &hash in hashes {
                match place(hash) {
                    Some(placed) => builder.push(placed),
                    None => is_whole = false,
                }
            }
            pending += hashes.len();
            items += hashes.len() as u64;
            ends.push((hashes.len(), goes_on));
            // A page that contains only the rest of an item is ended once the next item is known.
            if pending > 0 {
                for (items, goes_on) in ends.drain(..) {
                    pending -= items;
                    builder.end_page(items, goes_on);
                }
            }
        });
        let is_whole = is_whole && found && ends.is_empty() && items == self.entry.totals.item_count;
        is_whole.then(|| (builder.kind(), builder.finish()))
    }
}

/// Returns `None` if the block is damaged.
fn unless_damaged(block: Result<Vec<u8>>) -> Result<Option<Vec<u8>>> {
    match block {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Error::Corruption(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
