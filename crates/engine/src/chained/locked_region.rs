//! [`LockedRegion`]: a part of a directory, in which one thread finds where records are to be put, and puts them there.

use std::sync::Arc;

use alluvium_base::{KeyHash, SegmentId};
use alluvium_index::chain_region::{ChainRegion, Choice, Pointer, Slot};
use alluvium_io::sync::MutexGuard;

use super::address::Address;
use super::directory::{Directory, POINTER_BYTES_MAX, shape};
use super::read_chain::{ReadChain, RegionHeads};
use crate::item::Link;

/// In which of two chains a key is, found out when their heads were these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decision {
    pub is_in_second: bool,
    heads: [Option<Pointer>; 2],
}

/// Where a record is to be put.
#[derive(Debug)]
pub(crate) enum Place {
    In(Slot),
    /// Both chains may have the key, and nobody knows in which it is.
    Undecided,
}

/// A locked region.
#[derive(Debug)]
pub(crate) struct LockedRegion<'d> {
    pub(super) directory: &'d Directory,
    pub(super) region: MutexGuard<'d, Arc<ChainRegion>>,
}

impl LockedRegion<'_> {
    /// Doubles the slots until there are `slots`.
    pub fn grow_to(&mut self, slots: u64) {
        if self.region.len() as u64 >= slots {
            return;
        }
        let before = self.region.memory_bytes();
        while (self.region.len() as u64) < slots {
            self.change().grow();
        }
        let grown = self.region.memory_bytes() - before;
        self.directory.note_grown(grown);
    }

    /// The heads of the region of this number, as they are now. The region is copied when it changes next while they
    /// exist.
    pub fn heads(&self, number: usize) -> RegionHeads {
        RegionHeads::new(number, self.region.clone(), self.directory.end())
    }

    /// Whether the chain is as it was when it was read.
    pub fn is_still(&self, read: &ReadChain) -> bool {
        self.region.len() == read.slots && self.head(read.slot) == Some(read.head)
    }

    /// Ends a chain in front of the next record.
    pub fn clear(&mut self, slot: Slot) {
        self.change().replace(slot, None, []);
    }

    fn change(&mut self) -> &mut ChainRegion {
        Arc::make_mut(&mut self.region)
    }

    pub(super) fn pointer_bytes(&self) -> usize {
        self.region.shape().pointer_bytes
    }

    pub(super) fn widen_if_needed(&mut self, oldest: Address, newest: SegmentId) {
        let end = self.directory.end();
        let reached_from = end.max(Address::end_of(newest));
        if self.pointer_bytes() == POINTER_BYTES_MAX || reached_from.reaches(oldest, self.pointer_bytes()) {
            return;
        }
        let before = self.region.memory_bytes();
        let shape = shape(&self.directory.spec, POINTER_BYTES_MAX);
        let bytes = self.pointer_bytes();
        let widen = |pointer: Pointer| {
            end.before(pointer.0, bytes).map(|head| Pointer(head.pointer(POINTER_BYTES_MAX)))
        };
        *self.region = Arc::new(self.region.with_pointers(shape, widen));
        let grown = self.region.memory_bytes() - before;
        self.directory.note_grown(grown);
    }

    /// The youngest record of a chain.
    pub(super) fn head(&self, slot: Slot) -> Option<Address> {
        self.directory.end().before(self.region.head(slot)?.0, self.pointer_bytes())
    }

    fn pointers(&self, hash: KeyHash) -> [Option<Pointer>; 2] {
        let (first, second) = self.region.slots_of(hash);
        [self.region.head(first), second.and_then(|second| self.region.head(second))]
    }

    /// The slots of a key as they are now, with the shorter chain's to be chosen if the key is in none. To be completed
    /// by a walk of both chains.
    pub fn undecided(&self, hash: KeyHash) -> Decision {
        let is_in_second = match self.region.choose(hash) {
            Choice::Slot(slot) | Choice::Walk(slot, _) => self.is_second(slot),
        };
        Decision { is_in_second, heads: self.pointers(hash) }
    }

    /// The head of the key's chain in its first or second slot.
    pub fn head_of(&self, hash: KeyHash, is_in_second: bool) -> Option<Address> {
        self.head(self.slot(hash, is_in_second)?)
    }

    fn slot(&self, hash: KeyHash, is_in_second: bool) -> Option<Slot> {
        let (first, second) = self.region.slots_of(hash);
        if is_in_second { second } else { Some(first) }
    }

    fn is_second(&self, slot: Slot) -> bool {
        self.region.shape().filter_bytes > 0 && slot.0 >= self.region.len() / 2
    }

    /// Where a record of a key is to be put. `known` is the slot of the key if a record in memory has it.
    pub fn place(&self, hash: KeyHash, known: Option<bool>, decision: Option<&Decision>) -> Place {
        if let Some(slot) = known.and_then(|is_in_second| self.slot(hash, is_in_second)) {
            return Place::In(slot);
        }
        if let Choice::Slot(slot) = self.region.choose(hash) {
            return Place::In(slot);
        }
        let still = decision.filter(|decision| decision.heads == self.pointers(hash));
        match still.and_then(|decision| self.slot(hash, decision.is_in_second)) {
            Some(slot) => Place::In(slot),
            None => Place::Undecided,
        }
    }

    /// The link of a record in this slot that will be in the segment that ends at `end`. `None` if the chain is so old
    /// that no pointer leads there.
    pub fn link(&self, slot: Slot, end: Address) -> Option<Link> {
        let is_in_second = self.is_second(slot);
        let Some(head) = self.head(slot) else {
            return Some(Link { pointer: 0, is_long: false, is_in_second });
        };
        let bytes = (4..=POINTER_BYTES_MAX).find(|&bytes| end.reaches(head, bytes))?;
        Some(Link { pointer: head.pointer(bytes), is_long: bytes == POINTER_BYTES_MAX, is_in_second })
    }

    /// The same with a link of this length, which suffices.
    pub fn link_of(&self, slot: Slot, is_long: bool) -> Link {
        let bytes = if is_long { POINTER_BYTES_MAX } else { 4 };
        let pointer = self.head(slot).map_or(0, |head| head.pointer(bytes));
        Link { pointer, is_long, is_in_second: self.is_second(slot) }
    }

    /// Makes a record the head of a chain.
    pub fn push(&mut self, slot: Slot, hash: KeyHash, record: Address) {
        self.directory.note_segment(record.segment());
        let pointer = Pointer(record.pointer(self.pointer_bytes()));
        self.change().push(slot, hash, pointer);
    }

    /// The same for a record that was found in the log.
    pub fn replay(&mut self, hash: KeyHash, link: &Link, record: Address) {
        let Some(slot) = self.slot(hash, link.is_in_second) else { return };
        if self.head(slot).is_none_or(|head| head < record) {
            if link.pointer == 0 {
                self.clear(slot);
            }
            self.push(slot, hash, record);
        }
    }
}
