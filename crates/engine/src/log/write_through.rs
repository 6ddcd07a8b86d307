//! Writing to the log's files before a write is acknowledged, without a sync: what the system has survives the death of
//! the process.
//!
//! A writer that finds its record unwritten takes the lock and writes for all whose records were appended by then;
//! those that wait for the lock find their records written.

use alluvium_base::SegmentId;

use super::refusal::Refusal;
use super::writer::{Log, Position};
use crate::error::Result;
use crate::failure::{FailureClass, class_of};

impl Log {
    /// Returns when everything up to `position` survives the death of the process.
    pub fn write_to(&self, position: Position) -> Result<()> {
        let waits = &self.waits;
        waits.system.during(&*waits.clock, || self.write_if_unwritten(position))
    }

    fn write_if_unwritten(&self, position: Position) -> Result<()> {
        let mut written = self.written.lock().expect("no panic while held");
        if *written >= position {
            return Ok(());
        }
        if let Some(refusal) = self.commit.refusal() {
            return Err(refusal.error());
        }
        let outcome = self.write_everything(written.segment);
        if let Err(error) = &outcome
            && class_of(error) == FailureClass::Final
        {
            self.refuse(Refusal::Failed { reason: error.to_string() });
        }
        *written = outcome?;
        Ok(())
    }

    /// Writes the blobs that records may refer to, then the sealed segments, then the active one: a recovery would end
    /// before a record whose blob is missing, and at the end of a segment that is not whole. Returns how far everything
    /// is written. Segments before `first` are whole.
    fn write_everything(&self, first: SegmentId) -> Result<Position> {
        let (active, offset, sealed) = {
            let active = self.active();
            let sealed =
                self.sealed().iter().filter(|sealed| sealed.id >= first).cloned().collect::<Vec<_>>();
            (active.segment.clone(), active.segment.published(), sealed)
        };
        self.with_reserve(|| self.blobs.write_out())?;
        if !self.planted_bugs.leave_sealed_unwritten {
            sealed.iter().try_for_each(|segment| self.write_out(segment, true))?;
        }
        self.write_out(&active, true)?;
        Ok(Position { segment: active.id, offset })
    }

    /// How far the log would survive the death of the process, if writers wait for that.
    pub fn written(&self) -> Position {
        *self.written.lock().expect("no panic while held")
    }
}
