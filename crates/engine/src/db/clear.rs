//! Removes all items of a keyspace.

use std::sync::Arc;

use alluvium_base::HashRange;

use super::keyspace::Keyspace;
use crate::blob::{ReferenceCounts, VersionBlobs};
use crate::error::Result;
use crate::level::Version;
use crate::manifest::Edit;
use crate::planted_race::PlantedRace;

impl Keyspace {
    /// Removes all items at once. The keyspace stays, with its name and its plan.
    ///
    /// Atomic: every concurrent read or write happens before or after it, and after a crash all items are there or
    /// none. Survives a power cut when this returns, and so do all earlier writes. Costs a freeze of the log and a
    /// record in the manifest, independent of the size; writes to the keyspace wait for that. The space is freed at
    /// once, or when the last snapshot that needs it is dropped.
    pub fn clear(&self) -> Result<()> {
        let shared = self.database();
        let keyspace = &self.shared;
        shared.check_refusal()?;
        keyspace.check_present()?;
        let _no_conversion = shared.convert_lock.lock().expect("no panic while held");
        let _no_merge = shared.merge_lock.lock().expect("no panic while held");
        // Dropping a keyspace takes both locks.
        keyspace.check_present()?;
        // An update that reads an item between the freeze and the clearing must not write a value derived from it.
        let has_epoch = !shared.planted_bugs.has(PlantedRace::ClearWithoutEpoch);
        let barrier = match has_epoch {
            true => keyspace.hold_back_updates(HashRange::ALL),
            false => keyspace.raise_barrier(HashRange::ALL),
        };
        if !has_epoch {
            barrier.lower(HashRange::ALL);
        }
        shared.log_unlogged(keyspace, &barrier)?;
        // Items of this keyspace in segments before the fresh one are ignored from then on, and nothing is written to
        // the fresh one until they are gone.
        shared.freeze_for(keyspace, |fresh| {
            // The manifest's record must not survive a crash that loses earlier writes to other keyspaces.
            shared.log.commit_all()?;
            let log_start = fresh.segment.id;
            shared.append_edits(&[Edit::ClearKeyspace { keyspace: keyspace.id, log_start }])?;
            self.forget_items()
        })
    }

    /// Gives the keyspace a version without items, and gives the space of the old version back.
    fn forget_items(&self) -> Result<()> {
        let (shared, keyspace) = (self.database(), &self.shared);
        let before = keyspace.version.load_full();
        let mut references = ReferenceCounts::default();
        for (&file, &bytes) in &before.blobs.live {
            references.take(file, bytes);
        }
        for store in &before.log_stores[1..] {
            references.take_all(&store.references()?);
        }
        shared.scan_cache.forget(keyspace.id);
        keyspace.update_version(|version| Version {
            log_stores: vec![version.active().clone()],
            chain: version.chain.as_ref().map(|chain| Arc::new(chain.begun_anew(version.active()))),
            body: version.body.emptied(),
            blobs: VersionBlobs::default().with_files(&version.blobs.files),
            epoch: version.epoch + u64::from(!shared.planted_bugs.has(PlantedRace::ClearWithoutEpoch)),
        });
        shared.blobs.count_losses(&references);
        shared.drop_chain_files(&before);
        before.body.give_back(|file| shared.is_file_named(file));
        Ok(())
    }
}
