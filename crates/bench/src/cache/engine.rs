//! What the benchmark needs of a memory engine: a cache, or a store, which refuses where a cache forgets.

use alluvium_cache::{Access, Cache, Store};

use crate::error::BenchError;

/// A memory engine under test.
pub trait Engine {
    /// Whether the value of `key` is what `is_right` wants; `None` if there is none.
    fn get(&self, key: &[u8], is_right: impl FnOnce(&[u8]) -> bool) -> Option<bool>;

    /// Calls `take` with the number and the value of each key.
    fn get_many(&self, keys: &[&[u8]], take: impl FnMut(usize, Option<&[u8]>));

    /// Gives a key a value.
    ///
    /// # Errors
    /// [`BenchError::Usage`] when it is refused.
    fn set(&self, key: &[u8], value: &[u8]) -> Result<(), BenchError>;

    /// Gives keys their values.
    ///
    /// # Errors
    /// [`BenchError::Usage`] when one is refused.
    fn set_many(&self, items: &[(&[u8], &[u8])]) -> Result<(), BenchError>;

    /// Number of the partition of a key.
    fn partition_of(&self, key: &[u8]) -> usize;

    /// Which of `count` engines of equal settings is for a key.
    fn owner_of(&self, key: &[u8], count: usize) -> usize;

    /// Ends the turn of the thread that writes.
    fn hand_over(&self);

    /// Items present.
    fn items(&self) -> u64;

    /// Bytes that the engine may use at most.
    fn memory_bytes(&self) -> u64;
}

impl<A: Access> Engine for Cache<A> {
    #[inline(always)]
    fn get(&self, key: &[u8], is_right: impl FnOnce(&[u8]) -> bool) -> Option<bool> {
        self.get_with(key, |item| is_right(item.value))
    }

    #[inline(always)]
    fn get_many(&self, keys: &[&[u8]], mut take: impl FnMut(usize, Option<&[u8]>)) {
        self.get_many_with(keys, |at, item| take(at, item.map(|item| item.value)));
    }

    #[inline(always)]
    fn set(&self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
        Self::set(self, key, value).map_err(refused)
    }

    #[inline(always)]
    fn set_many(&self, items: &[(&[u8], &[u8])]) -> Result<(), BenchError> {
        Self::set_many(self, items).map_err(refused)
    }

    fn partition_of(&self, key: &[u8]) -> usize {
        Self::partition_of(self, key)
    }

    fn owner_of(&self, key: &[u8], count: usize) -> usize {
        Self::owner_of(self, key, count)
    }

    fn hand_over(&self) {
        Self::hand_over(self);
    }

    fn items(&self) -> u64 {
        self.stats().total().items
    }

    fn memory_bytes(&self) -> u64 {
        self.stats().total().memory_bytes
    }
}

impl<A: Access> Engine for Store<A> {
    #[inline(always)]
    fn get(&self, key: &[u8], is_right: impl FnOnce(&[u8]) -> bool) -> Option<bool> {
        self.get_with(key, is_right)
    }

    #[inline(always)]
    fn get_many(&self, keys: &[&[u8]], take: impl FnMut(usize, Option<&[u8]>)) {
        self.get_many_with(keys, take);
    }

    #[inline(always)]
    fn set(&self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
        Self::set(self, key, value).map_err(refused)
    }

    #[inline(always)]
    fn set_many(&self, items: &[(&[u8], &[u8])]) -> Result<(), BenchError> {
        Self::set_many(self, items).map_err(refused)
    }

    fn partition_of(&self, key: &[u8]) -> usize {
        Self::partition_of(self, key)
    }

    fn owner_of(&self, key: &[u8], count: usize) -> usize {
        Self::owner_of(self, key, count)
    }

    fn hand_over(&self) {
        Self::hand_over(self);
    }

    fn items(&self) -> u64 {
        self.stats().items
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_limit() as u64
    }
}

fn refused(error: impl std::fmt::Display) -> BenchError {
    BenchError::Usage(error.to_string())
}
