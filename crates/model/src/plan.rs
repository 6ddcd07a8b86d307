//! [`Plan`]: a storage layout as data. The model evaluates it, the planner searches for it, the engine executes it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A storage layout: either a log with levels below it, or a log whose items are chained from a directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plan {
    /// A log that freezes into runs, which levels collect and merge (SILT, LSM-trie, SlimDB, LevelDB).
    Levels {
        /// How the hash space is cut for writers.
        sharding: Sharding,
        /// The log in front.
        log: LogSpec,
        /// The levels, young to old. At least one.
        levels: Vec<LevelSpec>,
    },
    /// SkimpyStash: one log, its items linked into chains from an in-memory directory.
    Chained(ChainedSpec),
}

/// How the hash space is cut into shards, each with one writer at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sharding {
    /// Most log-index entries of a shard before the log freezes (SILT §3.1 has at most 2¹⁵ buckets of 4). Default
    /// 16,384. Larger shards mean fewer, larger runs and more memory per merge.
    pub log_entries_per_shard: u32,
    /// Share of the keyspace's items that the log holds before it freezes, within the bound above. Default 0.0115.
    /// A larger share costs index memory and disk space, a smaller one more runs.
    pub log_share: f64,
    /// Most shards, a power of two. Shards double in number as the data grows. Default 1,024.
    pub shards_max: u32,
    /// Items of a shard from eight shards on; every doubling of the items doubles the shards. Default 1.25 M. The
    /// first eight shards come earlier, from 32,768 items each, so that a merge never needs much space.
    pub items_per_shard: u64,
}

impl Default for Sharding {
    fn default() -> Self {
        Self {
            log_entries_per_shard: 16_384,
            log_share: 0.0115,
            shards_max: 1024,
            items_per_shard: 1_250_000,
        }
    }
}

/// Until there are this many shards, one comes for each [`EARLY_ITEMS_PER_SHARD`] items.
const EARLY_SHARDS_MAX: u64 = 8;
const EARLY_ITEMS_PER_SHARD: u64 = 32 << 10;
/// Log entries of a shard before the log freezes, at least, unless `log_entries_per_shard` is smaller.
const LOG_ENTRIES_MIN: u64 = 1024;

impl Sharding {
    /// Shards of a keyspace of `items` items, a power of two.
    ///
    /// A merge needs the space of a shard's runs twice: so that it is small beside small data, too, the first shards
    /// come earlier than `items_per_shard` asks.
    pub fn shards(&self, items: u64) -> u64 {
        let by_size = (items / self.items_per_shard + 1).next_power_of_two();
        let by_merge_space = (items / EARLY_ITEMS_PER_SHARD + 1).next_power_of_two().min(EARLY_SHARDS_MAX);
        by_size.max(by_merge_space).min(u64::from(self.shards_max))
    }

    /// Entries that a shard's log index takes before the log freezes, in a keyspace of `items` items.
    pub fn log_entries(&self, items: u64) -> u64 {
        let entries_max = u64::from(self.log_entries_per_shard);
        let share = (items as f64 * self.log_share) as u64 / self.shards(items);
        share.min(entries_max).max(LOG_ENTRIES_MIN.min(entries_max))
    }
}

/// The log in front of the levels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogSpec {
    /// Most bytes of one log segment; the log freezes at this size even when its index has room. Default 64 MiB.
    pub segment_bytes_max: u64,
    /// Bits of a tag in the log index. Fixed at 15 by the layout of a bucket (SILT §3.1).
    pub tag_bits: u32,
}

impl Default for LogSpec {
    fn default() -> Self {
        Self { segment_bytes_max: 64 << 20, tag_bits: 15 }
    }
}

/// One level: an age class of items.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelSpec {
    /// How the level takes in new runs.
    pub growth: Growth,
    /// How items lie in a table.
    pub table: TableLayout,
    /// What keeps lookups of absent keys away from the table.
    pub filter: Filter,
    /// What finds the page in a table.
    pub index: Index,
}

/// How a level takes in new runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Growth {
    /// Runs collect side by side and are merged together into the next level.
    Tiering {
        /// Most runs over one container before they are merged.
        runs_max: u32,
        /// Share of all items of the keyspace that the level may hold on average, between 0 and 1. The fullest
        /// container is merged when the level holds more. Buys fewer rewrites with filter memory (SILT Eq. 4 and 7).
        share: f64,
    },
    /// One run, into which the level above is merged.
    Leveling {
        /// Most times larger than the level above. The last level has no bound and ignores it.
        ratio: f64,
    },
}

/// How items lie in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableLayout {
    /// In the order of the filter's slots (SILT's HashStore).
    Hash,
    /// In fixed 4 KiB buckets (LSM-trie's HTable).
    Bucketed,
    /// In keyhash order.
    Sorted,
}

