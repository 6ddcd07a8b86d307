//! Keeps the log for its readers, and tells them about changes that have no records.

use super::keyspace::KeyspaceShared;
use super::shared::Shared;
use super::update_barriers::UpdateBarrier;
use crate::error::Result;
use crate::failure::lacks_space;
use crate::log::Segment;
use crate::planted_race::PlantedRace;

impl Shared {
    /// Makes a segment that is about to be converted durable, if readers of the log may need it. Without space it is
    /// not kept, and they learn that it is gone.
    pub fn keep_for_readers(&self, segment: &Segment) -> Result<()> {
        let (retained, header) = (&self.log.retained, &segment.header);
        let keeps = match self.planted_bugs.has(PlantedRace::HoldWhatIsGone) {
            true => retained.keeps(header),
            false => retained.keeps_from_now_on(header),
        };
        if !keeps {
            return Ok(());
        }
        self.log.retain(segment).or_else(|error| if lacks_space(&error) { Ok(()) } else { Err(error) })
    }

    /// Appends a record that says that items of the keyspace change without records. Readers see it once the barrier is
    /// lowered, that is, when the change is published: a snapshot that they take then contains it.
    ///
    /// The caller syncs the log before the change is durable: after a crash in between, the record is there and the
    /// change may not be, never the other way round.
    pub fn log_unlogged(&self, keyspace: &KeyspaceShared, barrier: &UpdateBarrier<'_>) -> Result<()> {
        loop {
            let segment = {
                let _no_switch = self.freeze_lock.lock().expect("no panic while held");
                let segment = self.log.active_segment();
                let position = self.log.end_position();
                if self.log.append_unlogged(&segment, keyspace.id) {
                    barrier.announce(position);
                    return Ok(());
                }
                segment
            };
            self.check_refusal()?;
            self.freeze(segment.id, true)?;
        }
    }
}
