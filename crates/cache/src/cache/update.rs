//! Writes that depend on the present item, each atomic.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use crate::error::TooLarge;

use super::handle::SetOptions;

/// The result of a conditional write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The condition held.
    Done,
    /// There is an item, and it does not meet the condition.
    Differs,
    /// There is no item.
    Absent,
}

/// What an [update](crate::Cache::update) does with an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update<'v> {
    /// Changes nothing.
    Keep,
    /// Removes the item.
    Remove,
    /// Replaces the value; flags and expiry stay.
    Value(Cow<'v, [u8]>),
    /// Replaces value, flags and expiry.
    Set(Cow<'v, [u8]>, SetOptions),
    /// Replaces value, flags and expiry: the time of the cache's clock from which on the item is absent, or never.
    SetUntil(Cow<'v, [u8]>, u32, Option<Duration>),
}

/// Why a number cannot be incremented. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncrementError {
    /// The value is not a signed decimal number of 64 bits.
    NotANumber,
    /// The sum does not fit in a signed number of 64 bits.
    Overflow,
    /// There is no room for the item.
    TooLarge(TooLarge),
}

impl fmt::Display for IncrementError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber => write!(out, "the value is not a decimal number of 64 bits"),
            Self::Overflow => write!(out, "the sum does not fit in 64 bits"),
            Self::TooLarge(error) => write!(out, "{error}"),
        }
    }
}

impl std::error::Error for IncrementError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::TooLarge(error) => Some(error),
            Self::NotANumber | Self::Overflow => None,
        }
    }
}

/// The writes of one key besides `set`, for a cache that writes by itself and for a writer: their receiver, and the
/// type of a refusal. Both have a function `write`, which passes the key's
/// [`KeyedWrites`](super::keyed::KeyedWrites) to another.
macro_rules! keyed_writes {
    ($self:ident, ($($receiver:tt)+), $refused:ident) => {
        /// Gives `key` a value with flags or an expiry.
        ///
        /// # Errors
        /// [`TooLarge`]; the key keeps its former item.
        pub fn set_with(
            $($receiver)+,
            key: &[u8],
            value: &[u8],
            options: SetOptions,
        ) -> Result<(), $refused<TooLarge>> {
            $self.write(key, |keyed| keyed.set(value, keyed.metadata(options)))
        }

        /// Gives `key` a value with flags, until a time of the cache's clock
        /// ([`Builder::clock`](crate::Builder::clock)), or for as long as there is room.
        ///
        /// # Errors
        /// [`TooLarge`]; the key keeps its former item.
        pub fn set_until(
            $($receiver)+,
            key: &[u8],
            value: &[u8],
            flags: u32,
            expires_at: Option<Duration>,
        ) -> Result<(), $refused<TooLarge>> {
            $self.write(key, |keyed| keyed.set(value, keyed.metadata_until(flags, expires_at)))
        }

        /// Shows `decide` the item of `key` and does what it returns, with no other write in between. `decide` may read
        /// the cache.
        ///
        /// # Errors
        /// [`TooLarge`]; the key keeps its former item.
        ///
        /// # Panics
        /// When `decide` writes to the cache.
        pub fn update<'v>(
            $($receiver)+,
            key: &[u8],
            decide: impl FnOnce(Option<ItemView<'_>>) -> Update<'v>,
        ) -> Result<(), $refused<TooLarge>> {
            $self.write(key, |keyed| keyed.update(decide))
        }

        /// Sets `key` unless it has an item: `Done` or `Differs`.
        ///
        /// # Errors
        /// [`TooLarge`].
        pub fn add(
            $($receiver)+,
            key: &[u8],
            value: &[u8],
            options: SetOptions,
        ) -> Result<Outcome, $refused<TooLarge>> {
            $self.write(key, |keyed| keyed.add(value, options))
        }

        /// Sets `key` if it has an item: `Done` or `Absent`.
        ///
        /// # Errors
        /// [`TooLarge`]; the key keeps its former item.
        pub fn replace(
            $($receiver)+,
            key: &[u8],
            value: &[u8],
            options: SetOptions,
        ) -> Result<Outcome, $refused<TooLarge>> {
            $self.write(key, |keyed| keyed.replace(value, options))
        }

        /// Sets `key` if its value is `expected`.
        ///
        /// # Errors
        /// [`TooLarge`]; the key keeps its former item.
        pub fn compare_and_swap(
            $($receiver)+,
            key: &[u8],
            expected: &[u8],
            value: &[u8],
            options: SetOptions,
        ) -> Result<Outcome, $refused<TooLarge>> {
            $self.write(key, |keyed| keyed.compare_and_swap(expected, value, options))
        }

        /// Sets `key` if its item has the content for which `token` was made: memcached's `cas`.
        ///
        /// # Errors
        /// [`TooLarge`]; the key keeps its former item.
        pub fn set_if_unchanged(
            $($receiver)+,
            key: &[u8],
            token: Token,
            value: &[u8],
            options: SetOptions,
        ) -> Result<Outcome, $refused<TooLarge>> {
            $self.write(key, |keyed| keyed.set_if_unchanged(token, value, options))
        }

        /// Adds `by` to the decimal number that is the value of `key`, and returns the sum. Flags and expiry stay. An
        /// absent key counts as `initial`; if that is `None`, the key stays absent and the result is `Ok(None)`.
        ///
        /// # Errors
        /// [`IncrementError`]; nothing was changed.
        pub fn increment(
            $($receiver)+,
            key: &[u8],
            by: i64,
            initial: Option<i64>,
        ) -> Result<Option<i64>, $refused<IncrementError>> {
            $self.write(key, |keyed| keyed.increment(by, initial))
        }

        /// Changes the expiry of the item of `key`, to none if `None`; returns whether there is an item.
        ///
        /// # Errors
        /// [`TooLarge`]: an item without expiry needs 8 more bytes to get one.
        pub fn touch(
            $($receiver)+,
            key: &[u8],
            time_to_live: Option<Duration>,
        ) -> Result<bool, $refused<TooLarge>> {
            $self.write(key, |keyed| keyed.touch(time_to_live))
        }
    };
}

pub(crate) use keyed_writes;
