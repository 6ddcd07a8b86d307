//! Writes of items that are in the write cache, come to it or leave it.

use std::mem;

use crate::canary::{Canary, is_broken};
use crate::sync::add_alone;

use super::clean::Hands;
use super::descriptor::Descriptor;
use super::medium::{Medium, Mistake};
use super::part::{Part, Sought};
use super::stored_item::{Head, StoredItem};
use super::write_cache::WriteCache;

impl<M: Medium> Part<M> {
    /// Stores an item in the write cache, if its key is hot, and returns whether a line was flushed. Otherwise `None`:
    /// the item belongs in the file.
    pub(super) fn put_hot(
        &self,
        cache: &WriteCache,
        hands: &mut Hands,
        sought: Sought<'_>,
        head: Head,
        item: StoredItem<'_>,
    ) -> Option<bool> {
        let own = self.slot_of(hands, sought);
        if !cache.has_room(head.units()) {
            let slot = own?;
            let stored = self.put_in_file(hands, sought, head, item, true);
            self.leave_slot(slot, sought);
            self.count_set(true);
            return Some(stored.has_flushed);
        }
        let beside = &self.beside[sought.bucket];
        if let Some(slot) = own {
            item.write(head, &mut hands.bytes);
            beside.version().begin_change();
            cache.fill(slot, sought, &hands.bytes);
            beside.version().end_change();
            hands.popularity.count_use(slot);
            self.count_set(true);
            add_alone(&self.counters.hot_sets, 1);
            return Some(false);
        }
        if !hands.popularity.count(sought) {
            return None;
        }
        let slot = hands.popularity.victim(cache, sought);
        let mut has_flushed = self.cool(cache, hands, slot);
        let way = self.way_of(hands, sought);
        item.write(head, &mut hands.bytes);
        beside.version().begin_change();
        cache.fill(slot, sought, &hands.bytes);
        beside.add_hot();
        if let Some(way) = way {
            self.shared.set_descriptor(self.bucket(sought.bucket), way, Descriptor::NONE);
            beside.reset(way, 0);
        }
        beside.version().end_change();
        hands.popularity.begin_use(slot);
        if let Some(way) = way
            && !self.shared.medium.makes(Mistake::HotUnflushed)
        {
            // From here on a crash loses the item.
            has_flushed |= self.flush(sought, way);
        }
        self.count_set(way.is_some());
        add_alone(&self.counters.hot_sets, 1);
        Some(has_flushed)
    }

    /// The slot of the item of `key`, which may have expired; `hands.bytes` has the item then.
    #[inline]
    pub(super) fn slot_of(&self, hands: &mut Hands, sought: Sought<'_>) -> Option<usize> {
        if self.beside[sought.bucket].hot() == 0 {
            return None;
        }
        self.write_cache.as_ref()?.find(sought, &mut hands.bytes)
    }

    /// Makes the slot of a key empty.
    pub(super) fn leave_slot(&self, slot: usize, sought: Sought<'_>) {
        let Some(cache) = &self.write_cache else { return };
        let beside = &self.beside[sought.bucket];
        beside.version().begin_change();
        cache.empty(slot);
        beside.remove_hot();
        beside.version().end_change();
    }

    /// Moves the item of a slot to the file, if it has one, and returns whether a line was flushed.
    fn cool(&self, cache: &WriteCache, hands: &mut Hands, slot: usize) -> bool {
        let mut bytes = mem::take(&mut hands.cooled);
        cache.take_copy(slot, &mut bytes);
        let has_flushed = match StoredItem::parse(&bytes) {
            Some(item) => self.cool_item(hands, slot, item),
            None => false,
        };
        hands.cooled = bytes;
        has_flushed
    }

    fn cool_item(&self, hands: &mut Hands, slot: usize, item: StoredItem<'_>) -> bool {
        let sought = self.sought(self.shared.hash(item.key), item.key);
        let is_early = self.shared.medium.makes(Mistake::CooledEarly) || is_broken(Canary::CooledTooEarly);
        if is_early {
            self.leave_slot(slot, sought);
        }
        let mut has_flushed = false;
        if self.shared.is_expired(item.metadata) {
            add_alone(&self.counters.expired, 1);
        } else if let Some(head) = Head::new(item.key.len(), item.value.len(), item.metadata) {
            // Readers find the same item at either place until it leaves the slot.
            has_flushed = self.put_in_file(hands, sought, head, item, true).has_flushed;
            add_alone(&self.counters.cooled, 1);
        }
        if !is_early {
            self.leave_slot(slot, sought);
        }
        has_flushed
    }

    /// Moves all items of the write cache to the file.
    pub fn cool_all(&self) {
        let Some(cache) = &self.write_cache else { return };
        for slot in cache.all() {
            if cache.item_bytes(slot) > 0 {
                // Others may write in between.
                let mut hands = self.enter();
                let has_flushed = self.cool(cache, &mut hands, slot);
                self.settle(has_flushed);
            }
        }
    }

    /// Makes the write cache empty.
    pub(super) fn forget_hot(&self, hands: &mut Hands) {
        let Some(cache) = &self.write_cache else { return };
        for slot in cache.all() {
            cache.take_copy(slot, &mut hands.bytes);
            if let Some(item) = StoredItem::parse(&hands.bytes) {
                self.leave_slot(slot, self.sought(self.shared.hash(item.key), item.key));
            }
        }
    }
}
