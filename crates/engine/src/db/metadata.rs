//! [`Metadata`]: what is stored with a value, and whether an item counts at a moment.

use super::shared::Shared;
use crate::item::{Item, ItemKind};

/// What is stored with a value. Costs nothing where it is the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Opaque to the store, as memcached's flags are. Costs 4 bytes unless zero.
    pub flags: u32,
    /// Milliseconds since 1970 from which on the item is absent; `None`: never. Costs 8 bytes unless `None`.
    ///
    /// The clock of the machine decides. Within one opening of the database time does not go back, so an item that
    /// was seen to be gone stays gone; its space comes back when a merge passes over it.
    pub expires_at_ms: Option<u64>,
}

impl Metadata {
    pub(crate) fn of(item: &Item<'_>) -> Self {
        Self { flags: item.flags, expires_at_ms: item.expires_at_ms }
    }

    /// The item that stores `value` under `key` with this.
    pub(super) fn item<'a>(self, key: &'a [u8], value: &'a [u8]) -> Item<'a> {
        let Self { flags, expires_at_ms } = self;
        Item { kind: ItemKind::Value, flags, expires_at_ms, key, value }
    }
}

/// The moment as of which items count or have expired.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment<'a> {
    /// The present, looked up only for items that expire.
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
