//! Removes all items of a prefix.

use alluvium_base::HashRange;

use super::batch::Batch;
use super::flush::flush;
use super::keyspace::Keyspace;
use crate::compact::{cut_prefix, merge, pick_runs_before};
use crate::error::Result;

/// Maximum bytes of log for removals in one batch: beyond that, merging is cheaper.
const BATCH_BYTES_MAX: u64 = 256 << 10;
/// Maximum bytes of a removal in the log besides its key.
const REMOVAL_BYTES: u64 = 16;

impl Keyspace {
    /// Removes all items that exist at the time of the call and whose keys have this prefix by the keyspace's prefix
    /// rule. Concurrent writes count as before or after it.
    ///
    /// Atomic: after a crash all of them are there or none. The removal of a small prefix is as durable as any write;
    /// that of a large one survives a power cut when this returns, and so do all earlier writes. Costs a scan of the
    /// prefix and a batch of removals. If these take more than 256 KiB (or 1/16 of a log segment, if that is less),
    /// costs instead a freeze of the log, a merge of the youngest level and a sync of the manifest, for which writers
    /// of the keyspace wait; this frees the space at once.
    ///
    /// # Errors
    /// [`crate::Error::NotSemiSorted`] for a keyspace without prefixes.
    pub fn delete_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        let prefix = prefix.as_ref();
        let shared = self.database();
        shared.check_refusal()?;
        match self.removals(prefix, BATCH_BYTES_MAX.min(shared.log.record_bytes_max() / 16))? {
            // The removal that left nothing here may be another caller's, which still waits.
            Some(batch) if batch.is_empty() => self.acknowledgement.give_for_seen(shared),
            Some(batch) => batch.commit(),
            None => self.cut(prefix).map_err(|error| shared.note_failure(error)),
        }
    }

    /// Removals of all items of the prefix; `None` if they take more than `bytes_max` bytes.
    fn removals(&self, prefix: &[u8], bytes_max: u64) -> Result<Option<Batch>> {
        let mut batch = Batch::new(self.handle.clone(), self.acknowledgement);
        let mut bytes = 0;
        let mut iter = self.scan_prefix(prefix)?;
        while let Some(key) = iter.next_key()? {
            bytes += key.len() as u64 + REMOVAL_BYTES;
            if bytes > bytes_max {
                return Ok(None);
            }
            batch.remove(self, key);
        }
        Ok(Some(batch))
    }

    /// Removes the prefix from the tables, once all its items are there.
    fn cut(&self, prefix: &[u8]) -> Result<()> {
        let (shared, keyspace) = (self.database(), &self.shared);
        let Some(hash) = keyspace.hasher.prefix_hash(prefix) else { return Ok(()) };
        // An update that reads an item from now on and writes behind the freeze would survive the removal.
        let barrier = keyspace.hold_back_updates(HashRange::of_high_half(hash));
        shared.log_unlogged(keyspace, &barrier)?;
        // A flush does not freeze a log without items: the record may still be in the active segment afterwards.
        shared.log.commit_all()?;
        flush(shared)?;
        let segment = shared.log.active_segment().id;
        // All runs are merged together, so everything that enters the levels meanwhile is older than everything that
        // does not.
        while let Some(due) = pick_runs_before(keyspace, segment) {
            merge(shared, &due)?;
        }
        cut_prefix(shared, keyspace, prefix)
    }
}
