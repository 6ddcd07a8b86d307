//! Faults of a session, and the consequence of an error for it.

use alluvium_io::FaultPlan;
use rand::RngExt;
use rand::rngs::StdRng;

use super::disks::is_wrong;
use super::reads::read_all;
use super::session::Session;
use super::{Failure, fail};
use crate::{Db, Error, Health, Keyspace};

/// Why a session ends early: the storage crashed or an injected error was returned, both of which are expected; or a
/// finding.
pub(super) enum Stop {
    Expected,
    /// The disk is full, or no descriptor is free. The session may continue.
    Full,
    Finding(Failure),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Finding(failure)
    }
}

impl Session<'_> {
    pub(super) fn random_faults(&mut self) -> FaultPlan {
        let rng = &mut *self.rng;
        let soon = |rng: &mut StdRng| {
            let scale = *[10u64, 100, 1000].get(rng.random_range(0..3)).expect("in range");
            Some(rng.random_range(0..scale))
        };
        let mut faults = FaultPlan::default();
        match rng.random_range(0..10) {
            0..=3 => faults.crash_before_operation = soon(rng),
            4 => faults.kill_before_operation = soon(rng),
            5 => faults.fail_read = soon(rng),
            6 => faults.fail_write = soon(rng),
            7 => faults.fail_sync = soon(rng),
            8 => faults.quota_bytes = Some(rng.random_range(0..2_000_000)),
            _ => faults.fail_opens = soon(rng).map(|first| first..first + rng.random_range(1..20)),
        }
        faults
    }

    /// Accepts an error if the storage crashed or the fault plan may have caused it; then the session ends.
    pub(super) fn expect_injected(&mut self, error: &Error, doing: &str) -> Result<(), Failure> {
        let injected = self.faults != FaultPlan::default();
        if self.storage.is_crashed() {
            self.summary.crashes += 1;
        } else if !injected || is_wrong(error) {
            return fail(format!("{doing}: {error}"));
        } else {
            self.summary.errors += 1;
        }
        self.go_down();
        Ok(())
    }

    pub(super) fn stop(&mut self, error: &Error, doing: &str) -> Stop {
        let passes = self.faults.quota_bytes.is_some() || self.faults.fail_opens.is_some();
        if passes && !is_wrong(error) && !self.storage.is_crashed() {
            self.summary.errors += 1;
            return Stop::Full;
        }
        match self.expect_injected(error, doing) {
            Ok(()) => Stop::Expected,
            Err(failure) => Stop::Finding(failure),
        }
    }

    /// Makes room on the disk, and continues if the database says that it can. Returns `false` if it says that it
    /// cannot.
    pub(super) fn resume(&mut self, db: &Db, keyspaces: &mut [Keyspace]) -> Result<bool, Failure> {
        let passed = self.faults.fail_opens.is_some() && db.health() == Health::Healthy;
        if !passed && !matches!(db.health(), Health::DiskFull { .. }) {
            return Ok(false);
        }
        self.faults = FaultPlan::default();
        self.storage.set_faults(self.faults.clone());
        let describe = |error: Error| Failure { reason: format!("going on after a full disk: {error}") };
        db.resume().and_then(|()| db.persist()).map_err(describe)?;
        // A keyspace may have been dropped while there was no room to create it again.
        for (number, keyspace) in keyspaces.iter_mut().enumerate() {
            let name = format!("keyspace-{number}");
            *keyspace = db.keyspace_with(&name, &self.shape.options(number)).map_err(describe)?;
        }
        // A failed operation may have taken effect, and is durable if it did.
        self.model.settle(&read_all(keyspaces).map_err(describe)?)?;
        Ok(true)
    }
}
