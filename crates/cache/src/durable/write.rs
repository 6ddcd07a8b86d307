//! Writes of one key. A write that replaces or removes an item flushes the descriptor's line before it returns, since
//! the old descriptor could survive otherwise. A write that gives an absent key an item flushes nothing: if only a part
//! of it survives, the checksum fails.
//!
//! A descriptor that may be on the medium is never overwritten by that of another key without a flush: a later removal
//! would find nothing to flush, and the crash would bring the item back. The descriptors of former versions of a zone
//! may be, because the version was flushed.
//!
//! A short item that replaces one of its size is written over it (`Part::overwrite`). That costs as little as in
//! memory, and takes no room in a zone, so no zone has to be cleaned for it.

use std::mem;

use alluvium_base::KeyHash;

use crate::canary::{Canary, is_broken};
use crate::error::TooLarge;
use crate::item::{ItemView, Metadata};
use crate::partition::{Change, Write};
use crate::sync::add_alone;

use super::clean::Hands;
use super::descriptor::{Descriptor, UNIT};
use super::geometry::WAYS;
use super::medium::{LINE_BYTES, Medium, Mistake};
use super::part::{Part, Sought, State};
use super::shared::Shared;
use super::stored_item::{Head, StoredItem};

/// Units of the largest item that another is written over, while readers of its bucket wait: 1 KiB.
const OVERWRITTEN_UNITS_MAX: usize = 64;

/// The way for a new descriptor.
#[derive(Clone, Copy, Debug)]
struct Slot {
    way: usize,
    /// Whether the item that the way has is that of the key.
    is_own: bool,
    /// Whether the descriptor in it may count again after a crash.
    may_return: bool,
}

/// What storing an item in the file was.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFile {
    /// Whether it replaced an item of its key.
    pub is_own: bool,
    pub has_flushed: bool,
}

impl<M: Medium> Part<M> {
    /// Gives `key` an item.
    ///
    /// # Errors
    /// [`TooLarge`]; the key keeps its former item.
    #[inline]
    pub fn set(&self, sought: Sought<'_>, value: &[u8], metadata: Metadata) -> Result<(), TooLarge> {
        self.prefetch_sought(sought);
        let mut hands = self.enter();
        let has_flushed = self.put(&mut hands, sought, value, metadata)?;
        self.settle(has_flushed);
        Ok(())
    }

    /// As [`set`](Self::set), as in a cache that has no checksums: nothing is overwritten, and what is flushed is the
    /// item's lines, a fence, the descriptor's line, a fence.
    pub fn set_flushed(&self, sought: Sought<'_>, value: &[u8], metadata: Metadata) -> Result<(), TooLarge> {
        self.prefetch_sought(sought);
        let mut hands = self.enter();
        let head = self.head(sought, value, metadata)?;
        let item = StoredItem { key: sought.key, value, metadata };
        let stored = self.put_in_file(&mut hands, sought, head, item, false);
        self.count_set(stored.is_own);
        if let Some(way) = self.live(&mut hands, sought) {
            let descriptor = self.shared.descriptor(self.bucket(sought.bucket), way);
            let place = descriptor.place();
            let at = self.shared.geometry.unit_at(place.zone, place.offset);
            let end = at + Shared::<M>::item_bytes(descriptor);
            (at / LINE_BYTES..end.div_ceil(LINE_BYTES))
                .for_each(|line| self.shared.medium.flush(line * LINE_BYTES));
            self.settle(true);
            self.flush(sought, way);
            self.settle(true);
        }
        Ok(())
    }

    /// Removes the item of `key`; returns whether there was one.
    pub fn remove(&self, sought: Sought<'_>) -> bool {
        let mut hands = self.enter();
        let (was_there, has_flushed) = self.take_out(&mut hands, sought);
        self.settle(has_flushed);
        was_there
    }

