//! [`WriteWaitStats`]: what writers waited for.

use serde::{Deserialize, Serialize};

use crate::core::Shared;
use crate::wait::WaitStats;

/// What writers waited for since the database was opened, by cause. Waits for a processor are in none of them, or make
/// one of them longer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WriteWaitStats {
    /// Delays that slow writers down to the rate of background work; see [`crate::Stats::put_delay_ns`].
    pub throttle: WaitStats,
    /// Waits for a conversion because too many log segments wait for it. Rare: delays grow before.
    pub backlog: WaitStats,
    /// Beginnings of a new log segment by a writer that found the last one full.
    pub freeze: WaitStats,
    /// Waits for syncs of the log, one's own and those of other writers ([`crate::Durability::Sync`]).
    pub sync: WaitStats,
    /// Waits until the operating system had the record ([`crate::Durability::Process`]).
    pub system: WaitStats,
    /// Waits for locks: for another writer of the same shard or of the log, or for a freeze.
    pub lock: WaitStats,
    /// Growths of the log's index.
    pub index: WaitStats,
    /// Writes into memory of the log that was not used before, which the system may have to provide first.
    pub space: WaitStats,
}

impl WriteWaitStats {
    pub(super) fn of(shared: &Shared) -> Self {
        let (log, counters) = (&shared.log.waits, &shared.counters);
        Self {
            throttle: shared.throttle.waits.stats(),
            backlog: counters.backlog_waits.stats(),
            freeze: counters.freeze_waits.stats(),
            sync: log.sync.stats(),
            system: log.system.stats(),
            lock: log.lock.stats(),
            index: log.index.stats(),
            space: log.space.stats(),
        }
    }

    /// All causes by name.
    pub fn by_cause(&self) -> [(&'static str, WaitStats); 8] {
        [
            ("throttle", self.throttle),
            ("backlog", self.backlog),
            ("freeze", self.freeze),
            ("sync", self.sync),
            ("system", self.system),
            ("lock", self.lock),
            ("index", self.index),
            ("space", self.space),
        ]
    }
}
