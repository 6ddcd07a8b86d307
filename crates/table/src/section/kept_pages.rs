//! Pages of a section that scans of prefixes have read, kept in the memory that filters and indexes leave of the limit.
//!
//! A scan of a small prefix reads a page or two of each run, whatever the run's size. A byte of a young run therefore
//! saves hundreds of times as many reads as one of the last level. Runs are kept whole, the smallest for their range
//! first (decision 0026).

use std::sync::Arc;

use alluvium_io::sync::atomic::Ordering;

use super::Section;
use crate::page_slots::{PageSlots, SLOT_BYTES};

impl Section {
    /// Fills `buffer` with the pages from `first` on if all of them are in memory.
    #[inline]
    pub fn copy_kept(&self, first: u32, buffer: &mut [u8]) -> bool {
        match &*self.pages.load() {
            Some(kept) => kept.copy(first, buffer),
            None => false,
        }
    }

    /// Keeps `bytes`, the pages from `first` on, if the memory limit leaves room for all pages of the section. Damaged
    /// pages are not kept.
    pub(crate) fn keep_pages(&self, first: u32, bytes: &[u8]) {
        let Some(kept) = self.pages.load_full().or_else(|| self.make_kept()) else { return };
        for (number, bytes) in (first..).zip(bytes.as_chunks().0) {
            let Some(slot) = kept.slot(number) else { return };
            if slot.get().is_none() && self.check_page(number, bytes).is_ok() {
                slot.get_or_init(|| Box::new(*bytes));
            }
        }
    }

    /// Bytes of memory of all pages.
    pub(super) fn kept_pages_bytes(&self) -> u64 {
        u64::from(self.entry.page_count) * SLOT_BYTES
    }

    /// Drops the pages. Returns whether it had any.
    pub(super) fn drop_pages(&self) -> bool {
        self.pages.swap(None).is_some()
    }

    fn make_kept(&self) -> Option<Arc<PageSlots>> {
        let bytes = self.kept_pages_bytes();
        if self.memory.bytes_max() == u64::MAX || !self.pages_get_room(bytes) {
            return None;
        }
        let _guard = self.loading.try_lock().ok()?;
        if let Some(kept) = self.pages.load_full() {
            return Some(kept);
        }
        let charge = self.memory.try_charge_pages(bytes, self.pages_worth())?;
        let kept = Arc::new(PageSlots::new(self.entry.page_count, charge));
        self.pages.store(Some(Arc::clone(&kept)));
        self.register();
        Some(kept)
    }

    /// Whether the pages have room, if necessary in place of what is worth less. A refusal stands until memory becomes
    /// free.
    fn pages_get_room(&self, bytes: u64) -> bool {
        let releases = self.memory.releases();
        if self.pages_refused_at.load(Ordering::Relaxed) == releases {
            return false;
        }
        let could = self.memory.has_room(bytes) || self.memory.could_make_room(bytes, self.pages_worth());
        if !could {
            self.pages_refused_at.store(releases, Ordering::Relaxed);
        }
        could
    }
}
