//! [`Metadata`]: what is stored with a value, and whether an item is live at a moment.

use super::shared::Shared;
use crate::item::{Item, ItemKind};

/// What is stored with a value. The default costs nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Opaque to the store, like memcached's flags. Costs 4 bytes unless zero.
    pub flags: u32,
    /// Milliseconds since 1970 from which on the item is absent; `None` means never. Costs 8 bytes unless `None`.
    ///
    /// The machine's clock decides. Within one opening of the database, time does not go back, so an item that was seen
    /// to be expired stays absent. Its space is freed when a merge rewrites its container.
    pub expires_at_ms: Option<u64>,
}

impl Metadata {
    pub(crate) fn of(item: &Item<'_>) -> Self {
        Self { flags: item.flags, expires_at_ms: item.expires_at_ms }
    }

    /// The item that stores `value` under `key` with this metadata.
    pub(super) fn item<'a>(self, key: &'a [u8], value: &'a [u8]) -> Item<'a> {
        let Self { flags, expires_at_ms } = self;
        Item { kind: ItemKind::Value, flags, expires_at_ms, key, value }
    }
}

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
