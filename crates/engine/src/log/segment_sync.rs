//! Making a segment's file durable.

use alluvium_io::sync::atomic::Ordering;

use super::segment::{Filling, Segment};
use crate::error::{IoContext, Result};

impl Segment {
    /// Makes what was written survive a power cut.
    ///
    /// **Invariant:** after a sync failed, the next one that succeeds follows a write of the whole content. The system
    /// drops what it could not write, and says so once: a sync that is only repeated succeeds, and proves nothing.
    pub fn sync(&self) -> Result<()> {
        // Held during the sync: of two at the same time, only one may get the failure.
        let mut has_failed = self.has_failed_sync.lock().expect("no panic while held");
        if *has_failed {
            let writing = self.write.lock().expect("no panic while held");
            self.written.store(0, Ordering::Release);
            drop(writing);
            self.write_out(true, Filling::Plain)?;
        }
        let synced = self.file.sync();
        *has_failed = synced.is_err();
        synced.context(|| format!("syncing log file {}", self.name()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use alluvium_base::SegmentId;
    use alluvium_io::{FaultPlan, SimulatedStorage};

    use super::*;
    use crate::log::{Recycler, SegmentHeader};

    /// Seed 2068628 of the threaded simulation: the file of a segment that chains kept had lost its header.
    #[test]
    fn what_a_failed_sync_lost_is_written_again() {
        let storage = SimulatedStorage::new(7);
        let header = SegmentHeader { id: SegmentId(3), seed: 9, opening: 1, follows: None };
        let (segment, mut appender) =
            Segment::create(&storage, &Arc::new(Recycler::default()), header, 1 << 20).unwrap();
        appender.append(&[5; 10_000]).unwrap();
        segment.write_out(true, Filling::Plain).unwrap();
        storage.set_faults(FaultPlan { fail_sync: Some(0), ..FaultPlan::default() });
        segment.sync().unwrap_err();
        storage.set_faults(FaultPlan::default());
        segment.sync().unwrap();
        storage.crash();
        let bytes = storage.reopen().contents().remove(segment.name()).unwrap();
        assert_eq!(bytes[..4096], header.encode()[..]);
        assert_eq!(bytes[4096..14_096], [5; 10_000]);
    }
}
