//! Lends values out of the log without a copy: the unsafe leaf of this module.

use alluvium_base::KeyHash;

use crate::access::{Access, Gate};
use crate::item::{ItemView, Metadata};
use crate::memory::UNIT_BYTES;

use super::Partition;
use super::inline::{Ahead, Look};
use super::read::Stored;

impl<A: Access> Partition<A> {
    /// In modes in which no thread writes beside readers, calls `take` with the item of `key` in the log's own memory.
    /// `Err(take)` if another thread might write, or if the log's bytes are not contiguous.
    #[inline(always)]
    pub fn lend<T, F: FnOnce(ItemView<'_>) -> T>(
        &self,
        hash: KeyHash,
        key: &[u8],
        ahead: Ahead,
        take: F,
    ) -> Result<Option<T>, F> {
        if !A::Gate::LENDS {
            return Err(take);
        }
        let body = self.body.get();
        let look = match self.glance_inline(body, hash, key, ahead) {
            Look::Unusual => self.look_inline(body, hash, key),
            usual => usual,
        };
        if let Look::Item(seen) = look {
            let cell = seen.item.cell;
            let (ring, start) = cell.value_place();
            let _loan = self.gate.lend();
            // SAFETY: as below.
            let Some(value) = (unsafe { ring.bytes(start, cell.value_len()) }) else { return Err(take) };
            self.confirm_inline(body, &seen);
            return Ok(Some(take(self.view(value, Metadata::default()))));
        }
        let place = body.index.place(hash);
        let found = body.find_beginning_with(place, ahead.ways(), key);
        let Some(found) = found else { return Ok(None) };
        if self.is_expired(found.stored().metadata()) {
            return Ok(None);
        }
        let entry = self.on_hit(&found, hash);
        let log = body.log(entry);
        let stored = Stored { log, unit: log.layout().unit(entry.position()), header: found.header };
        let start = stored.unit * UNIT_BYTES + found.header.value_start();
        let _loan = self.gate.lend();
        // SAFETY: only writers store to words of a ring, and every writer passes the gate first, which panics while the
        // loan lives. The gate's cell ties the partition to one thread, so no write is in progress either.
        let Some(value) = (unsafe { log.ring().bytes(start, stored.value_len()) }) else { return Err(take) };
        Ok(Some(take(self.view(value, stored.metadata()))))
    }
}
