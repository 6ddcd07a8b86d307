//! [`PageSlots`]: room in memory for the pages of a section.

use alluvium_io::sync::OnceLock;

use crate::index_memory::Charge;
use crate::page::PAGE_BYTES;

/// Bytes of memory of a slot that holds a page.
pub(crate) const SLOT_BYTES: u64 = (PAGE_BYTES + size_of::<Slot>() + 16) as u64;

/// A page, once it was read.
pub(crate) type Slot = OnceLock<Box<[u8; PAGE_BYTES]>>;

/// Room for all pages of a section. All of it is counted from the beginning, though it is filled page by page.
pub(crate) struct PageSlots {
    pages: Box<[Slot]>,
    _charge: Charge,
}

impl PageSlots {
    /// Empty slots for `count` pages, whose memory `charge` counts.
    pub fn new(count: u32, charge: Charge) -> Self {
        Self { pages: (0..count).map(|_| Slot::new()).collect(), _charge: charge }
    }

    /// The slot of the page with the number `page`, or `None` if there is no such page.
    pub fn slot(&self, page: u32) -> Option<&Slot> {
        self.pages.get(page as usize)
    }

    /// Fills `buffer` with the pages from `first` on. Returns `false` if one of them is not there.
    pub fn copy(&self, first: u32, buffer: &mut [u8]) -> bool {
        let (targets, _) = buffer.as_chunks_mut::<PAGE_BYTES>();
        let Some(pages) = self.pages.get(first as usize..first as usize + targets.len()) else {
            return false;
        };
        if pages.iter().any(|page| page.get().is_none()) {
            return false;
        }
        for (target, page) in targets.iter_mut().zip(pages) {
            if let Some(page) = page.get() {
                *target = **page;
            }
        }
        true
    }
}
