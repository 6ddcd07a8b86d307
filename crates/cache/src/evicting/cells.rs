//! Items that move between cells and logs.

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::inline::{CELL_BYTES_MAX, Cell, InlineTable};
use crate::item::Metadata;
use crate::memory::HUGE_PAGE_BYTES;
use crate::partition::{Body, Counters, Partition};

use super::evict::Oldest;
use super::policy::Evicting;

impl<A: Access> Partition<Evicting, A> {
    /// Stores the item of a key that has none in its inline bucket, if there is a cell: an empty one, or that of
    /// another item if the key was evicted recently. Returns whether it did.
    pub(super) fn put_inline(&self, body: &Body<Evicting>, hash: KeyHash, key: &[u8], value: &[u8]) -> bool {
        // Forgotten only when the item takes a cell: otherwise the logs ask for it again.
        let ghost = body.region.ghost.as_ref();
        let mut was_evicted = false;
        let is_put = self.take_cell(body, hash, key, value, || {
            was_evicted = ghost.is_some_and(|ghost| ghost.has(hash));
            was_evicted
        });
        if is_put {
            Counters::count(&self.counters.inserted);
        }
        if let Some(ghost) = ghost.filter(|_| is_put && was_evicted) {
            ghost.take(hash);
        }
        is_put
    }

    /// Moves an item that leaves probation to its inline bucket, if it fits and there is a cell: an empty one, or that
    /// of another item if it was used on probation. Returns whether it did.
    pub(super) fn move_inline(
        &self,
        body: &Body<Evicting>,
        oldest: &Oldest<'_>,
        way: usize,
        was_used: bool,
    ) -> bool {
        let (stored, header) = (oldest.stored(), oldest.header);
        let (key_len, value_len) = (header.key_len(), header.value_len());
        if header.has_extras() || key_len + value_len > CELL_BYTES_MAX {
            return false;
        }
        let mut bytes = [0; CELL_BYTES_MAX];
        let (key, rest) = bytes.split_at_mut(key_len);
        let value = &mut rest[..value_len];
        stored.copy_key(key);
        stored.value().copy_out(value);
        if !self.take_cell(body, oldest.hash, key, value, || was_used) {
            return false;
        }
        self.unlink(body, oldest.place.bucket, oldest.slot(way), &self.counters.moved);
        true
    }

    /// Moves the inline items of an old body, whose memory is returned to the system on the way.
    pub(super) fn move_inline_items(&self, old: &Body<Evicting>, new: &Body<Evicting>) {
        let Some(table) = old.cells() else { return };
        let step = (HUGE_PAGE_BYTES / InlineTable::bucket_bytes(table.payload())).max(1);
        for (number, spot) in table.spots().enumerate() {
            for way in spot.bucket().ways() {
                self.move_inline_item(new, spot.cell(way), spot.bucket().counts().get(way));
            }
            if (number + 1).is_multiple_of(step) {
                table.release(number + 1 - step, number + 1);
            }
        }
    }

    fn move_inline_item(&self, new: &Body<Evicting>, cell: Cell<'_>, count: u32) {
        let (key, value) = cell.parts().expect("a cell with a tag contains an item");
        let hash = self.common.hasher.hash(&key);
        Counters::uncount(&self.counters.inline);
        if self.take_cell(new, hash, &key, &value, || count > 0) {
            return;
        }
        // It was counted when it was first inserted.
        match self.put_in_region(new, hash, None, &key, &value, Metadata::default()) {
            Ok(()) => Counters::uncount(&self.counters.inserted),
            Err(_) => Counters::count(&self.counters.evicted),
        }
    }
}
