//! Writes that depend on what is there, each atomic.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use crate::access::Access;
use crate::error::TooLarge;
use crate::item::{ItemView, Metadata, Token};
use crate::partition::{Change, Write};

use super::handle::{Cache, SetOptions};

/// What became of a conditional write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The condition held.
    Done,
    /// There is an item, and it is not as wanted.
    Differs,
    /// There is no item.
    Absent,
}

/// What an [update](Cache::update) makes of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Update<'v> {
    /// Leave everything as it is.
    Keep,
    /// Remove the item.
    Remove,
    /// Another value; flags and end stay as they are.
    Value(Cow<'v, [u8]>),
    /// Another value, flags and end.
    Set(Cow<'v, [u8]>, SetOptions),
}

/// Why a number can't be incremented. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncrementError {
    /// The value is not a decimal number of 64 bits with sign.
    NotANumber,
    /// The sum would not fit in 64 bits with sign.
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

impl<A: Access> Cache<A> {
    /// Lets `decide` see the item of `key` and say what becomes of it, with no other write in between. `decide` must
    /// not use the cache.
    ///
    /// # Errors
    /// [`TooLarge`]; what the key had stays.
    pub fn update<'v>(
        &self,
        key: &[u8],
        decide: impl FnOnce(Option<ItemView<'_>>) -> Update<'v>,
    ) -> Result<(), TooLarge> {
        self.change(key, |item| match decide(item.map(|(item, _)| item)) {
            Update::Keep => Change::Keep,
            Update::Remove => Change::Remove,
            Update::Value(value) => {
                let metadata = item.map_or(Metadata::default(), |(_, metadata)| metadata);
                Change::Put(Write { value, metadata })
            }
            Update::Set(value, options) => Change::Put(Write { value, metadata: self.metadata(options) }),
        })
    }

    fn change<'v>(
        &self,
        key: &[u8],
        decide: impl FnOnce(Option<(ItemView<'_>, Metadata)>) -> Change<'v>,
    ) -> Result<(), TooLarge> {
        let hash = self.hash(key);
        self.partition(hash).update(hash, key, decide)
    }

    fn set_if(
        &self,
        key: &[u8],
        value: &[u8],
        options: SetOptions,
        judge: impl FnOnce(Option<ItemView<'_>>) -> Outcome,
    ) -> Result<Outcome, TooLarge> {
        let mut outcome = Outcome::Absent;
        self.change(key, |item| {
            outcome = judge(item.map(|(item, _)| item));
            match outcome {
                Outcome::Done => {
                    Change::Put(Write { value: Cow::Borrowed(value), metadata: self.metadata(options) })
                }
                Outcome::Differs | Outcome::Absent => Change::Keep,
            }
        })?;
        Ok(outcome)
    }

    /// Sets `key` unless it has an item: `Done` or `Differs`.
    ///
    /// # Errors
    /// [`TooLarge`].
    pub fn add(&self, key: &[u8], value: &[u8], options: SetOptions) -> Result<Outcome, TooLarge> {
        self.set_if(key, value, options, |item| match item {
            None => Outcome::Done,
            Some(_) => Outcome::Differs,
        })
    }

    /// Sets `key` if it has an item: `Done` or `Absent`.
    ///
    /// # Errors
    /// [`TooLarge`]; what the key had stays.
    pub fn replace(&self, key: &[u8], value: &[u8], options: SetOptions) -> Result<Outcome, TooLarge> {
        self.set_if(key, value, options, |item| match item {
            None => Outcome::Absent,
            Some(_) => Outcome::Done,
        })
    }

    /// Sets `key` if its value is `expected`.
    ///
    /// # Errors
    /// [`TooLarge`]; what the key had stays.
    pub fn compare_and_swap(
        &self,
        key: &[u8],
        expected: &[u8],
        value: &[u8],
        options: SetOptions,
    ) -> Result<Outcome, TooLarge> {
        self.set_if(key, value, options, |item| judged(item, |item| item.value == expected))
    }

    /// Sets `key` if its item has the content that `token` was made of: memcached's `cas`.
    ///
    /// # Errors
    /// [`TooLarge`]; what the key had stays.
    pub fn set_if_unchanged(
        &self,
        key: &[u8],
        token: Token,
        value: &[u8],
        options: SetOptions,
    ) -> Result<Outcome, TooLarge> {
        self.set_if(key, value, options, |item| judged(item, |item| item.token() == token))
    }

    /// Adds `by` to the decimal number that is the value of `key`, and returns the sum. Flags and end stay. An absent
    /// key counts as `initial`, and stays absent if that is `None`: `Ok(None)`.
    ///
    /// # Errors
    /// [`IncrementError`]; nothing was changed.
    pub fn increment(
        &self,
        key: &[u8],
        by: i64,
        initial: Option<i64>,
    ) -> Result<Option<i64>, IncrementError> {
        let mut outcome = Ok(None);
        self.change(key, |item| {
            let number = match item {
                None => Ok(initial),
                Some((item, _)) => number(item.value).map(Some).ok_or(IncrementError::NotANumber),
            };
            outcome = number.and_then(|number| {
                number.map(|number| number.checked_add(by).ok_or(IncrementError::Overflow)).transpose()
            });
            match outcome {
                Ok(Some(sum)) => Change::Put(Write {
                    value: Cow::Owned(sum.to_string().into_bytes()),
                    metadata: item.map_or(Metadata::default(), |(_, metadata)| metadata),
                }),
                Ok(None) | Err(_) => Change::Keep,
            }
        })
        .map_err(IncrementError::TooLarge)?;
        outcome
    }

    /// Gives the item of `key` another end, `None` for none; whether there is an item.
    ///
    /// # Errors
    /// [`TooLarge`]: an item without end takes 8 bytes more to get one.
    pub fn touch(&self, key: &[u8], time_to_live: Option<Duration>) -> Result<bool, TooLarge> {
        let mut is_there = false;
        self.update(key, |item| match item {
            None => Update::Keep,
            Some(item) => {
                is_there = true;
                Update::Set(Cow::Owned(item.value.to_vec()), SetOptions { time_to_live, flags: item.flags })
            }
        })?;
        Ok(is_there)
    }
}

fn judged(item: Option<ItemView<'_>>, is_wanted: impl FnOnce(ItemView<'_>) -> bool) -> Outcome {
    match item {
        None => Outcome::Absent,
        Some(item) if is_wanted(item) => Outcome::Done,
        Some(_) => Outcome::Differs,
    }
}

fn number(value: &[u8]) -> Option<i64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}
