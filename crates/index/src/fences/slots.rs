//! [`SlotFences`]: from slot number to page.

use alluvium_base::Corruption;

use crate::elias_fano::{EliasFano, EliasFanoBuilder};

const NAME: &str = "slot fences";

/// The first slot of every page of a table whose items are in slot order. Immutable.
///
/// Cost: about 2.3 + log2(slots / pages) bits a page, one predecessor search a lookup. Stored as its Elias-Fano list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotFences {
    first_slots: EliasFano,
}

/// Takes the first slot of every page in order and makes [`SlotFences`].
#[derive(Clone, Debug, Default)]
pub struct SlotFencesBuilder {
    first_slots: EliasFanoBuilder,
}

impl SlotFencesBuilder {
    /// A builder without pages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a page whose first item has slot `first_slot`.
    ///
    /// # Panics
    /// When the slot is below that of the previous page.
    pub fn push_page(&mut self, first_slot: u64) {
        self.first_slots.push(first_slot);
    }

    /// Bytes held now.
    pub fn memory_bytes(&self) -> u64 {
        self.first_slots.memory_bytes()
    }

    /// The fences. Linear in the pages.
    pub fn finish(self) -> SlotFences {
        SlotFences { first_slots: self.first_slots.finish() }
    }
}

impl SlotFences {
    /// Number of pages.
    pub fn pages(&self) -> u64 {
        self.first_slots.len()
    }

    /// The page that holds `slot`: the last one that starts at or before it, or `None` if the slot is before the first
    /// page. A slot beyond the last item counts to the last page.
    #[inline]
    pub fn page_of(&self, slot: u64) -> Option<u64> {
        self.first_slots.last_at_most(slot)
    }

    /// The first slot of `page`, or `None` beyond the last page.
    #[inline]
    pub fn first_slot(&self, page: u64) -> Option<u64> {
        self.first_slots.get(page)
    }

    /// Bytes of memory, this value included.
    pub fn memory_bytes(&self) -> u64 {
        size_of::<Self>() as u64 + self.first_slots.memory_bytes()
    }

    /// The fences as bytes: the Elias-Fano list of the first slots.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.first_slots.to_bytes()
    }

    /// The fences that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// When the list is damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Corruption> {
        let first_slots = EliasFano::from_bytes(bytes).map_err(|error| error.within(NAME, 0))?;
        Ok(Self { first_slots })
    }
}
