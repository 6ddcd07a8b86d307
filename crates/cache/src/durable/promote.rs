//! Items of blocks, as gets and writes see them.
//!
//! A get that finds an item in a block for the second time stores it as one that is not compressed, if no writer is at
//! work. The content is the same, so nothing is flushed.
//!
//! Architecture invariant: an item never moves without a flush to a zone that is cleaned before the one that it comes
//! from. The medium may still have its former descriptor when the new one has become stale, and a set of the key then
//! flushes nothing; a crash would bring the former item back. The ready zone is the only one that is cleaned after the
//! active one, so nothing is promoted from there. A restart after a crash happens to renew just the zone in question,
//! since it is the next to be cleaned; the rule does not rely on that, and shows in the simulation only without it.

use crate::sync::add_alone;

use super::block::with_unpacked;
use super::clean::Hands;
use super::descriptor::{Descriptor, UNIT};
use super::medium::{Medium, Mistake};
use super::part::{Part, Sought};
use super::shared::Shared;
use super::stored_item::{Head, StoredItem};

/// Gets of an item in the life of its block that promote it.
pub(super) const PROMOTING_COUNT: u32 = 2;

impl<M: Medium> Part<M> {
    /// Calls `take` with the item of `key` in a block; `None` if `bytes` are no block or have no such item.
    pub(super) fn in_block<T>(
        &self,
        bytes: &[u8],
        is_it: impl Fn(&[u8]) -> bool,
        take: impl FnOnce(StoredItem<'_>) -> T,
    ) -> Option<T> {
        let packing = self.shared.packing.as_ref()?;
        with_unpacked(|unpacked| {
            unpacked.unpack(bytes, packing)?;
            let item = unpacked.items().find(|item| is_it(item.key))?;
            Some(take(StoredItem { key: item.key, value: item.value, metadata: item.metadata }))
        })
    }

    /// The item of `key` in a block, as it would be stored by itself.
    pub(super) fn plain_of(&self, bytes: &[u8], key: &[u8]) -> Option<Vec<u8>> {
        self.in_block(
            bytes,
            |own| own == key,
            |item| {
                let mut plain = Vec::new();
                let head = Head::new(item.key.len(), item.value.len(), item.metadata)?;
                item.write(head, &mut plain);
                Some(plain)
            },
        )?
    }

    /// Stores an item of a block as one that is not compressed, unless a writer is at work.
    #[cold]
    pub(super) fn promote(&self, sought: Sought<'_>) {
        let Ok(mut hands) = self.hands.try_lock() else { return };
        let hands = &mut *hands;
        if self.promotable(hands, sought).is_none() {
            return;
        }
        let units = hands.bytes.len() / UNIT;
        if units > self.shared.geometry.item_units_max() {
            return;
        }
        let place = self.reserve(hands, units);
        // Items may have moved, or left.
        let Some(way) = self.promotable(hands, sought).filter(|_| hands.bytes.len() == units * UNIT) else {
            return;
        };
        let descriptor = Descriptor::new(place, sought.tag, units);
        let descriptor = descriptor.with_checksum(self.checksum(&hands.bytes, descriptor));
        self.shared.medium.copy_in(self.shared.geometry.unit_at(place.zone, place.offset), &hands.bytes);
        self.point(sought.bucket, way, descriptor, 1);
        add_alone(&self.counters.promoted, 1);
    }

    /// The way of the item of `key`, if it is in a block and may be moved; `hands.bytes` has the item then, as it is
    /// stored by itself.
    fn promotable(&self, hands: &mut Hands, sought: Sought<'_>) -> Option<usize> {
        let way = self.live(hands, sought)?;
        let descriptor = self.shared.descriptor(self.bucket(sought.bucket), way);
        let is_ready = descriptor.place().zone == self.zone(hands.ready());
        if is_ready && !self.shared.medium.makes(Mistake::PromotedFromReady) {
            return None;
        }
        let is_live =
            StoredItem::parse(&hands.bytes).is_some_and(|item| !self.shared.is_expired(item.metadata));
        (is_live && self.is_block(descriptor)).then_some(way)
    }

    /// Whether the place of a descriptor that counts has a block.
    pub(super) fn is_block(&self, descriptor: Descriptor) -> bool {
        self.shared.packing.is_some() && {
            let place = descriptor.place();
            let word = self.shared.medium.load(self.shared.geometry.unit_at(place.zone, place.offset));
            super::block::BlockHead::parse(word)
                .is_some_and(|head| head.units() * UNIT == Shared::<M>::item_bytes(descriptor))
        }
    }
}
