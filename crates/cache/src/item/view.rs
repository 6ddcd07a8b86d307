//! An item as a reader sees it.

use std::time::Duration;

use alluvium_base::KeyHasher;

/// What an item has beside key and value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metadata {
    /// When it ceases to be, in milliseconds since the cache was made; 0 for never.
    pub expires_at_ms: u64,
    /// The client's flags.
    pub flags: u32,
}

/// Says which content an item had, for [`Cache::set_if_unchanged`](crate::Cache::set_if_unchanged): equal tokens mean
/// equal value and flags, but for one chance in 2⁶⁴. memcached's `cas` number, without its 8 bytes in every item; an
/// item that was changed and changed back has its former token again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(pub u64);

/// An item that was found, lent to a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemView<'a> {
    /// The value.
    pub value: &'a [u8],
    /// The client's flags; 0 unless it gave some.
    pub flags: u32,
    /// How long the item may still stay; `None` without limit.
    pub time_to_live: Option<Duration>,
}

impl ItemView<'_> {
    /// The content's token.
    pub fn token(&self) -> Token {
        Token(KeyHasher::Xxh3 { seed: u64::from(self.flags) }.hash(self.value).low())
    }
}
