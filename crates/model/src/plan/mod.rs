//! [`Plan`]: a storage layout as data. The model evaluates it, the planner searches for it, the engine executes it.

mod chained_spec;
mod delay;
mod describe;
mod executable;
mod executed;
mod json;
mod levels_plan;
mod named;
mod sharding;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use chained_spec::{ChainedDirectory, ChainedSpec};
pub use delay::merge_delay_ns;
pub use levels_plan::LevelsPlan;
pub use sharding::Sharding;

/// A storage layout: either a log with levels below it, or a log whose items are chained from a directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Plan {
    /// A log that freezes into runs, which levels collect and merge (SILT, LSM-trie, SlimDB, LevelDB).
    Levels(#[serde(with = "levels_plan::Fields")] LevelsPlan),
    /// SkimpyStash: one log, its items linked into chains from an in-memory directory.
    Chained(ChainedSpec),
}

/// The log in front of the levels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogSpec {
    /// Maximum bytes of one log segment; the log freezes at this size even when its index has room. Default 64 MiB.
    pub segment_bytes_max: u64,
    /// Bits of a tag in the log index. Fixed at 15 by the layout of a bucket (SILT §3.1).
    pub tag_bits: u32,
    /// How items are chained, if segments stay instead of becoming runs: a [`Plan::Chained`] as the engine executes it.
    #[serde(skip)]
    pub chained: Option<ChainedSpec>,
}

impl Default for LogSpec {
    fn default() -> Self {
        Self { segment_bytes_max: 64 << 20, tag_bits: 15, chained: None }
    }
}

/// One level: an age class of items.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelSpec {
    /// How the level takes in new runs.
    pub growth: Growth,
    /// How items are arranged in a table.
    pub table: TableLayout,
    /// What avoids reading the table for absent keys.
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
        /// Maximum number of runs over one container before they are merged.
        runs_max: u32,
        /// Maximum average share of all items of the keyspace that the level may hold, between 0 and 1. When the level
        /// holds more, the fullest container is merged. A larger share trades filter memory for fewer rewrites (SILT
        /// Eq. 4 and 7). From [`Growth::ANY_SHARE`] on it never binds. Obsolete versions among the items are bounded
        /// separately ([`GARBAGE_SHARE_MAX`]).
        share: f64,
    },
    /// One run, into which the level above is merged.
    Leveling {
        /// Maximum size relative to the level above. The last level has no bound and ignores it.
        ratio: f64,
    },
}

/// How items are arranged in a table.
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

/// What avoids reading a table for absent keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Filter {
    /// No filter: each lookup that reaches the table reads.
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
    /// A static filter of each run: a ribbon (Dillinger, Walzer 2021).
    Static {
        /// Bits of a fingerprint; false positives are 2^−bits at 1.03 · bits per key.
        bits: u32,
    },
    /// Bits of each key's hash in the order of a dense trie, with which they go together (SILT §3.3).
    Fragments {
        /// Bits of a fragment; false positives are 2^−bits at that number of bits per key.
        bits: u32,
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
    /// The filter or the bucket number gives the page.
    Implicit,
    /// Entropy-coded trie over pages (SILT §3.3).
    Trie,
    /// Entropy-coded trie over items, and the rank of each page's first item (LIM §3.1.4). Larger than one over pages;
    /// takes fragments as filter, and knows which items may continue in the next page.
    TrieDense,
    /// Leading hash bits of the page boundaries in an Elias-Fano list.
    Fences,
    /// Prefix trie, rank and select, suffixes (SlimDB §3.1).
    ThreeLevel,
    /// The page of each item, in the slots of the table's cuckoo filter, which then is the log's cuckoo table with its
    /// offsets (SILT's LogStore, §3.1).
    Offsets,
}

/// Obsolete versions in young levels, as a share of all items, from which on the container that has most of them is
/// merged. Bounds space if the shares of young levels are larger.
pub const GARBAGE_SHARE_MAX: f64 = 0.25;

/// Obsolete versions in all tiering levels above the last together, as a share of the live items, from which on the
/// container that has most of them is merged with what the next level has there. Bounds space where tiering levels pass
/// runs on to tiering levels.
pub const TIERS_GARBAGE_SHARE_MAX: f64 = 0.5;

/// Obsolete versions, removed and expired items in a container of a last level that is tiering, as a share of what it
/// holds, from which on the container is merged into itself.
pub const LAST_GARBAGE_SHARE_MAX: f64 = 0.1;

/// Maximum number of runs of a level: each lookup may check all of them.
const RUNS_MAX: u32 = 4096;

