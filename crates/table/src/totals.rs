//! [`Totals`]: counts of a section's content.

use crate::item::Item;

/// Counts of a section's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Items, tombstones included.
    pub item_count: u64,
    /// Items that are tombstones.
    pub tombstone_count: u64,
    /// Items that have an expiry.
    pub expiring_count: u64,
    /// Bytes of all keys.
    pub key_bytes: u64,
    /// Bytes of all values.
    pub value_bytes: u64,
    /// Bytes of keys and values of the items that are not tombstones.
    pub live_bytes: u64,
    /// Bytes that pages use: headers, tags and encoded items.
    pub used_bytes: u64,
}

impl Totals {
    /// Counts `item`.
    #[inline]
    pub(super) fn add(&mut self, item: &Item<'_>) {
        self.item_count += 1;
        self.key_bytes += item.key.len() as u64;
        self.value_bytes += item.value.len() as u64;
        self.expiring_count += u64::from(item.expires_at_ms.is_some());
        if item.is_tombstone() {
            self.tombstone_count += 1;
        } else {
            self.live_bytes += (item.key.len() + item.value.len()) as u64;
        }
    }
}