    /// Sets each item of `items`, all of this partition, with one fence.
    ///
    /// # Errors
    /// [`TooLarge`] for the last item that is too large; all others are set.
    pub fn set_each<'k>(
        &self,
        items: impl Iterator<Item = (KeyHash, &'k [u8], &'k [u8])>,
    ) -> Result<(), TooLarge> {
        let mut hands = self.enter();
        let (mut outcome, mut has_flushed) = (Ok(()), false);
        for (hash, key, value) in items {
            match self.put(&mut hands, self.sought(hash, key), value, Metadata::default()) {
                Ok(flushed) => has_flushed |= flushed,
                Err(error) => outcome = Err(error),
            }
        }
        self.settle(has_flushed);
        outcome
    }

    /// Removes the items of `keys`, all of this partition, with one fence; returns how many there were.
    pub fn remove_each<'k>(&self, keys: impl Iterator<Item = (KeyHash, &'k [u8])>) -> usize {
        let mut hands = self.enter();
        let (mut removed, mut has_flushed) = (0, false);
        for (hash, key) in keys {
            let (was_there, flushed) = self.take_out(&mut hands, self.sought(hash, key));
            removed += usize::from(was_there);
            has_flushed |= flushed;
        }
        self.settle(has_flushed);
        removed
    }

    /// Decides what to do with the item of `key`, with no other write in between.
    ///
    /// # Errors
    /// [`TooLarge`]; the key keeps its former item.
    pub fn update<'v>(
        &self,
        sought: Sought<'_>,
        decide: impl FnOnce(Option<(ItemView<'_>, Metadata)>) -> Change<'v>,
    ) -> Result<(), TooLarge> {
        let mut hands = self.enter();
        let is_found = self.slot_of(&mut hands, sought).is_some() || self.live(&mut hands, sought).is_some();
        let bytes = mem::take(&mut hands.bytes);
        let item = if is_found { StoredItem::parse(&bytes) } else { None };
        let item = item.filter(|item| !self.shared.is_expired(item.metadata));
        let change = decide(item.map(|item| (self.shared.view(item.value, item.metadata), item.metadata)));
        let has_flushed = match change {
            Change::Keep => false,
            Change::Remove => self.take_out(&mut hands, sought).1,
            Change::Put(Write { value, metadata }) => self.put(&mut hands, sought, &value, metadata)?,
        };
        self.settle(has_flushed);
        Ok(())
    }

    /// Waits until everything survives that was flushed.
    pub(super) fn settle(&self, has_flushed: bool) {
        if has_flushed && !self.shared.medium.makes(Mistake::FenceLeftOut) {
            self.shared.medium.fence();
        }
    }

    /// The largest item, as an error.
    pub fn too_large(&self) -> TooLarge {
        TooLarge { item_bytes_max: self.shared.geometry.item_units_max() * UNIT }
    }

    /// Stores an item and returns whether it flushed a line.
    fn put(
        &self,
        hands: &mut Hands,
        sought: Sought<'_>,
        value: &[u8],
        metadata: Metadata,
    ) -> Result<bool, TooLarge> {
        let head = self.head(sought, value, metadata)?;
        let item = StoredItem { key: sought.key, value, metadata };
        if let Some(cache) = &self.write_cache
            && let Some(has_flushed) = self.put_hot(cache, hands, sought, head, item)
        {
            return Ok(has_flushed);
        }
        let stored = self.put_in_file(hands, sought, head, item, true);
        self.count_set(stored.is_own);
        Ok(stored.has_flushed)
    }

    /// The first word of an item.
    ///
    /// # Errors
    /// [`TooLarge`], which is counted.
    fn head(&self, sought: Sought<'_>, value: &[u8], metadata: Metadata) -> Result<Head, TooLarge> {
        let head = Head::new(sought.key.len(), value.len(), metadata);
        head.filter(|head| head.units() <= self.shared.geometry.item_units_max()).ok_or_else(|| {
            add_alone(&self.counters.too_large, 1);
            self.too_large()
        })
    }

    /// Counts a set of a key that had an item, or did not.
    pub(super) fn count_set(&self, had_item: bool) {
        add_alone(if had_item { &self.counters.replaced } else { &self.counters.inserted }, 1);
    }

    /// Stores an item in the file; says whether the key's item there may be overwritten.
    #[inline]
    pub(super) fn put_in_file(
        &self,
        hands: &mut Hands,
        sought: Sought<'_>,
        head: Head,
        item: StoredItem<'_>,
        may_overwrite: bool,
    ) -> InFile {
        let shared = &self.shared;
        let mut slot = self.slot_for(hands, sought);
        if slot.is_own && may_overwrite && self.overwrite(hands, sought, slot.way, head, item) {
            add_alone(&self.counters.overwritten, 1);
        } else {
            let before = hands.progress();
            let place = self.reserve(hands, head.units());
            if hands.progress() != before {
                // Items have moved, or left.
                slot = self.slot_for(hands, sought);
            }
            item.write(head, &mut hands.bytes);
            let descriptor = Descriptor::new(place, sought.tag, head.units());
            let descriptor = descriptor.with_checksum(self.checksum(&hands.bytes, descriptor));
            shared.medium.copy_in(shared.geometry.unit_at(place.zone, place.offset), &hands.bytes);
            let count = if slot.is_own { self.beside[sought.bucket].count(slot.way) } else { 0 };
            self.replace(sought, slot.way, descriptor, count);
        }
        if slot.may_return && !slot.is_own {
            add_alone(&self.counters.evicted_by_index, 1);
        }
        let mistake = if slot.is_own { Mistake::UpdateUnflushed } else { Mistake::ReuseUnflushed };
        let has_flushed = slot.may_return && !shared.medium.makes(mistake) && self.flush(sought, slot.way);
        InFile { is_own: slot.is_own, has_flushed }
    }

    /// Writes an item over the key's item, if both have the same size and are short; returns whether it did.
    ///
    /// Until the descriptor is flushed, a crash leaves the old item whole, the new one, or one that fails the checksum.
    /// Afterwards the old one fails it, too, so nothing but the descriptor has to be flushed.
    #[inline]
    fn overwrite(
        &self,
        hands: &mut Hands,
        sought: Sought<'_>,
        way: usize,
        head: Head,
        item: StoredItem<'_>,
    ) -> bool {
        let (shared, bucket) = (&self.shared, self.bucket(sought.bucket));
        let descriptor = shared.descriptor(bucket, way);
        if descriptor.units() != head.units() || head.units() > OVERWRITTEN_UNITS_MAX {
            return false;
        }
        // A block has items of other keys. An item in the victim may wait for its block with its former content.
        if shared.packing.is_some()
            && (descriptor.place().zone == self.zone(hands.victim()) || self.is_block(descriptor))
        {
            return false;
        }
        item.write(head, &mut hands.bytes);
        let new = descriptor.with_checksum(self.checksum(&hands.bytes, descriptor));
        let place = descriptor.place();
        let beside = &self.beside[sought.bucket];
        beside.version().begin_change();
        shared.medium.copy_in(shared.geometry.unit_at(place.zone, place.offset), &hands.bytes);
        shared.set_descriptor(bucket, way, new);
        // It stays where it is, so it is only kept if sets count as accesses.
        beside.reset(way, beside.count(way) + 1);
        beside.version().end_change();
        true
    }

    /// Removes an item; returns whether there was one, and whether a line was flushed.
    fn take_out(&self, hands: &mut Hands, sought: Sought<'_>) -> (bool, bool) {
        let slot = self.slot_of(hands, sought);
        let way = if slot.is_none() { self.live(hands, sought) } else { None };
        if slot.is_none() && way.is_none() {
            return (false, false);
        }
        let is_expired =
            StoredItem::parse(&hands.bytes).is_none_or(|item| self.shared.is_expired(item.metadata));
        add_alone(if is_expired { &self.counters.expired } else { &self.counters.removed }, 1);
        if let Some(slot) = slot {
            self.leave_slot(slot, sought);
        }
        // A key with a slot has no descriptor.
        let Some(way) = way else { return (!is_expired, false) };
        self.replace(sought, way, Descriptor::NONE, 0);
        let is_mistaken = self.shared.medium.makes(Mistake::DeleteUnflushed);
        (!is_expired, !is_mistaken && self.flush(sought, way))
    }

    /// Replaces a descriptor. Readers see the old one or the new one.
    #[inline]
    fn replace(&self, sought: Sought<'_>, way: usize, descriptor: Descriptor, count: u32) {
        let beside = &self.beside[sought.bucket];
        let is_counted = !is_broken(Canary::ChangeUncounted);
        if is_counted {
            beside.version().begin_change();
        }
        self.shared.set_descriptor(self.bucket(sought.bucket), way, descriptor);
        beside.reset(way, count);
        if is_counted {
            beside.version().end_change();
        }
    }

    /// Begins to make the line of a descriptor survive.
    #[inline]
    pub(super) fn flush(&self, sought: Sought<'_>, way: usize) -> bool {
        self.shared.medium.flush(self.shared.descriptor_at(self.bucket(sought.bucket), way));
        true
    }

    /// The way of the item of `key`, which may have expired; `hands.bytes` has the item then.
    pub(super) fn live(&self, hands: &mut Hands, sought: Sought<'_>) -> Option<usize> {
        let bucket = self.bucket(sought.bucket);
        (0..WAYS).find(|&way| self.is_of(hands, sought, way, self.shared.descriptor(bucket, way)))
    }

    /// Whether a descriptor is that of the item of `key`, which may have expired.
    fn is_of(&self, hands: &mut Hands, sought: Sought<'_>, way: usize, descriptor: Descriptor) -> bool {
        if descriptor.tag() != sought.tag || self.state(descriptor) != State::Current {
            return false;
        }
        let beside = &self.beside[sought.bucket];
        hands.bytes.resize(Shared::<M>::item_bytes(descriptor), 0);
        self.shared.copy_item(descriptor, &mut hands.bytes);
        if !beside.is_verified(way) && !self.is_intact(&hands.bytes, descriptor) {
            return false;
        }
        if let Some(item) = StoredItem::parse(&hands.bytes) {
            return item.key == sought.key;
        }
        match self.plain_of(&hands.bytes, sought.key) {
            Some(plain) => {
                hands.bytes = plain;
                true
            }
            None => false,
        }
    }

    /// As [`is_of`](Self::is_of), without a copy of an item that was verified: only its key is read.
    #[inline]
    fn has_key(&self, hands: &mut Hands, sought: Sought<'_>, way: usize, descriptor: Descriptor) -> bool {
        if descriptor.tag() != sought.tag {
            return false;
        }
        if !self.beside[sought.bucket].is_verified(way) {
            return self.is_of(hands, sought, way, descriptor);
        }
        let place = descriptor.place();
        let at = self.shared.geometry.unit_at(place.zone, place.offset);
        let Some(head) = Head::parse(self.shared.medium.load(at)) else {
            return self.shared.packing.is_some() && self.is_of(hands, sought, way, descriptor);
        };
        Some(head).is_some_and(|head| {
            head.units() == descriptor.units()
                && head.key_len() == sought.key.len()
                && self.shared.medium.is_equal(at + head.key_start(), sought.key)
        })
    }

    /// The way of the item of `key`, which may have expired.
    pub(super) fn way_of(&self, hands: &mut Hands, sought: Sought<'_>) -> Option<usize> {
        let bucket = self.bucket(sought.bucket);
        (0..WAYS).find(|&way| {
            let descriptor = self.shared.descriptor(bucket, way);
            self.state(descriptor) == State::Current && self.has_key(hands, sought, way, descriptor)
        })
    }

    /// The way for an item of `key`.
    #[inline]
    fn slot_for(&self, hands: &mut Hands, sought: Sought<'_>) -> Slot {
        let (bucket, beside) = (self.bucket(sought.bucket), &self.beside[sought.bucket]);
        let mut vacant = None;
        let mut coldest = (u32::MAX, 0);
        for way in 0..WAYS {
            let descriptor = self.shared.descriptor(bucket, way);
            match self.state(descriptor) {
                State::Empty | State::Stale => vacant = vacant.or(Some(way)),
                State::Foreign => coldest = coldest.min((0, way)),
                State::Current if self.has_key(hands, sought, way, descriptor) => {
                    return Slot { way, is_own: true, may_return: true };
                }
                State::Current => coldest = coldest.min((beside.count(way) + 1, way)),
            }
        }
        match vacant {
            Some(way) => Slot { way, is_own: false, may_return: false },
            None => Slot { way: coldest.1, is_own: false, may_return: true },
        }
    }
}
