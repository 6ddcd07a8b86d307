//! [`Environment`]: what a database takes from outside.

use std::path::Path;
use std::sync::Arc;

use alluvium_io::{Clock, Storage, SystemClock};

use crate::build::Built;
use crate::error::Result;
use crate::planted_race::PlantedRace;

/// What the database takes from outside: storage, time and randomness. The simulation supplies its own.
#[derive(Debug, Clone)]
pub struct Environment {
    /// The storage of all files.
    pub storage: Arc<dyn Storage>,
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// Source of the database's secret hash key and of file seeds. Used when a database or keyspace is created.
    pub random_seed: u64,
    /// Bugs for the simulation to detect. Empty in any other use.
    #[doc(hidden)]
    pub planted_bugs: PlantedBugs,
}

/// Bugs that can be planted, to show that the simulation detects them.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PlantedBugs {
    /// Acknowledge synced writes before the sync.
    pub acknowledge_before_sync: bool,
    /// Acknowledge writes that the process must not lose before the system has them.
    pub acknowledge_before_write: bool,
    /// Omit the rest of sealed segments from such writes.
    pub leave_sealed_unwritten: bool,
    /// Believe log records whose checksum is wrong.
    pub ignore_record_checksum: bool,
    /// Save directories of chains that name records before these are synced.
    pub save_before_log_sync: bool,
    /// Omit a protection against other threads.
    pub race: Option<PlantedRace>,
}

impl PlantedBugs {
    /// Whether this race is planted.
    #[inline]
    pub(crate) fn has(&self, race: PlantedRace) -> bool {
        self.race == Some(race)
    }
}

impl Environment {
    /// The given storage, the system's clock, and a seed from the operating system's randomness.
    pub fn over(storage: Arc<dyn Storage>) -> Self {
        Self {
            storage,
            clock: Arc::new(SystemClock::default()),
            random_seed: random_seed(),
            planted_bugs: PlantedBugs::default(),
        }
    }
}

impl Environment {
    /// The committed build in the directory `path`, as a database that changes only in memory.
    pub(crate) fn of_build(path: &Path) -> Result<Self> {
        Ok(Self::over(Built::open_as_storage(path, random_seed() | 1)?))
    }
}

/// A seed from the operating system's randomness.
pub(crate) fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // `RandomState` is seeded by the operating system.
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
