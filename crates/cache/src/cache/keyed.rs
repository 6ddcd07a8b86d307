//! Writes of one key, for callers that may write it: a cache of a shared mode, or a writer.

use std::borrow::Cow;
use std::time::Duration;

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::error::TooLarge;
use crate::evicting::Evicting;
use crate::item::{ItemView, Metadata, Token};
use crate::partition::{Ahead, Change, Partition, Write};

use super::handle::{Cache, SetOptions};
use super::update::{IncrementError, Outcome, Update};

/// A key with its hash and its partition. Its creator is allowed to write the partition.
#[derive(Debug)]
pub(super) struct Keyed<'a, A: Access> {
    pub cache: &'a Cache<A>,
    pub partition: &'a Partition<Evicting, A>,
    pub hash: KeyHash,
    pub key: &'a [u8],
}

impl<A: Access> Keyed<'_, A> {
    pub fn remove(&self) -> bool {
        self.partition.remove(self.hash, self.key)
    }
}

impl<A: Access> KeyedWrites for Keyed<'_, A> {
    #[inline(always)]
    fn set(&self, value: &[u8], metadata: Metadata) -> Result<(), TooLarge> {
        self.partition.set(self.hash, self.key, Ahead::Nothing, value, metadata)
    }

    fn change<'v>(
        &self,
        decide: impl FnOnce(Option<(ItemView<'_>, Metadata)>) -> Change<'v>,
    ) -> Result<(), TooLarge> {
        self.partition.update(self.hash, self.key, decide)
    }

    #[inline(always)]
    fn metadata(&self, options: SetOptions) -> Metadata {
        self.cache.metadata(options)
    }

    fn metadata_until(&self, flags: u32, expires_at: Option<Duration>) -> Metadata {
        self.cache.metadata_until(flags, expires_at)
    }

    fn deciding<T>(&self, decide: impl FnOnce() -> T) -> T {
        let _deciding = self.partition.decide();
        decide()
    }
}

/// Writes that depend on the present item, over the ways to set and to change it.
pub(crate) trait KeyedWrites {
    /// Gives the key an item.
    fn set(&self, value: &[u8], metadata: Metadata) -> Result<(), TooLarge>;

    /// Decides what to do with the item, with no other write in between.
    fn change<'v>(
        &self,
        decide: impl FnOnce(Option<(ItemView<'_>, Metadata)>) -> Change<'v>,
    ) -> Result<(), TooLarge>;

    /// The metadata that the options stand for at this time.
    fn metadata(&self, options: SetOptions) -> Metadata;

    /// The metadata of an item that expires at this time of the clock.
    fn metadata_until(&self, flags: u32, expires_at: Option<Duration>) -> Metadata;

    /// Calls a function of the caller, which cannot write to the cache.
    fn deciding<T>(&self, decide: impl FnOnce() -> T) -> T;

    fn update<'v>(&self, decide: impl FnOnce(Option<ItemView<'_>>) -> Update<'v>) -> Result<(), TooLarge> {
        self.change(|item| {
            let decision = self.deciding(|| decide(item.map(|(item, _)| item)));
            match decision {
                Update::Keep => Change::Keep,
                Update::Remove => Change::Remove,
                Update::Value(value) => {
                    let metadata = item.map_or(Metadata::default(), |(_, metadata)| metadata);
                    Change::Put(Write { value, metadata })
                }
                Update::Set(value, options) => Change::Put(Write { value, metadata: self.metadata(options) }),
                Update::SetUntil(value, flags, expires_at) => {
                    Change::Put(Write { value, metadata: self.metadata_until(flags, expires_at) })
                }
            }
        })
    }

    /// Sets the item if `judge`, code of this crate, answers `Done`; returns its answer.
    fn set_if(
        &self,
        value: &[u8],
        options: SetOptions,
        judge: impl FnOnce(Option<ItemView<'_>>) -> Outcome,
    ) -> Result<Outcome, TooLarge> {
        let mut outcome = Outcome::Absent;
        self.change(|item| {
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

    fn add(&self, value: &[u8], options: SetOptions) -> Result<Outcome, TooLarge> {
        self.set_if(value, options, |item| match item {
            None => Outcome::Done,
            Some(_) => Outcome::Differs,
        })
    }

    fn replace(&self, value: &[u8], options: SetOptions) -> Result<Outcome, TooLarge> {
        self.set_if(value, options, |item| match item {
            None => Outcome::Absent,
            Some(_) => Outcome::Done,
        })
    }

    fn compare_and_swap(
        &self,
        expected: &[u8],
        value: &[u8],
        options: SetOptions,
    ) -> Result<Outcome, TooLarge> {
        self.set_if(value, options, |item| judged(item, |item| item.value == expected))
    }

    fn set_if_unchanged(&self, token: Token, value: &[u8], options: SetOptions) -> Result<Outcome, TooLarge> {
        self.set_if(value, options, |item| judged(item, |item| item.token() == token))
    }

    fn increment(&self, by: i64, initial: Option<i64>) -> Result<Option<i64>, IncrementError> {
        let mut outcome = Ok(None);
        self.change(|item| {
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

    fn touch(&self, time_to_live: Option<Duration>) -> Result<bool, TooLarge> {
        let mut is_there = false;
        self.change(|item| match item {
            None => Change::Keep,
            Some((item, _)) => {
                is_there = true;
                let options = SetOptions { time_to_live, flags: item.flags };
                Change::Put(Write {
                    value: Cow::Owned(item.value.to_vec()),
                    metadata: self.metadata(options),
                })
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