/// What keeps lookups of absent keys away from a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// Nothing: each lookup that gets here reads.
    None,
    /// The log's cuckoo table without its offsets (SILT §3.2), one per run.
    Cuckoo {
        /// Bits of a tag; false positives are about 8 · 2^−bits at 1.053 · bits per key.
        tag_bits: u32,
    },
    /// One filter over all runs of a container that names the run (SlimDB §3.2).
    MultiLevelCuckoo {
        /// Bits of a fingerprint.
        tag_bits: u32,
    },
    /// Bloom filters clustered by bucket across runs (LSM-trie).
    BloomCluster {
        /// Whether the clusters are read from flash rather than kept in memory.
        on_flash: bool,
    },
}

/// What finds the page in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Index {
    /// The filter or the bucket number says it.
    Implicit,
    /// Entropy-coded trie over pages (SILT §3.3).
    Trie,
    /// Leading hash bits of the page boundaries in an Elias-Fano list.
    Fences,
    /// Prefix trie, rank and select, suffixes (SlimDB §3.1).
    ThreeLevel,
}

/// SkimpyStash's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainedSpec {
    /// Average length of a chain: memory is inversely, reads are directly proportional to it.
    pub chain_length_mean: f64,
}

/// Why a plan is not legal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError(pub String);

impl fmt::Display for PlanError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "illegal plan: {}", self.0)
    }
}

impl std::error::Error for PlanError {}

impl Plan {
    /// SILT: log, hash runs with filters, one sorted run with page fences. `share` is the part of all items that sits
    /// in filtered hash runs on average.
    pub fn silt() -> Self {
        Self::Levels {
            sharding: Sharding::default(),
            log: LogSpec::default(),
            levels: vec![
                LevelSpec {
                    growth: Growth::Tiering { runs_max: 64, share: 0.090 },
                    table: TableLayout::Hash,
                    filter: Filter::Cuckoo { tag_bits: 15 },
                    index: Index::Implicit,
                },
                LevelSpec {
                    growth: Growth::Leveling { ratio: 4.0 },
                    table: TableLayout::Sorted,
                    filter: Filter::None,
                    index: Index::Fences,
                },
            ],
        }
    }

    /// Looks a named plan up. Names: `silt`.
    pub fn named(name: &str) -> Result<Self, PlanError> {
        match name {
            "silt" => Ok(Self::silt()),
            _ => Err(PlanError(format!("no plan is named {name:?}; known: silt"))),
        }
    }

    /// Checks that the parts fit together, with the reason when they don't.
    pub fn validate(&self) -> Result<(), PlanError> {
        let Self::Levels { sharding, log, levels } = self else {
            return Ok(());
        };
        let refuse = |reason: &str| Err(PlanError(reason.to_owned()));
        if !sharding.shards_max.is_power_of_two() {
            return refuse("shards_max is not a power of two");
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
        for level in levels {
            level.validate()?;
        }
        Ok(())
    }
}

impl LevelSpec {
    fn validate(&self) -> Result<(), PlanError> {
        let refuse = |reason: String| Err(PlanError(reason));
        match self.growth {
            Growth::Tiering { runs_max, share } => {
                if runs_max < 2 {
                    return refuse(format!(
                        "tiering with runs_max {runs_max}: at least 2 runs are collected"
                    ));
                }
                if !(share > 0.0 && share < 1.0) {
                    return refuse(format!("tiering with share {share}: it lies between 0 and 1"));
                }
            }
            Growth::Leveling { ratio } => {
                if !(ratio > 1.0 && ratio.is_finite()) {
                    return refuse(format!("leveling with ratio {ratio}: it is above 1"));
                }
            }
        }
        match (self.table, self.index) {
            (TableLayout::Hash | TableLayout::Bucketed, Index::Implicit)
            | (TableLayout::Sorted, Index::Trie | Index::Fences | Index::ThreeLevel) => {}
            (table, index) => return refuse(format!("a {table:?} table cannot have index {index:?}")),
        }
        match self.filter {
            Filter::Cuckoo { tag_bits } if !(4..=15).contains(&tag_bits) => {
                refuse(format!("a cuckoo filter with tags of {tag_bits} bits: 4 to 15 are supported"))
            }
            Filter::Cuckoo { .. } => Ok(()),
            _ if self.table == TableLayout::Hash => {
                refuse("a Hash table takes its order from a cuckoo filter, so it needs one".to_owned())
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_plans_are_legal_and_survive_json() {
        let plan = Plan::named("silt").unwrap();
        plan.validate().unwrap();
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
    }

    #[test]
    fn illegal_combinations_are_refused_with_a_reason() {
        let Plan::Levels { sharding, log, mut levels } = Plan::silt() else { unreachable!() };
        levels[0].filter = Filter::None;
        let error = Plan::Levels { sharding, log, levels }.validate().unwrap_err();
        assert!(error.to_string().contains("needs one"), "{error}");
    }
}
