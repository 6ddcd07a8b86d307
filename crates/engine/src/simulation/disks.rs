//! The disks of a simulated machine: one, or two with a second one for the tables of young levels. They fail together.

use std::sync::Arc;

use alluvium_base::checksum::checksum64;
use alluvium_io::{FaultPlan, SimulatedStorage};
use rand::RngExt;
use rand::rngs::StdRng;

use crate::{Builder, Error};

/// One or two disks as one process uses them between two crashes. Clones are the same disks.
#[derive(Debug, Clone)]
pub(super) struct Disks {
    pub first: SimulatedStorage,
    pub second: Option<Second>,
}

/// The disk of young levels.
#[derive(Debug, Clone)]
pub(super) struct Second {
    pub storage: SimulatedStorage,
    /// Number of levels whose tables are stored there.
    levels: usize,
    /// Whether the faults of this session occur here.
    fails: bool,
}

impl Disks {
    /// Empty disks; with two seeds of five, a second one.
    pub fn random(first: SimulatedStorage, rng: &mut StdRng) -> Self {
        let second = (rng.random_range(0..5) < 2).then(|| {
            let storage = SimulatedStorage::new(rng.random());
            Second { storage, levels: rng.random_range(0..5), fails: false }
        });
        Self { first, second }
    }

    fn all(&self) -> impl Iterator<Item = &SimulatedStorage> {
        std::iter::once(&self.first).chain(self.second.as_ref().map(|second| &second.storage))
    }

    /// Restarts the machine. What is stored on the second disk from now on is chosen again.
    pub fn reopen(&self, rng: &mut StdRng) -> Self {
        let second = self.second.as_ref().map(|second| Second {
            storage: second.storage.reopen(),
            levels: rng.random_range(0..5),
            fails: rng.random_range(0..3) == 0,
        });
        Self { first: self.first.reopen(), second }
    }

    /// Whether a disk is dead. The other one may work for a short time after that.
    pub fn is_crashed(&self) -> bool {
        self.all().any(SimulatedStorage::is_crashed)
    }

    /// Whether the process has died while the machine kept running.
    pub fn is_killed(&self) -> bool {
        self.all().any(SimulatedStorage::is_killed)
    }

    /// The power fails.
    pub fn crash(&self) {
        self.all().for_each(SimulatedStorage::crash);
    }

    /// The process dies.
    pub fn kill(&self) {
        self.all().for_each(SimulatedStorage::kill);
    }

    /// Sets the faults to come on one of the disks. A full disk is always the first one.
    pub fn set_faults(&self, faults: FaultPlan) {
        self.all().for_each(|storage| storage.set_faults(FaultPlan::default()));
        match &self.second {
            Some(second) if second.fails && faults.quota_bytes.is_none() => second.storage.set_faults(faults),
            _ => self.first.set_faults(faults),
        }
    }

    /// Number of changes and syncs so far.
    pub fn operation_count(&self) -> u64 {
        self.all().map(SimulatedStorage::operation_count).sum()
    }

    /// A checksum of the names and the bytes of all files except the lock, which names the process.
    pub fn checksum(&self) -> u64 {
        let files = self.all().flat_map(|storage| storage.contents());
        let files = files.filter(|(name, _)| name != crate::file_names::LOCK);
        files.fold(0, |sum, (name, bytes)| checksum64(&bytes, checksum64(name.as_bytes(), sum)))
    }

    /// Gives the second disk to an opening.
    pub fn give(&self, builder: Builder) -> Builder {
        match &self.second {
            Some(second) => builder.young_levels_storage(Arc::new(second.storage.clone()), second.levels),
            None => builder,
        }
    }
}

/// Whether the error cannot be explained by a fault of a disk.
pub(super) fn is_wrong(error: &Error) -> bool {
    matches!(error, Error::Corruption(_) | Error::MissingFile { .. } | Error::YoungDirectory { .. })
}
