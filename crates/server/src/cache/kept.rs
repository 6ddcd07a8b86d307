//! The cache with the items: in memory, or in a file in which it survives the process.

use std::time::Duration;

#[cfg(target_os = "linux")]
use alluvium_cache::SurvivingCache;
use alluvium_cache::{Cache, Cursor, ItemView, TooLarge, Update};

/// See the module. Times are those of the day in both.
#[derive(Debug)]
#[cfg_attr(
    target_os = "linux",
    expect(
        clippy::large_enum_variant,
        reason = "a server has one, and each request would follow the pointer"
    )
)]
pub(super) enum Kept {
    InMemory(Cache),
    #[cfg(target_os = "linux")]
    InFile(SurvivingCache),
}

/// Does the same with either cache.
macro_rules! either {
    ($kept:expr, $cache:ident => $do:expr) => {
        match $kept {
            Kept::InMemory($cache) => $do,
            #[cfg(target_os = "linux")]
            Kept::InFile($cache) => $do,
        }
    };
}

impl Kept {
    #[inline]
    pub(super) fn get_with<T>(&self, key: &[u8], take: impl FnOnce(ItemView<'_>) -> T) -> Option<T> {
        either!(self, cache => cache.get_with(key, take))
    }

    #[inline]
    pub(super) fn get_many_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        take: impl FnMut(usize, Option<ItemView<'_>>),
    ) {
        either!(self, cache => cache.get_many_with(keys, take));
    }

    pub(super) fn contains(&self, key: &[u8]) -> bool {
        either!(self, cache => cache.contains(key))
    }

    #[inline]
    pub(super) fn set_until(
        &self,
        key: &[u8],
        value: &[u8],
        flags: u32,
        expires_at: Option<Duration>,
    ) -> Result<(), TooLarge> {
        either!(self, cache => cache.set_until(key, value, flags, expires_at))
    }

    pub(super) fn update<'v>(
        &self,
        key: &[u8],
        decide: impl FnOnce(Option<ItemView<'_>>) -> Update<'v>,
    ) -> Result<(), TooLarge> {
        either!(self, cache => cache.update(key, decide))
    }

    pub(super) fn remove(&self, key: &[u8]) -> bool {
        either!(self, cache => cache.remove(key))
    }

    pub(super) fn check_size(&self, key: &[u8], value_bytes: usize) -> Result<(), TooLarge> {
        either!(self, cache => cache.check_size(key, value_bytes))
    }

    pub(super) fn scan(
        &self,
        cursor: Cursor,
        buckets: usize,
        visit: impl FnMut(&[u8], ItemView<'_>),
    ) -> Option<Cursor> {
        either!(self, cache => cache.scan(cursor, buckets, visit))
    }

    pub(super) fn clear(&self) {
        either!(self, cache => cache.clear());
    }

    /// The number of items, if it is counted; expired ones may be among them.
    pub(super) fn len(&self) -> Option<u64> {
        match self {
            Self::InMemory(cache) => Some(cache.len() as u64),
            // Nothing is counted when the file is opened.
            #[cfg(target_os = "linux")]
            Self::InFile(_) => None,
        }
    }

    /// About the number of items.
    pub(super) fn len_estimate(&self) -> u64 {
        match self {
            Self::InMemory(cache) => cache.len() as u64,
            #[cfg(target_os = "linux")]
            Self::InFile(cache) => cache.len_estimate(),
        }
    }

    /// Bytes in use.
    pub(super) fn used_bytes(&self) -> u64 {
        match self {
            Self::InMemory(cache) => {
                let total = cache.stats().total();
                total.index_bytes_now
                    + total.log_bytes_used
                    + total.zone.arena_bytes
                    + total.zone.directory_bytes
            }
            #[cfg(target_os = "linux")]
            Self::InFile(cache) => {
                let stats = cache.stats();
                let zones_bytes = stats.zones * stats.zone_bytes;
                stats.file_bytes.saturating_sub(zones_bytes) + stats.beside_bytes + stats.used_bytes
            }
        }
    }
}
