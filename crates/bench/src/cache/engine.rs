//! The benchmark's interface to a memory engine: a cache, or a store, which refuses items where a cache forgets some.
//! An engine is a thread's handle: one that it owns, shares with others, or that writes a part.

use alluvium_cache::{Access, Cache, Concurrent, ConcurrentReads, Exclusive, Store, StoreWriter, Writer};

use crate::error::BenchError;

/// A memory engine under test.
pub trait Engine {
    /// Whether the value of `key` satisfies `is_right`; `None` if there is none.
    fn get(&self, key: &[u8], is_right: impl FnOnce(&[u8]) -> bool) -> Option<bool>;

    /// Calls `take` with the number and the value of each key.
    fn get_many(&self, keys: &[&[u8]], take: impl FnMut(usize, Option<&[u8]>));

    /// Gives a key a value.
    ///
    /// # Errors
    /// [`BenchError::Usage`] if it is refused.
    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError>;

    /// Gives keys their values.
    ///
    /// # Errors
    /// [`BenchError::Usage`] if one is refused.
    fn set_many(&mut self, items: &[(&[u8], &[u8])]) -> Result<(), BenchError>;

    /// Number of the partition of a key.
    fn partition_of(&self, key: &[u8]) -> usize;

    /// Which of `count` engines of equal settings takes a key.
    fn owner_of(&self, key: &[u8], count: usize) -> usize;

    /// Items present.
    fn items(&self) -> u64;

    /// Maximum bytes that the engine may use.
    fn memory_bytes(&self) -> u64;
}

/// Implements an engine for a handle that reads as `$reads` and writes as `$writes`.
macro_rules! engine {
    ($handle:ty, $reads:ty, $writes:ty) => {
        impl Engine for $handle {
            #[inline(always)]
            fn get(&self, key: &[u8], is_right: impl FnOnce(&[u8]) -> bool) -> Option<bool> {
                <$reads as Reads>::get(self, key, is_right)
            }

            #[inline(always)]
            fn get_many(&self, keys: &[&[u8]], take: impl FnMut(usize, Option<&[u8]>)) {
                <$reads as Reads>::get_many(self, keys, take);
            }

            #[inline(always)]
            fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), BenchError> {
                <$writes>::set(self, key, value).map_err(refused)
            }

            #[inline(always)]
            fn set_many(&mut self, items: &[(&[u8], &[u8])]) -> Result<(), BenchError> {
                <$writes>::set_many(self, items).map_err(refused)
            }

            fn partition_of(&self, key: &[u8]) -> usize {
                <$reads>::partition_of(self, key)
            }

            fn owner_of(&self, key: &[u8], count: usize) -> usize {
                <$reads>::owner_of(self, key, count)
            }

            fn items(&self) -> u64 {
                <$reads as Reads>::items(self)
            }

            fn memory_bytes(&self) -> u64 {
                <$reads as Reads>::memory_bytes(self)
            }
        }
    };
}

engine!(Cache<Exclusive>, Cache<Exclusive>, Cache<Exclusive>);
engine!(&Cache<Concurrent>, Cache<Concurrent>, Cache<Concurrent>);
engine!(Writer, Cache<ConcurrentReads>, Writer);
engine!(Store<Exclusive>, Store<Exclusive>, Store<Exclusive>);
engine!(&Store<Concurrent>, Store<Concurrent>, Store<Concurrent>);
engine!(StoreWriter, Store<ConcurrentReads>, StoreWriter);

/// How caches and stores read.
trait Reads {
    fn get(&self, key: &[u8], is_right: impl FnOnce(&[u8]) -> bool) -> Option<bool>;
    fn get_many(&self, keys: &[&[u8]], take: impl FnMut(usize, Option<&[u8]>));
    fn items(&self) -> u64;
    fn memory_bytes(&self) -> u64;
}

impl<A: Access> Reads for Cache<A> {
    #[inline(always)]
    fn get(&self, key: &[u8], is_right: impl FnOnce(&[u8]) -> bool) -> Option<bool> {
        self.get_with(key, |item| is_right(item.value))
    }

    #[inline(always)]
    fn get_many(&self, keys: &[&[u8]], mut take: impl FnMut(usize, Option<&[u8]>)) {
        self.get_many_with(keys, |at, item| take(at, item.map(|item| item.value)));
    }

    fn items(&self) -> u64 {
        self.stats().total().items
    }

    fn memory_bytes(&self) -> u64 {
        self.stats().total().memory_bytes
    }
}

impl<A: Access> Reads for Store<A> {
    #[inline(always)]
    fn get(&self, key: &[u8], is_right: impl FnOnce(&[u8]) -> bool) -> Option<bool> {
        self.get_with(key, is_right)
    }

    #[inline(always)]
    fn get_many(&self, keys: &[&[u8]], take: impl FnMut(usize, Option<&[u8]>)) {
        self.get_many_with(keys, take);
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
