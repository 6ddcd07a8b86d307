//! Changes the memory limit at run time.

use std::ops::Range;

use crate::access::{Access, SharedWrites};
use crate::error::BuildError;
use crate::limits::Numbers;

use super::handle::Cache;

/// With at least this many items their actual mean size is used instead of the builder's.
const ITEMS_TO_JUDGE_BY: u64 = 100;

impl<A: SharedWrites> Cache<A> {
    /// Changes the memory limit, or divides the same one again between index and items, by the mean size of the items
    /// that are present. Partition by partition, items move to new memory, oldest first; if there is less room, the
    /// oldest are evicted. Takes some 100 ns per item, during which other threads continue to read and miss items that
    /// have not moved yet.
    ///
    /// The old memory is returned to the system as items move (on Linux; on other systems when the cache is dropped),
    /// its address range when the cache is dropped.
    ///
    /// # Errors
    /// [`BuildError`]; partitions that were already resized stay so.
    pub fn resize(&self, memory_limit: usize) -> Result<(), BuildError> {
        self.resize_partitions(0..self.partitions.all.len(), memory_limit)
    }
}

impl<A: Access> Cache<A> {
    /// Resizes a range of partitions, which the caller may write, to their shares of a limit for all.
    pub(super) fn resize_partitions(
        &self,
        range: Range<usize>,
        memory_limit: usize,
    ) -> Result<(), BuildError> {
        let total = self.stats().total();
        let purpose = if total.items < ITEMS_TO_JUDGE_BY {
            self.settings.purpose(self.settings.payload_bytes_mean, false)
        } else {
            let cell_payload =
                self.partitions.all.first().map_or(0, |part| part.body.get().tables.cell_payload);
            let (inline_bytes, logged) = (
                total.inline_items * cell_payload as u64,
                total.log_bytes_used.saturating_sub(8 * (total.items - total.inline_items)),
            );
            let payload = (((inline_bytes + logged) / total.items) as usize).max(1);
            self.settings.purpose(payload, 2 * total.inline_items >= total.items)
        };
        // Items that are larger than before also move, as far as they fit.
        let numbers = Numbers { payload: 0, ..self.settings.numbers(memory_limit) };
        let shape = numbers.share_out(|share| self.settings.shape::<A>(share, purpose))?;
        for partition in &self.partitions.all[range] {
            partition.resize(shape)?;
        }
        Ok(())
    }
}
