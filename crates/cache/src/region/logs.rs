//! Two circular logs, the second for items on probation, and the memory of the keys that were evicted there.

use crate::index::Entry;
use crate::item::Site;
use crate::memory::UNIT_BYTES;

use super::circular::CircularLog;
use super::ghost::Ghost;
use super::position::Position;
use super::traits::Region;

/// Number of the log that stores most items.
pub(crate) const MAIN: usize = 0;
/// Number of the log for items on probation.
pub(crate) const PROBATION: usize = 1;

/// See the module. An entry's log is part of it.
#[derive(Debug)]
pub(crate) struct Logs {
    pub logs: [CircularLog; 2],
    pub ghost: Option<Ghost>,
    /// Resident bytes once all memory was used.
    pub bytes: usize,
}

impl Logs {
    /// The log of an entry.
    #[inline(always)]
    pub fn of(&self, entry: Entry) -> &CircularLog {
        &self.logs[entry.log()]
    }

    /// Bytes in use.
    pub fn used_bytes(&self) -> u64 {
        self.logs.iter().map(|log| log.used() * UNIT_BYTES as u64).sum()
    }

    /// Returns the memory to the system; readers find zeros.
    pub fn release(&self) {
        self.logs.iter().for_each(CircularLog::release);
        self.ghost.iter().for_each(Ghost::release);
    }
}

impl Region for Logs {
    #[inline(always)]
    fn site(&self, entry: Entry) -> Site<'_> {
        let log = self.of(entry);
        // The number of a word is the lowest part of a position, which is the lowest part of an entry.
        let unit = log.layout().unit(Position(entry.0));
        Site { ring: log.ring(), unit, words_max: log.item_words_max() }
    }

    #[inline(always)]
    fn contains(&self, entry: Entry) -> bool {
        self.of(entry).contains(entry.position())
    }

    /// Does nothing: room is made by evicting the oldest items.
    #[inline(always)]
    fn free(&self, _entry: Entry) {}
}
