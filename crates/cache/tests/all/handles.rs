//! What writes a cache in each mode: the cache itself, or the writer of all partitions.

use std::time::Duration;

use alluvium_cache::{
    Access, Cache, Concurrent, ConcurrentReads, Exclusive, IncrementError, Outcome, SetOptions, Token,
    TooLarge, WriteError, Writer,
};

/// A handle that writes a cache of mode `A`, and reads it.
pub trait Handle<A: Access>: Sized {
    fn of(cache: Cache<A>) -> Self;
    fn cache(&self) -> &Cache<A>;
    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), TooLarge>;
    fn set_with(&mut self, key: &[u8], value: &[u8], options: SetOptions) -> Result<(), TooLarge>;
    fn set_many(&mut self, items: &[(Vec<u8>, &Vec<u8>)]) -> Result<(), TooLarge>;
    fn remove(&mut self, key: &[u8]) -> bool;
    fn add(&mut self, key: &[u8], value: &[u8], options: SetOptions) -> Result<Outcome, TooLarge>;
    fn replace(&mut self, key: &[u8], value: &[u8], options: SetOptions) -> Result<Outcome, TooLarge>;
    fn compare_and_swap(
        &mut self,
        key: &[u8],
        expected: &[u8],
        value: &[u8],
        options: SetOptions,
    ) -> Result<Outcome, TooLarge>;
    fn set_if_unchanged(
        &mut self,
        key: &[u8],
        token: Token,
        value: &[u8],
        options: SetOptions,
    ) -> Result<Outcome, TooLarge>;
    fn increment(&mut self, key: &[u8], by: i64, initial: Option<i64>)
    -> Result<Option<i64>, IncrementError>;
    fn touch(&mut self, key: &[u8], time_to_live: Option<Duration>) -> Result<bool, TooLarge>;
    fn sweep(&mut self);
    fn resize(&mut self, memory_limit: usize);
    fn clear(&mut self);
}

/// The inner error, for a writer that has all partitions.
fn refused<E>(error: WriteError<E>) -> E {
    match error {
        WriteError::Refused(error) => error,
        WriteError::OtherPartition(error) => panic!("{error}"),
    }
}

macro_rules! handle {
    ($handle:ty, $mode:ty, $of:expr, $error:expr, $removed:expr) => {
        impl Handle<$mode> for $handle {
            fn of(cache: Cache<$mode>) -> Self {
                $of(cache)
            }

            fn cache(&self) -> &Cache<$mode> {
                self
            }

            fn set(&mut self, key: &[u8], value: &[u8]) -> Result<(), TooLarge> {
                <$handle>::set(self, key, value).map_err($error)
            }

            fn set_with(&mut self, key: &[u8], value: &[u8], options: SetOptions) -> Result<(), TooLarge> {
                <$handle>::set_with(self, key, value, options).map_err($error)
            }

            fn set_many(&mut self, items: &[(Vec<u8>, &Vec<u8>)]) -> Result<(), TooLarge> {
                <$handle>::set_many(self, items).map_err($error)
            }

            fn remove(&mut self, key: &[u8]) -> bool {
                $removed(<$handle>::remove(self, key))
            }

            fn add(&mut self, key: &[u8], value: &[u8], options: SetOptions) -> Result<Outcome, TooLarge> {
                <$handle>::add(self, key, value, options).map_err($error)
            }

            fn replace(
                &mut self,
                key: &[u8],
                value: &[u8],
                options: SetOptions,
            ) -> Result<Outcome, TooLarge> {
                <$handle>::replace(self, key, value, options).map_err($error)
            }

            fn compare_and_swap(
                &mut self,
                key: &[u8],
                expected: &[u8],
                value: &[u8],
                options: SetOptions,
            ) -> Result<Outcome, TooLarge> {
                <$handle>::compare_and_swap(self, key, expected, value, options).map_err($error)
            }

            fn set_if_unchanged(
                &mut self,
                key: &[u8],
                token: Token,
                value: &[u8],
                options: SetOptions,
            ) -> Result<Outcome, TooLarge> {
                <$handle>::set_if_unchanged(self, key, token, value, options).map_err($error)
            }

            fn increment(
                &mut self,
                key: &[u8],
                by: i64,
                initial: Option<i64>,
            ) -> Result<Option<i64>, IncrementError> {
                <$handle>::increment(self, key, by, initial).map_err($error)
            }

            fn touch(&mut self, key: &[u8], time_to_live: Option<Duration>) -> Result<bool, TooLarge> {
                <$handle>::touch(self, key, time_to_live).map_err($error)
            }

            fn sweep(&mut self) {
                <$handle>::sweep(self);
            }

            fn resize(&mut self, memory_limit: usize) {
                <$handle>::resize(self, memory_limit).unwrap();
            }

            fn clear(&mut self) {
                <$handle>::clear(self);
            }
        }
    };
}

handle!(Cache<Exclusive>, Exclusive, |cache| cache, |error| error, |was_there| was_there);
handle!(Cache<Concurrent>, Concurrent, |cache| cache, |error| error, |was_there| was_there);
handle!(
    Writer,
    ConcurrentReads,
    |cache: Cache<ConcurrentReads>| cache.writer(..).unwrap(),
    refused,
    |was_there: Result<bool, _>| was_there.unwrap()
);
