//! Lends values out without a copy: the unsafe leaf of this module.

use alluvium_base::KeyHash;

use crate::access::{Access, Gate};
use crate::index::Index;
use crate::item::{Fast, Metadata, Site, Stored};
use crate::region::Region;

use super::Partition;
use super::cells::Ahead;
use super::policy::Policy;

/// The result of an attempt to lend out a value.
pub(super) enum Lent<T, F> {
    /// The result of the caller's function.
    Hit(T),
    /// Cells and region have no item.
    Absent(F),
    /// Another thread might write, or the bytes are not contiguous.
    Refused(F),
}

impl<P: Policy, A: Access> Partition<P, A> {
    /// In modes in which no thread writes beside readers, calls `take` with the item of `key` in the region's own
    /// memory.
    #[inline(always)]
    pub(super) fn lend<T, F: FnOnce(&[u8], Metadata) -> T>(
        &self,
        hash: KeyHash,
        key: &[u8],
        ahead: Ahead,
        take: F,
    ) -> Lent<T, F> {
        if !A::Gate::LENDS || !P::LENDS {
            return Lent::Refused(take);
        }
        let body = self.body.get();
        let look = match body.see_inline(hash, key, ahead) {
            Fast::Retry => body.look_inline(hash, key),
            usual => usual,
        };
        if let Fast::Hit(seen) = look {
            let value = seen.cell.value();
            let _loan = self.gate.lend();
            // SAFETY: as below.
            let Some(value) = (unsafe { value.ring.bytes(value.start, value.len) }) else {
                return Lent::Refused(take);
            };
            self.confirm_inline(body, &seen);
            return Lent::Hit(take(value, Metadata::default()));
        }
        let place = body.index.place(hash);
        let Some(found) = body.find_beginning_with(place, ahead.ways(), key) else {
            return Lent::Absent(take);
        };
        if self.is_expired(found.stored.metadata()) {
            return Lent::Absent(take);
        }
        let entry = P::on_hit(self, body, &found, hash);
        let Site { ring, unit, .. } = body.region.site(entry);
        let stored = Stored { ring, unit, header: found.stored.header };
        let value = stored.value();
        let _loan = self.gate.lend();
        // SAFETY: only writers store to words of a ring, and every writer passes the gate first, which panics while the
        // loan lives. The gate's cell ties the partition to one thread, so no write is in progress either.
        let Some(value) = (unsafe { value.ring.bytes(value.start, value.len) }) else {
            return Lent::Refused(take);
        };
        Lent::Hit(take(value, stored.metadata()))
    }
}
