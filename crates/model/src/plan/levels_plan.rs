//! [`LevelsPlan`]: a log with levels below it.

use serde::{Deserialize, Serialize};

use super::{ChainedSpec, LevelSpec, LogSpec, Plan, PlanError, Sharding};

/// Maximum number of shards: each has its own log index, which takes about a kilobyte when empty.
const SHARDS_MAX: u32 = 1 << 14;

/// Maximum number of levels. Each holds a multiple of the one above, so a handful suffices for any store.
const LEVELS_MAX: usize = 64;

/// A log that freezes into runs, which levels collect and merge. Serialized as the [`Plan`] that it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Plan", try_from = "Plan")]
pub struct LevelsPlan {
    /// How the hash space is cut for writers.
    pub sharding: Sharding,
    /// The log in front.
    pub log: LogSpec,
    /// The levels, young to old. At least one.
    pub levels: Vec<LevelSpec>,
}

/// What is serialized of a [`LevelsPlan`] within a [`Plan`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "LevelsPlan")]
pub(super) struct Fields {
    sharding: Sharding,
    log: LogSpec,
    levels: Vec<LevelSpec>,
}

impl From<LevelsPlan> for Plan {
    fn from(plan: LevelsPlan) -> Self {
        match plan.log.chained {
            Some(spec) => Self::Chained(spec),
            None => Self::Levels(plan),
        }
    }
}

impl From<ChainedSpec> for LevelsPlan {
    /// A log whose segments stay, in front of levels for what was stored by another plan.
    fn from(spec: ChainedSpec) -> Self {
        let LevelsPlan { sharding, log, levels } = Self::silt();
        Self { sharding, log: LogSpec { chained: Some(spec), ..log }, levels }
    }
}

impl TryFrom<Plan> for LevelsPlan {
    type Error = PlanError;

    fn try_from(plan: Plan) -> Result<Self, PlanError> {
        match plan {
            Plan::Levels(LevelsPlan { log: LogSpec { chained: Some(spec), .. }, .. })
            | Plan::Chained(spec) => Ok(spec.into()),
            Plan::Levels(plan) => Ok(plan),
        }
    }
}

impl LevelsPlan {
    /// Number of items for which the hash space is cut into shards, with `present` items now and `expected` expected in
    /// the end. If only their bytes and number bound the runs of the youngest level, runs stay for long, and those of
    /// few, large shards would have to be merged as the data grows. Such plans have their final shards from the
    /// beginning.
    pub fn items_sharded(&self, present: u64, expected: u64) -> u64 {
        let is_unbounded = self.levels.first().is_some_and(|young| young.growth.items_max(1.0).is_infinite());
        if is_unbounded { present.max(expected) } else { present }
    }

    /// Checks that the parts fit together. Returns the reason if they don't.
    pub fn validate(&self) -> Result<(), PlanError> {
        let refuse = |reason: &str| Err(PlanError(reason.to_owned()));
        let Self { sharding, log, levels } = self;
        if !sharding.shards_max.is_power_of_two() {
            return refuse("shards_max is not a power of two");
        }
        if sharding.shards_max > SHARDS_MAX {
            return refuse("shards_max lies above 16384");
        }
        if !(64..=1 << 20).contains(&sharding.log_entries_per_shard) {
            return refuse("log_entries_per_shard lies outside 64..=1048576");
        }
        if !(sharding.log_share > 0.0 && sharding.log_share < 1.0) {
            return refuse("log_share does not lie between 0 and 1");
        }
        if sharding.items_per_shard == 0 {
            return refuse("items_per_shard is zero");
        }
        if !(64 << 10..=4 << 30).contains(&log.segment_bytes_max) {
            return refuse("log segment_bytes_max lies outside 64 KiB..=4 GiB");
        }
        if log.tag_bits != 15 {
            return refuse("the log index has tags of 15 bits");
        }
        if levels.is_empty() {
            return refuse("a plan has at least one level");
        }
        if levels.len() > LEVELS_MAX {
            return refuse("a plan has at most 64 levels");
        }
        levels.iter().try_for_each(LevelSpec::validate)
    }
}
