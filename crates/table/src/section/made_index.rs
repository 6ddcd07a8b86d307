//! Another index than the stored one, made from the pages (LIM §3.1.6: "a new dense or sparse index on already indexed
//! items"). The file stays as it is.
//!
//! What was made is in memory only. If it is dropped, or until it is made again after an opening, lookups use the
//! stored index, which leads to the same pages.

use std::sync::{Arc, PoisonError};

use alluvium_index::trie::Fragments;
use alluvium_io::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::Section;
use crate::directory::SectionEntry;
use crate::error::{Error, Result};
use crate::index::SectionIndex;
use crate::index_builder::IndexBuilder;
use crate::index_target::IndexTarget;
use crate::page::PAGE_BYTES;

/// Whether another attempt to make an index makes sense.
#[derive(Debug)]
pub(super) struct MakingState {
    /// The number of releases of memory when what was made was last refused room.
    refused_at: AtomicU64,
    /// Whether a page or the filter is damaged.
    has_failed: AtomicBool,
    /// Whether an index was made before. Then it was dropped because memory was short, and needs more room to return.
    was_made: AtomicBool,
}

impl Default for MakingState {
    fn default() -> Self {
        Self {
            refused_at: AtomicU64::new(u64::MAX),
            has_failed: AtomicBool::new(false),
            was_made: AtomicBool::new(false),
        }
    }
}

/// What [`Section::make_index`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// The section now has the index. This number of bytes was read for it.
    Index {
        /// Bytes of pages.
        bytes_read: u64,
    },
    /// The section keeps its index: memory has no room for another, or a page or the filter is damaged.
    Nothing,
}

impl Section {
    /// Whether the section can have this index without being written again: it is stored, or can be made from the
    /// pages.
    pub fn can_have(&self, target: IndexTarget) -> bool {
        target.is_stored_in(&self.entry) || target.fits_pages_of(&self.entry)
    }

    /// Whether lookups use this index.
    pub fn has(&self, target: IndexTarget) -> bool {
        match self.index.load().as_ref().and_then(|index| index.made_as) {
            Some(made_as) => made_as == target,
            None => target.is_stored_in(&self.entry),
        }
    }

    /// Whether [`Section::make_index`] would do something, as far as that is known without trying. Reads nothing.
    pub fn lacks_index(&self, target: IndexTarget) -> bool {
        if self.has(target) || !self.can_have(target) {
            return false;
        }
        if target.is_stored_in(&self.entry) {
            return true;
        }
        let room =
            target.bytes_expected(&self.entry) << u32::from(self.making.was_made.load(Ordering::Relaxed));
        !self.making.has_failed.load(Ordering::Relaxed)
            && self.making.refused_at.load(Ordering::Relaxed) != self.memory.releases()
            && self.memory.has_room(room)
    }

    /// Gives the section this index in memory. Reads all pages, unless the index is stored; writes nothing. Lookups use
    /// the former index until then.
    pub fn make_index(&self, target: IndexTarget) -> Result<Made> {
        if target.is_stored_in(&self.entry) {
            self.drop_index();
            return Ok(Made::Index { bytes_read: 0 });
        }
        let bytes = target.bytes_expected(&self.entry);
        // Room for the encoded and the decoded form. A thread that holds it waits for no other.
        let _room = self.memory.reads.hold(2 * bytes);
        let index = match self.index_of_pages(target) {
            Ok(Some(index)) => index,
            Ok(None) | Err(Error::Corruption(_)) => {
                self.making.has_failed.store(true, Ordering::Relaxed);
                return Ok(Made::Nothing);
            }
            Err(error) => return Err(error),
        };
        let _guard = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = index.memory_bytes();
        let worth = self.made_worth(bytes.filter + bytes.index);
        let Some(charge) = self.memory.try_charge(bytes, worth) else {
            self.making.refused_at.store(self.memory.releases(), Ordering::Relaxed);
            return Ok(Made::Nothing);
        };
        self.index.store(Some(Arc::new(index.charged(charge))));
        self.register();
        self.making.was_made.store(true, Ordering::Relaxed);
        self.memory.count_made(1, self.entry.page_count.into());
        Ok(Made::Index { bytes_read: u64::from(self.entry.page_count) * PAGE_BYTES as u64 })
    }

    /// The index, from all pages and the stored filter; `None` if a page is damaged.
    fn index_of_pages(&self, target: IndexTarget) -> Result<Option<SectionIndex>> {
        let pages = u64::from(self.entry.page_count);
        let builder = IndexBuilder::sorted(target.index, self.range(), pages, false).over_other_pages();
        let mut fragments = target.fragment_bits.map(Fragments::new);
        let rebuilt = self.rebuild(builder, |hash| {
            if let Some(fragments) = &mut fragments {
                fragments.push(hash);
            }
            Some(hash)
        });
        let Some((index_kind, pages)) = rebuilt else { return Ok(None) };
        let mut entry = SectionEntry { index_kind, ..self.entry.clone() };
        let filter = match fragments {
            Some(mut fragments) => {
                fragments.shrink_to_fit();
                (entry.filter_is_fragments, entry.filter_is_static) = (true, false);
                fragments.to_bytes()
            }
            None if entry.filter_is_fragments || !self.wants_filter() => {
                entry.filter_is_fragments = false;
                Vec::new()
            }
            None => self.read_block(self.entry.filter, "filter")?,
        };
        let index = SectionIndex::decode(&entry, &filter, &pages)
            .map_err(|corruption| corruption.within(self.file.name(), self.entry.index.offset))?;
        Ok(Some(index.made_as(target)))
    }
}
