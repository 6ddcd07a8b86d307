//! [`Counted`]: the last exact count of a keyspace's items.

use std::sync::Weak;

use crate::item::Item;
use crate::level::Version;
use crate::log::Position;

/// A count that is valid as long as nothing is written, no table changes and nothing expires.
#[derive(Debug)]
pub(crate) struct Counted {
    /// The end of the log before the items were visited.
    pub log_end: Position,
    pub version: Weak<Version>,
    pub tally: Tally,
}

/// The result of counting so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub items: u64,
    /// The earliest expiry of the counted items.
    pub first_expiry_ms: Option<u64>,
}

impl Tally {
    pub fn add(&mut self, item: &Item<'_>) {
        self.items += 1;
        if let Some(expiry) = item.expires_at_ms {
            self.first_expiry_ms = Some(self.first_expiry_ms.map_or(expiry, |first| first.min(expiry)));
        }
    }
}
