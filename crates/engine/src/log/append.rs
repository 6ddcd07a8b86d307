//! Appending records to the active segment.

use alluvium_base::KeyspaceId;
use alluvium_io::sync::atomic::Ordering;

use super::active::Active;
use super::record;
use super::segment::Segment;
use super::writer::{END_LEN, Log, WRITE_BEHIND_BYTES};

impl Log {
    /// Appends a record to `segment`, which is active: the caller holds the lock of a shard whose store is open.
    /// Returns the record's start, or `None` if the segment is full or the log is shut.
    pub fn append(&self, segment: &Segment, record: &[u8]) -> Option<u64> {
        self.append_by(segment, record.len(), |active, limit| active.append(record, limit))
    }

    /// The same for a record of `len` bytes that begins at a multiple of [`super::linked_record::LINK_UNIT`], and that
    /// `record` returns when its start is known.
    pub fn append_linked<R: AsRef<[u8]>>(
        &self,
        segment: &Segment,
        len: usize,
        record: impl FnOnce(u64) -> R,
    ) -> Option<u64> {
        self.append_by(segment, len, |active, limit| active.append_linked(len, limit, record))
    }

    fn append_by(
        &self,
        segment: &Segment,
        len: usize,
        append: impl FnOnce(&mut Active, u64) -> Option<u64>,
    ) -> Option<u64> {
        let mut active = self.waits.lock(&self.active);
        debug_assert_eq!(active.segment.id, segment.id);
        let limit = active.segment.capacity() - END_LEN as u64;
        if active.is_shut {
            return None;
        }
        let (published, len) = (segment.published(), len as u64);
        let start = self.waits.for_space(published, len, || append(&mut active, limit))?;
        if start / WRITE_BEHIND_BYTES != (start + len) / WRITE_BEHIND_BYTES {
            self.flush_wanted.store(true, Ordering::Release);
        }
        Some(start)
    }

    /// Appends a record that says that items of a keyspace change without records; returns whether there was room. The
    /// segment is active, and the caller prevents a switch.
    pub fn append_unlogged(&self, segment: &Segment, keyspace: KeyspaceId) -> bool {
        self.append(segment, &record::encode_unlogged(segment.seed, keyspace)).is_some()
    }
}
