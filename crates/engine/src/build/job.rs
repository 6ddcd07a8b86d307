//! [`BuildJob`]: what all shards of a build have in common.

use alluvium_base::KeyHasher;
use alluvium_base::checksum::checksum64;
use alluvium_model::{LevelsPlan, Plan, PlanError};
use serde::{Deserialize, Serialize};

use super::mismatch::BuildPart;
use super::placement::{SHARDS_MAX, shard_of_key};
use crate::error::{Error, Result};
use crate::hash_key::HashKey;
use crate::order::Order;

/// Describes a bulk build: each task that writes a shard gets the same one.
#[derive(Debug, Clone, PartialEq)]
pub struct BuildJob {
    /// Distinguishes the job from others: a shard of another job is refused. 1 to 255 bytes without control characters.
    pub id: String,
    /// The name of the keyspace. Default `default`, which a server serves as database 0.
    pub keyspace: String,
    /// The order of the items. Default by hash.
    pub order: Order,
    /// The secret key of the hash function, which places items in shards. Programs that route keys share it.
    pub hash_key: HashKey,
    /// Number of shards, 1 to [`SHARDS_MAX`].
    pub shards: u32,
    /// The plan of the keyspace. Default [`Plan::silt`], for semi-sorted order [`Plan::semi_sorted`]. A plan whose log
    /// is chained is refused: it has no tables.
    pub plan: Option<Plan>,
}

impl BuildJob {
    /// A job of hashed order for the keyspace `default`.
    pub fn new(id: impl Into<String>, hash_key: HashKey, shards: u32) -> Self {
        Self {
            id: id.into(),
            keyspace: "default".to_owned(),
            order: Order::Hashed,
            hash_key,
            shards,
            plan: None,
        }
    }

    /// The shard of `key`: see [`crate::shard_of`]. In semi-sorted order all keys of a prefix are in one shard.
    pub fn shard_of(&self, key: &[u8]) -> u32 {
        shard_of_key(key, &self.order.hasher(self.hash_key, &[]), self.shards)
    }

    /// Refuses a job that cannot be built, as [`crate::ShardWriter::create`] does.
    ///
    /// # Errors
    /// [`Error::Build`] if the id or the number of shards is out of bounds, [`Error::Plan`] if the plan cannot be
    /// built.
    pub fn check(&self) -> Result<()> {
        self.stored().map(drop)
    }

    /// The job as it is stored.
    ///
    /// # Errors
    /// [`Error::Build`] if the id or the number of shards is out of bounds, [`Error::Plan`] if the plan cannot be
    /// built.
    pub(crate) fn stored(&self) -> Result<StoredJob> {
        if self.id.is_empty() || self.id.len() > 255 || self.id.chars().any(char::is_control) {
            let expected = "1 to 255 bytes without control characters";
            return Err(BuildPart::Job.mismatch("job", expected, format!("{:?}", self.id)));
        }
        if self.shards == 0 || self.shards > SHARDS_MAX {
            return Err(BuildPart::ShardCount.mismatch("job", format!("1 to {SHARDS_MAX}"), self.shards));
        }
        let plan = match (&self.plan, self.order) {
            (Some(plan), _) => LevelsPlan::try_from(plan.clone())?,
            (None, Order::Hashed) => LevelsPlan::silt(),
            (None, Order::SemiSorted { .. }) => LevelsPlan::semi_sorted(),
        };
        if plan.log.chained.is_some() {
            let reason =
                "a chained log has no tables, so it cannot be built in bulk: choose a plan of levels";
            return Err(Error::Plan(PlanError(reason.to_owned())));
        }
        let hasher = self.order.hasher(self.hash_key, &[]);
        let Self { id, keyspace, shards, .. } = self.clone();
        Ok(StoredJob { id, keyspace, hasher, shards, plan })
    }
}

/// A job as `SHARD` and `BUILD` store it. Has the hash key.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct StoredJob {
    pub id: String,
    pub keyspace: String,
    pub hasher: KeyHasher,
    pub shards: u32,
    pub plan: LevelsPlan,
}

impl StoredJob {
    /// Refuses `file` if its job is not this one, with the first difference.
    pub fn check(&self, file: &str, found: &Self) -> Result<()> {
        self.check_routing(file, found)?;
        BuildPart::Job.check(file, &self.id, &found.id)?;
        match self.plan == found.plan {
            true => Ok(()),
            false => {
                let text = |plan: &LevelsPlan| Plan::from(plan.clone()).to_string();
                Err(BuildPart::Plan.mismatch(file, text(&self.plan), text(&found.plan)))
            }
        }
    }

    /// Refuses `file` if programs that route keys for this job would route them wrongly there.
    pub fn check_routing(&self, file: &str, found: &Self) -> Result<()> {
        BuildPart::Keyspace.check(file, &self.keyspace, &found.keyspace)?;
        let order = |job: &Self| format!("{:?}", Order::of(&job.hasher));
        BuildPart::Order.check(file, order(self), order(found))?;
        BuildPart::HashKey.check(file, fingerprint(&self.hasher), fingerprint(&found.hasher))?;
        BuildPart::ShardCount.check(file, self.shards, found.shards)
    }
}

/// Says whether two hash keys are the same, without showing them.
pub(super) fn fingerprint(hasher: &KeyHasher) -> String {
    let without_key = || format!("{:016x}", checksum64(format!("{hasher:?}").as_bytes(), 0));
    HashKey::of(hasher).map_or_else(without_key, HashKey::fingerprint)
}
