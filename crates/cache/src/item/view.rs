//! An item as a reader sees it.

use std::time::Duration;

use alluvium_base::KeyHasher;

/// Properties of an item besides key and value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metadata {
    /// When it expires, in milliseconds since the cache was made; 0 for never.
    pub expires_at_ms: u64,
    /// The client's flags.
    pub flags: u32,
}

/// Identifies an item's content, for [`Cache::set_if_unchanged`](crate::Cache::set_if_unchanged): equal tokens mean
/// equal value and flags, except with a probability of 2⁻⁶⁴. It serves as memcached's `cas` number without 8 bytes in
/// every item; an item that was changed and changed back has its former token again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token(pub u64);

/// An item that was found, lent to a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ItemView<'a> {
    /// The value.
    pub value: &'a [u8],
    /// The client's flags; 0 if it set none.
    pub flags: u32,
    /// Remaining time to live; `None` if unlimited.
    pub time_to_live: Option<Duration>,
    /// The time of the cache's clock ([`Builder::clock`](crate::Builder::clock)) from which on it is absent; `None` for
    /// never.
    pub expires_at: Option<Duration>,
}

impl ItemView<'_> {
    /// The content's token.
    pub fn token(&self) -> Token {
        Token(KeyHasher::Xxh3 { seed: u64::from(self.flags) }.hash(self.value).low())
    }
}
