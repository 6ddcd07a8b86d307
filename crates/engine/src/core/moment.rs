//! [`Moment`]: the time at which items are judged live or expired.

use super::shared::Shared;
use crate::item::Item;

/// The moment at which items are judged live or expired.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment<'a> {
    /// The present. The clock is read only for items that expire.
    Now(&'a Shared),
    /// Milliseconds since 1970.
    At(u64),
}

impl Moment<'_> {
    /// Whether `item` is a value that has not expired.
    #[inline]
    pub fn is_live(self, item: &Item<'_>) -> bool {
        !item.is_tombstone() && item.expires_at_ms.is_none_or(|expiry| expiry > self.ms())
    }

    #[cold]
    fn ms(self) -> u64 {
        match self {
            Moment::Now(shared) => shared.now_ms(),
            Moment::At(ms) => ms,
        }
    }
}
