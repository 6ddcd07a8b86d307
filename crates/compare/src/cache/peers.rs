//! The other caches.

use std::time::Duration;

use alluvium_bench::cache::options::Case;

use super::subject::{Stored, Subject};

/// `quick_cache`.
pub struct QuickCache<const KEY: usize, V>(quick_cache::sync::Cache<[u8; KEY], V>);

/// `moka`.
pub struct Moka<const KEY: usize, V: Stored>(moka::sync::Cache<[u8; KEY], V>);

/// `segcache`.
pub struct Segcache(segcache::Segcache);

/// `dashmap`: a map in shards, which never evicts.
pub struct DashMap<const KEY: usize, V>(dashmap::DashMap<[u8; KEY], V>);

impl<const KEY: usize, V: Stored> QuickCache<KEY, V> {
    pub fn new(case: &Case) -> Self {
        Self(quick_cache::sync::Cache::new(case.items as usize))
    }
}

impl<const KEY: usize, V: Stored> Moka<KEY, V> {
    pub fn new(case: &Case) -> Self {
        Self(moka::sync::Cache::new(case.items))
    }
}

/// Bytes of an item besides key and value, which count for a segment's space.
const SEGCACHE_HEADER_BYTES: usize = 16;

/// The setting of its authors' server: segments are merged and compacted, as in their paper. The crate's own default
/// evicts segments at random, even if their items are live.
const SEGCACHE_POLICY: segcache::Policy = segcache::Policy::Merge { max: 8, merge: 4, compact: 2 };
const SEGCACHE_OVERFLOW_FACTOR: f64 = 1.0;

impl Segcache {
    pub fn new(case: &Case) -> Self {
        // Seven of eight slots hold items; a quarter is left free, since collisions would evict items.
        let slots = case.items as f64 / 7.0 * 8.0 * 1.25;
        let item_bytes = (case.key_bytes + case.value_bytes + SEGCACHE_HEADER_BYTES).next_multiple_of(8);
        let cache = segcache::Segcache::builder()
            .hash_power(slots.log2().ceil().max(7.0) as u8)
            .overflow_factor(SEGCACHE_OVERFLOW_FACTOR)
            .eviction(SEGCACHE_POLICY)
            .heap_size(
                (item_bytes as u64 * case.items * 5 / 4).next_multiple_of(1 << 20) as usize + (64 << 20),
            )
            .build();
        Self(cache.expect("memory for the items"))
    }
}

impl<const KEY: usize, V: Stored> DashMap<KEY, V> {
    pub fn new(case: &Case) -> Self {
        Self(dashmap::DashMap::with_capacity(case.items as usize))
    }
}

fn array<const KEY: usize>(key: &[u8]) -> [u8; KEY] {
    key.try_into().expect("keys of this length")
}

impl<const KEY: usize, V: Stored> Subject for QuickCache<KEY, V> {
    fn name(&self) -> &'static str {
        "quick_cache"
    }

    #[inline]
    fn set(&self, key: &[u8], value: &[u8]) {
        self.0.insert(array(key), V::of(value));
    }

    #[inline]
    fn get(&self, key: &[u8], look: impl Fn(&[u8]) -> bool) -> Option<bool> {
        self.0.get(&array::<KEY>(key)).map(|value| look(value.bytes()))
    }
}

impl<const KEY: usize, V: Stored> Subject for Moka<KEY, V> {
    fn name(&self) -> &'static str {
        "moka"
    }

    #[inline]
    fn set(&self, key: &[u8], value: &[u8]) {
        self.0.insert(array(key), V::of(value));
    }

    #[inline]
    fn get(&self, key: &[u8], look: impl Fn(&[u8]) -> bool) -> Option<bool> {
        self.0.get(&array::<KEY>(key)).map(|value| look(value.bytes()))
    }
}

impl Subject for Segcache {
    fn name(&self) -> &'static str {
        "segcache"
    }

    #[inline]
    fn set(&self, key: &[u8], value: &[u8]) {
        // An item that does not fit is a miss later, and counted there.
        let _ = self.0.insert(key, value, None, Duration::ZERO);
    }

    #[inline]
    fn get(&self, key: &[u8], look: impl Fn(&[u8]) -> bool) -> Option<bool> {
        self.0.get(key).map(|item| match item.value() {
            segcache::Value::Bytes(value) => look(value),
            segcache::Value::U64(value) => look(&value.to_be_bytes()),
        })
    }
}

impl<const KEY: usize, V: Stored> Subject for DashMap<KEY, V> {
    fn name(&self) -> &'static str {
        "dashmap"
    }

    #[inline]
    fn set(&self, key: &[u8], value: &[u8]) {
        self.0.insert(array(key), V::of(value));
    }

    #[inline]
    fn get(&self, key: &[u8], look: impl Fn(&[u8]) -> bool) -> Option<bool> {
        self.0.get(&array::<KEY>(key)).map(|value| look(value.bytes()))
    }
}
