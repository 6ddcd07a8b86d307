//! [`Workload`]: what is written and read, for the plan model.

use crate::KeyDistribution;
use crate::error::{ModelError, positive, within};

/// Bytes of an item.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ItemSize {
    /// Mean bytes of a key.
    pub key_bytes: f64,
    /// Mean bytes of a value.
    pub value_bytes: f64,
    /// Standard deviation of key and value together; 0 when all items are equally large.
    pub deviation_bytes: f64,
}

impl ItemSize {
    /// Bytes of key and value.
    pub fn bytes(&self) -> f64 {
        self.key_bytes + self.value_bytes
    }
}

/// Which keys are read by gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GetPopularity {
    /// All keys are equally likely.
    Uniform,
    /// Each key is as likely as in puts.
    LikePuts,
}

/// What is done to the store.
///
/// Each write names a key: with probability [`fresh_share`](Self::fresh_share) one that was never written, else one of
/// the keys so far by their popularity. With probability [`delete_share`](Self::delete_share), the latter is a delete.
/// A share of `delete_share` of the keys ever written is thus deleted at any time; these keys are put again later.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Keys at the end, and their popularity among writes that name old keys. Includes deleted keys.
    pub keys: KeyDistribution,
    /// Keys at the start: 0 to load an empty store, as many as at the end for a store of constant size.
    pub start_keys: f64,
    /// Keys that the store is told to expect; 0 if it isn't. The plan's shares are relative to the larger of this and
    /// the keys present.
    pub expected_keys: f64,
    /// Share of the writes that name new keys. 1 for loading, 0 for a store of constant size.
    pub fresh_share: f64,
    /// Share of the writes to old keys that delete.
    pub delete_share: f64,
    /// Bytes of items.
    pub item: ItemSize,
    /// Which present keys are read by gets.
    pub gets: GetPopularity,
    /// Items that a cache in front of the store holds, the most recently used ones.
    pub cached_items: f64,
}

impl Workload {
    /// Updates of existing keys, gets of the same popularity.
    pub fn updates(keys: KeyDistribution, item: ItemSize) -> Self {
        Self {
            start_keys: keys.keys(),
            expected_keys: 0.0,
            keys,
            fresh_share: 0.0,
            delete_share: 0.0,
            item,
            gets: GetPopularity::LikePuts,
            cached_items: 0.0,
        }
    }

    /// Loading new keys into an empty store that was told how many to expect; uniform gets.
    pub fn load(keys: f64, item: ItemSize) -> Result<Self, ModelError> {
        let keys = KeyDistribution::uniform(keys)?;
        Ok(Self {
            start_keys: 0.0,
            expected_keys: keys.keys(),
            fresh_share: 1.0,
            gets: GetPopularity::Uniform,
            ..Self::updates(keys, item)
        })
    }

    /// Whether the store grows.
    pub fn is_growing(&self) -> bool {
        self.start_keys < self.keys.keys()
    }

    /// Keys at the end that are not deleted.
    pub fn live_keys(&self) -> f64 {
        self.keys.keys() * self.live_share()
    }

    /// Share of all writes that delete.
    pub(super) fn deletes(&self) -> f64 {
        (1.0 - self.fresh_share) * self.delete_share
    }

    /// Share of the keys that are not deleted.
    pub(super) fn live_share(&self) -> f64 {
        1.0 - self.delete_share * (1.0 - self.fresh_share)
    }

    /// Bytes that the user writes per write.
    pub fn written_bytes(&self) -> f64 {
        self.item.key_bytes + (1.0 - self.deletes()) * self.item.value_bytes
    }

    pub(crate) fn validate(&self) -> Result<(), ModelError> {
        let keys = self.keys.keys();
        within("start-keys", self.start_keys, 0.0, keys)?;
        within("expected-keys", self.expected_keys, 0.0, f64::MAX)?;
        within("fresh-share", self.fresh_share, 0.0, 1.0)?;
        within("delete-share", self.delete_share, 0.0, 0.999)?;
        within("key-bytes", self.item.key_bytes, 0.0, 65_536.0)?;
        within("value-bytes", self.item.value_bytes, 0.0, 67_108_864.0)?;
        within("deviation-bytes", self.item.deviation_bytes, 0.0, 67_108_864.0)?;
        positive("item bytes", self.item.bytes())?;
        within("cached-items", self.cached_items, 0.0, f64::MAX)?;
        if self.is_growing() && self.fresh_share == 0.0 {
            return Err(ModelError::OutOfRange {
                name: "fresh-share",
                value: 0.0,
                expected: "a store grows by new keys only".to_owned(),
            });
        }
        Ok(())
    }
}
