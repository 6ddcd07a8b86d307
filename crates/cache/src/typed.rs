//! A cache of Rust values instead of bytes.

use std::marker::PhantomData;
use std::ops::RangeBounds;

use crate::access::{Access, Concurrent, ConcurrentReads, SharedWrites};
use crate::cache::{Cache, SetOptions, Writer};
use crate::error::{ClaimError, OtherPartition, TooLarge, WriteError};

/// A type that a [`TypedCache`] can store: it converts to bytes and back.
///
/// Equal values must give equal bytes if the type is used for keys.
pub trait Coded: Sized {
    /// Appends the value's bytes.
    fn encode(&self, out: &mut Vec<u8>);

    /// The value of these bytes; `None` if they encode no value.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

macro_rules! coded_integers {
    ($($integer:ty),*) => {$(
        impl Coded for $integer {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn decode(bytes: &[u8]) -> Option<Self> {
                Some(Self::from_le_bytes(bytes.try_into().ok()?))
            }
        }
    )*};
}

coded_integers!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128);

impl Coded for Vec<u8> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Some(bytes.to_vec())
    }
}

impl Coded for String {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        std::str::from_utf8(bytes).ok().map(str::to_owned)
    }
}

impl<const LEN: usize> Coded for [u8; LEN] {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }

    #[inline]
    fn decode(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok()
    }
}

/// A [`Cache`] whose keys are of type `K` and values of type `V`.
///
/// ```
/// use alluvium_cache::{Cache, TypedCache};
///
/// let cache: TypedCache<u64, String> = TypedCache::new(Cache::builder().memory_limit(1 << 20).build()?);
/// cache.set(&7, &"seven".to_owned())?;
/// assert_eq!(cache.get(&7).as_deref(), Some("seven"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TypedCache<K, V, A: Access = Concurrent> {
    cache: Cache<A>,
    types: PhantomData<fn(K) -> V>,
}

impl<K: Coded, V: Coded, A: Access> TypedCache<K, V, A> {
    /// Stores values in `cache`, which should have no other users.
    pub fn new(cache: Cache<A>) -> Self {
        Self { cache, types: PhantomData }
    }

    /// The underlying cache of bytes.
    pub fn bytes(&self) -> &Cache<A> {
        &self.cache
    }

    /// The value of `key`. A value that was set as bytes and does not decode to type `V` counts as absent.
    pub fn get(&self, key: &K) -> Option<V> {
        self.cache.get_with(&encoded(key), |item| V::decode(item.value))?
    }
}

impl<K: Coded, V: Coded, A: SharedWrites> TypedCache<K, V, A> {
    /// Gives `key` a value.
    ///
    /// # Errors
    /// [`TooLarge`]; the key keeps its former value.
    pub fn set(&self, key: &K, value: &V) -> Result<(), TooLarge> {
        self.cache.set(&encoded(key), &encoded(value))
    }

    /// Gives `key` a value with flags or an expiry.
    ///
    /// # Errors
    /// [`TooLarge`]; the key keeps its former value.
    pub fn set_with(&self, key: &K, value: &V, options: SetOptions) -> Result<(), TooLarge> {
        self.cache.set_with(&encoded(key), &encoded(value), options)
    }

    /// The value of `key`; if it has none, `make` makes one, which is set. Two threads that miss at once both make a
    /// value; the cache keeps one of them. A value too large for the cache is returned and not kept.
    pub fn get_or_set_with(&self, key: &K, make: impl FnOnce() -> V) -> V {
        self.get(key).unwrap_or_else(|| {
            let value = make();
            // The caller gets its value; the cache counts the refusal.
            let _ = self.set(key, &value);
            value
        })
    }

    /// Removes the value of `key`; returns whether there was one.
    pub fn remove(&self, key: &K) -> bool {
        self.cache.remove(&encoded(key))
    }
}

/// The only writer of some partitions of a [`TypedCache`] of mode [`ConcurrentReads`]: a [`Writer`] of values.
#[derive(Debug)]
pub struct TypedWriter<K, V> {
    writer: Writer,
    types: PhantomData<fn(K) -> V>,
}

impl<K: Coded, V: Coded> TypedCache<K, V, ConcurrentReads> {
    /// The writer of a range of partitions, given by number: see [`Cache::writer`].
    ///
    /// # Errors
    /// [`ClaimError`]: one of the partitions has a writer, or the range names none.
    pub fn writer(&self, partitions: impl RangeBounds<usize>) -> Result<TypedWriter<K, V>, ClaimError> {
        Ok(TypedWriter { writer: self.cache.writer(partitions)?, types: PhantomData })
    }
}

impl<K: Coded, V: Coded> TypedWriter<K, V> {
    /// The underlying writer of bytes.
    pub fn bytes(&mut self) -> &mut Writer {
        &mut self.writer
    }

    /// As [`TypedCache::get`].
    pub fn get(&self, key: &K) -> Option<V> {
        self.writer.get_with(&encoded(key), |item| V::decode(item.value))?
    }

    /// Gives `key` a value.
    ///
    /// # Errors
    /// [`WriteError`]; the key keeps its former value.
    pub fn set(&mut self, key: &K, value: &V) -> Result<(), WriteError<TooLarge>> {
        self.writer.set(&encoded(key), &encoded(value))
    }

    /// Gives `key` a value with flags or an expiry.
    ///
    /// # Errors
    /// [`WriteError`]; the key keeps its former value.
    pub fn set_with(&mut self, key: &K, value: &V, options: SetOptions) -> Result<(), WriteError<TooLarge>> {
        self.writer.set_with(&encoded(key), &encoded(value), options)
    }

    /// Removes the value of `key`; returns whether there was one.
    ///
    /// # Errors
    /// [`OtherPartition`].
    pub fn remove(&mut self, key: &K) -> Result<bool, OtherPartition> {
        self.writer.remove(&encoded(key))
    }
}

fn encoded(value: &impl Coded) -> Vec<u8> {
    let mut bytes = Vec::new();
    value.encode(&mut bytes);
    bytes
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_as_they_were() {
        let cache: TypedCache<[u8; 4], i64> =
            TypedCache::new(Cache::builder().memory_limit(1 << 20).build().unwrap());
        assert_eq!(cache.get_or_set_with(b"four", || -4), -4);
        assert_eq!(cache.get_or_set_with(b"four", || 5), -4);
        cache.bytes().set(b"four", b"not eight bytes").unwrap();
        assert_eq!(cache.get(b"four"), None);
        assert!(cache.remove(b"four"));
    }

    #[test]
    fn a_typed_writer_writes_what_its_cache_reads() {
        let cache: TypedCache<u32, String, _> =
            TypedCache::new(Cache::builder().memory_limit(1 << 20).build_concurrent_reads().unwrap());
        let mut writer = cache.writer(..).unwrap();
        assert!(cache.writer(..).is_err());
        writer.set(&4, &"four".to_owned()).unwrap();
        writer.set_with(&5, &"five".to_owned(), SetOptions::default()).unwrap();
        assert_eq!((cache.get(&4), writer.get(&5)), (Some("four".to_owned()), Some("five".to_owned())));
        assert_eq!((writer.remove(&4), writer.bytes().len()), (Ok(true), 1));
    }
}