/// Maximum ratio of a level to the one above.
const RATIO_MAX: f64 = 1e6;

/// Why a plan is not legal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError(pub String);

impl fmt::Display for PlanError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "illegal plan: {}", self.0)
    }
}

impl std::error::Error for PlanError {}

impl Growth {
    /// A share that, like any larger one, never binds: only the number of runs and their share of garbage count.
    pub const ANY_SHARE: f64 = 0.99;

    /// Maximum number of items that a tiering level holds, of `items` in all; infinite if its share never binds.
    pub fn items_max(&self, items: f64) -> f64 {
        match *self {
            Self::Tiering { share, .. } if share < Self::ANY_SHARE => share * items,
            Self::Tiering { .. } | Self::Leveling { .. } => f64::INFINITY,
        }
    }
}

impl Plan {
    /// Number of items for which the hash space is cut into shards, see [`LevelsPlan::items_sharded`].
    pub fn items_sharded(&self, present: u64, expected: u64) -> u64 {
        match self {
            Self::Levels(plan) => plan.items_sharded(present, expected),
            Self::Chained(_) => present,
        }
    }

    /// Checks that the parts fit together. Returns the reason if they don't.
    pub fn validate(&self) -> Result<(), PlanError> {
        match self {
            Self::Levels(plan) => plan.validate(),
            Self::Chained(spec) => spec.validate(),
        }
    }
}

impl LevelSpec {
    pub(crate) fn validate(&self) -> Result<(), PlanError> {
        let refuse = |reason: String| Err(PlanError(reason));
        match self.growth {
            Growth::Tiering { runs_max, share } => {
                if runs_max < 2 {
                    return refuse(format!(
                        "tiering with runs_max {runs_max}: at least 2 runs are collected"
                    ));
                }
                if runs_max > RUNS_MAX {
                    return refuse(format!(
                        "tiering with runs_max {runs_max}: at most {RUNS_MAX} are collected"
                    ));
                }
                if !(share > 0.0 && share < 1.0) {
                    return refuse(format!("tiering with share {share}: it lies between 0 and 1"));
                }
            }
            Growth::Leveling { ratio } => {
                if !(ratio > 1.0 && ratio <= RATIO_MAX) {
                    return refuse(format!(
                        "leveling with ratio {ratio}: it is above 1 and at most {RATIO_MAX}"
                    ));
                }
            }
        }
        match (self.table, self.index) {
            (TableLayout::Hash | TableLayout::Bucketed, Index::Implicit)
            | (
                TableLayout::Sorted,
                Index::Trie | Index::TrieDense | Index::Fences | Index::ThreeLevel | Index::Offsets,
            ) => {}
            (table, index) => return refuse(format!("a {table:?} table cannot have index {index:?}")),
        }
        if self.index == Index::Offsets && !matches!(self.filter, Filter::Cuckoo { .. }) {
            return refuse("offsets are those of a cuckoo filter's slots, so they need one".to_owned());
        }
        match self.filter {
            Filter::Cuckoo { tag_bits } if !(4..=15).contains(&tag_bits) => {
                refuse(format!("a cuckoo filter with tags of {tag_bits} bits: 4 to 15 are supported"))
            }
            Filter::MultiLevelCuckoo { tag_bits } if !(4..=12).contains(&tag_bits) => refuse(format!(
                "a multi-level filter with fingerprints of {tag_bits} bits: 4 to 12 are supported"
            )),
            Filter::Static { bits } if !(1..=32).contains(&bits) => {
                refuse(format!("a static filter of {bits} bits: 1 to 32 are supported"))
            }
            Filter::Fragments { bits } if !(1..=32).contains(&bits) => {
                refuse(format!("fragments of {bits} bits: 1 to 32 are supported"))
            }
            Filter::Fragments { .. } if self.index != Index::TrieDense => {
                refuse("fragments are in the order of a dense trie, so they need index TrieDense".to_owned())
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
    fn illegal_combinations_are_refused_with_a_reason() {
        let LevelsPlan { sharding, log, mut levels } = LevelsPlan::silt();
        levels[0].filter = Filter::None;
        let error = Plan::Levels(LevelsPlan { sharding, log, levels }).validate().unwrap_err();
        assert!(error.to_string().contains("needs one"), "{error}");
        let LevelsPlan { mut levels, .. } = LevelsPlan::silt();
        levels[1].filter = Filter::Fragments { bits: 8 };
        let error = Plan::Levels(LevelsPlan { sharding, log, levels }).validate().unwrap_err();
        assert!(error.to_string().contains("TrieDense"), "{error}");
    }
}
