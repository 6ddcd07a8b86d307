//! Rows of groups: what the tables of a semi-sorted keyspace have for a whole prefix.

use alluvium_base::KeyspaceId;
use alluvium_cache::{Era, SetOptions};

use super::row::RowKey;
use super::rows::{CarriedRows, Rows};
use crate::level::Version;

/// Maximum encoded bytes of a group that has a row.
pub(crate) const GROUP_BYTES_MAX: usize = 32 << 10;

impl Rows {
    /// The encoded items that the tables have for a prefix, in order; `None` if that is not known.
    pub fn find_group(&self, keyspace: KeyspaceId, version: &Version, prefix: &[u8]) -> Option<Vec<u8>> {
        let row_key = RowKey::of_group(keyspace, version.epoch, prefix)?;
        self.in_use()?.get(row_key.bytes())
    }

    /// Stores the encoded items that a scan in `version` found in the tables for a prefix, at most
    /// [`GROUP_BYTES_MAX`] bytes.
    pub fn fill_group(&self, era: Era, keyspace: KeyspaceId, version: &Version, prefix: &[u8], items: &[u8]) {
        let Some(cache) = self.in_use() else { return };
        let Some(row_key) = RowKey::of_group(keyspace, version.epoch, prefix) else { return };
        // A row that is too large for the cache is none.
        let _ = cache.set_in_era(era, row_key.bytes(), items, SetOptions::default());
    }
}

impl CarriedRows<'_> {
    /// Removes the row of a prefix for which tables get other items.
    pub fn remove_group(&self, prefix: &[u8]) {
        if self.has_rows
            && let Some(row_key) = RowKey::of_group(self.keyspace, self.epoch, prefix)
        {
            self.cache.remove(row_key.bytes());
        }
    }
}
