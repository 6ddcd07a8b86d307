//! Snapshots and checkpoints in the simulation: each must contain what the model contained when it was taken.

use std::sync::Arc;

use alluvium_io::SimulatedStorage;

use rand::RngExt;

use super::Failure;
use super::disks::Disks;
use super::faults::Stop;
use super::model::Contents;
use super::reads::read_all;
use super::session::Session;
use crate::{Db, Error, Snapshot};

/// Maximum number of snapshots held at a time.
const SNAPSHOTS_MAX: usize = 3;

impl Session<'_> {
    /// Takes a snapshot, which replaces a random one if there are enough.
    pub(super) fn take_snapshot(&mut self, db: &Db) -> Result<(), Stop> {
        if self.snapshots.len() >= SNAPSHOTS_MAX {
            let dropped = self.random_snapshot();
            self.snapshots.swap_remove(dropped);
        }
        let snapshot = db.snapshot().map_err(|error| self.stop(&error, "taking a snapshot"))?;
        self.snapshots.push((snapshot, self.model.contents()));
        Ok(())
    }

    /// Reads some keys of a snapshot, or all of it.
    pub(super) fn check_snapshot(&mut self) -> Result<(), Stop> {
        if self.snapshots.is_empty() {
            return Ok(());
        }
        let chosen = self.random_snapshot();
        if self.rng.random_range(0..4) == 0 {
            let (snapshot, expected) = &self.snapshots[chosen];
            let found = read_snapshot(snapshot);
            let expected_len = expected.len();
            let agrees = found.as_ref().is_ok_and(|found| found == expected);
            let found = found.map_err(|error| self.stop(&error, "iterating over a snapshot"))?;
            if !agrees {
                let reason = format!("a snapshot holds {} items, not {expected_len}", found.len());
                return Err(Failure { reason }.into());
            }
            return Ok(());
        }
        for _ in 0..5 {
            let name = self.name();
            let (snapshot, expected) = &self.snapshots[chosen];
            let expected = expected.get(&name).cloned();
            let found = match snapshot.keyspace(&format!("keyspace-{}", name.0)) {
                Some(keyspace) => keyspace.get(&name.1),
                None => Ok(None),
            };
            let found = found.map_err(|error| self.stop(&error, "getting from a snapshot"))?;
            self.compare(&name, expected, found, "get from a snapshot")?;
        }
        Ok(())
    }

    /// Makes a checkpoint, cuts its power, and opens it.
    pub(super) fn checkpoint(&mut self, db: &Db) -> Result<(), Stop> {
        let copy = SimulatedStorage::new(self.rng.random());
        let made = db.checkpoint_into(Arc::new(copy.clone()));
        made.map_err(|error| self.stop(&error, "making a checkpoint"))?;
        copy.crash();
        let failure = |error: Error| Failure { reason: format!("opening a checkpoint: {error}") };
        let (copied, keyspaces) =
            self.open_in(&Disks { first: copy.reopen(), second: None }).map_err(failure)?;
        let found = read_all(&keyspaces).map_err(failure)?;
        let problems = copied.verify().map_err(failure)?.problems;
        let expected = self.model.contents();
        if found != expected || !problems.is_empty() {
            let reason =
                format!("a checkpoint holds {} items, not {}: {problems:?}", found.len(), expected.len());
            return Err(Failure { reason }.into());
        }
        Ok(())
    }

    fn random_snapshot(&mut self) -> usize {
        self.rng.random_range(0..self.snapshots.len())
    }
}

fn read_snapshot(snapshot: &Snapshot) -> Result<Contents, Error> {
    let mut found = Contents::new();
    // Not in the order of their numbers: a keyspace that was dropped and created again comes after the others.
    for name in snapshot.keyspace_names() {
        let number = name.strip_prefix("keyspace-").and_then(|number| number.parse().ok());
        let number = number.expect("a name of the simulation");
        let Some(keyspace) = snapshot.keyspace(&name) else { continue };
        for item in keyspace.iter() {
            let (key, value) = item?;
            found.insert((number, key), value);
        }
    }
    Ok(found)
}
