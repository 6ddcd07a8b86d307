//! How long a frozen segment waits for its conversion, and how the log gives space back.
//!
//! Where items live for a short time, a segment that waits has fewer live items each moment: those of a queue are gone
//! before the next segment is frozen, and a conversion drops what is gone ([decision
//! 0058](../../../../docs/decisions/0058-what-dies-in-the-log-stays-there.md)).

use super::shared::Shared;
use crate::error::Result;
use crate::log::{LogStore, Segment};

/// Number of items of a log store that are examined.
const SAMPLES_MAX: usize = 64;
/// A quiet log is frozen for the sake of its garbage if it has at least this number of bytes, and if at most this share
/// of them are values that are the newest of their keys.
const GARBAGE_BYTES_MIN: u64 = 4 << 20;
const LIVE_SHARE_MAX: f64 = 0.5;

/// Estimated bytes of a segment's newest items of their keys, tombstones left out.
fn live_bytes(shared: &Shared, segment: &Segment) -> f64 {
    let live_in = |store: &LogStore| {
        // Items are in the order of their hashes, so the first ones of each shard are as good as any.
        let samples_each = SAMPLES_MAX.div_ceil(store.shards().len());
        let indexes: Vec<_> = store.shards().iter().map(|shard| shard.index()).collect();
        let (mut samples, mut bytes) = (0, 0);
        for (_, _, offset) in indexes.iter().flat_map(|index| index.entries().take(samples_each)) {
            let Ok(encoded) = segment.encoded_item_at(offset) else { continue };
            samples += 1;
            bytes += if encoded.item.is_tombstone() { 0 } else { encoded.bytes.len() };
        }
        bytes as f64 / f64::from(samples.max(1)) * store.len() as f64
    };
    let in_keyspace = |version: &crate::level::Version| {
        let stores = version.log_stores.iter().filter(|store| store.segment.id == segment.id);
        stores.map(|store| live_in(store)).sum::<f64>()
    };
    shared.all_keyspaces().iter().map(|keyspace| in_keyspace(&keyspace.version.load())).sum()
}

impl Shared {
    /// Number of frozen segments that are to be converted now.
    pub fn conversions_due(&self) -> usize {
        let (count, newest) = {
            let frozen = self.frozen.lock().expect("no panic while held");
            (frozen.len(), frozen.back().cloned())
        };
        // Only the newest one may wait. It counts among those for which the memory limit has room.
        newest.map_or(0, |newest| count - usize::from(self.may_wait(&newest)))
    }

    /// Whether the newest frozen segment waits until the next one is frozen, or the log is quiet.
    fn may_wait(&self, segment: &Segment) -> bool {
        self.settings.background && segment.is_grown() && !self.log.is_quiet(self.clock.monotonic())
    }

    /// Gives back space of the log when nothing is written: freezes the active segment if most of it is garbage, which
    /// its conversion drops, and cuts off space that has no content. Returns whether it froze the segment.
    pub fn give_back_log(&self) -> Result<bool> {
        if self.is_read_only() || self.log.refusal().is_some() {
            return Ok(false);
        }
        let (segment, end) = (self.log.active_segment(), self.log.end());
        let is_examined = {
            let mut examined = self.log_examined.lock().expect("no panic while held");
            std::mem::replace(&mut *examined, end) == end
        };
        let bytes_min = GARBAGE_BYTES_MIN.min(segment.capacity() / 4);
        let freezes = !is_examined
            && segment.published() >= bytes_min
            && self.frozen_count() < self.memory.budget().frozen_max
            && live_bytes(self, &segment) <= LIVE_SHARE_MAX * segment.published() as f64;
        if freezes {
            self.freeze_now(segment.id)?;
        }
        self.log.trim();
        Ok(freezes)
    }
}
