//! [`Metadata`]: what is stored with a value.

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

/// A value and what is stored with it.
pub type ValueWithMetadata = (Vec<u8>, Metadata);

impl Metadata {
    pub(crate) fn of(item: &Item<'_>) -> Self {
        Self { flags: item.flags, expires_at_ms: item.expires_at_ms }
    }

    /// The item that stores `value` under `key` with this metadata.
    pub(crate) fn item<'a>(self, key: &'a [u8], value: &'a [u8]) -> Item<'a> {
        let Self { flags, expires_at_ms } = self;
        Item { kind: ItemKind::Value, flags, expires_at_ms, key, value }
    }
}
