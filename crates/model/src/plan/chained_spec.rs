//! [`ChainedSpec`]: a log whose items are chained from a directory in memory (SkimpyStash, SIGMOD 2011, §4).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::PlanError;

/// SkimpyStash's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChainedSpec {
    /// Average length of a chain: memory is inversely, reads are directly proportional to it.
    pub chain_length_mean: f64,
    /// What the directory has for a chain.
    #[serde(default)]
    pub directory: ChainedDirectory,
    /// Share of the log that is garbage when collection begins, between 0 and 1. More means fewer rewrites and more
    /// space, 1/(1 − g) (§4.6): with all keys alike, each put that replaces an item is written 6.2 times for 0.1, 2.6
    /// times for 0.25 and 1.8 times for 0.4, if items have 64 bytes. Default 0.25.
    #[serde(default = "default_garbage_share")]
    pub garbage_share_max: f64,
    /// Bytes of a pointer: 4 reach 253 segments of log, 16 GiB of full ones; 5 reach 65,000. Pointers of 4 bytes become
    /// 5 when the log is longer. Default 4.
    #[serde(default = "default_pointer_bytes")]
    pub pointer_bytes: u32,
    /// Maximum device reads of a get of chains that stay as they are. After more, the chains are written anew in the
    /// background, each at one place of the log (§4.6): that costs a rewrite of their items, and saves most reads of
    /// later gets. `None`, the default: only `Db::compact` does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub walk_reads_max: Option<u32>,
}

/// What the directory of a chained plan has for a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChainedDirectory {
    /// A pointer. A key has one chain (§4.3).
    Base,
    /// A pointer, a count and a Bloom filter. A key is put in the shorter of two chains (§4.4).
    Enhanced {
        /// Bits of the filter for each key of a chain of average length.
        filter_bits: u32,
    },
}

impl Default for ChainedDirectory {
    fn default() -> Self {
        Self::Enhanced { filter_bits: 8 }
    }
}

fn default_garbage_share() -> f64 {
    0.25
}

fn default_pointer_bytes() -> u32 {
    4
}

impl ChainedSpec {
    /// Chains of this length on average, everything else by default.
    pub fn of_length(chain_length_mean: f64) -> Self {
        Self {
            chain_length_mean,
            directory: ChainedDirectory::default(),
            garbage_share_max: default_garbage_share(),
            pointer_bytes: default_pointer_bytes(),
            walk_reads_max: None,
        }
    }

    pub(super) fn validate(&self) -> Result<(), PlanError> {
        let Self { chain_length_mean, directory, garbage_share_max, pointer_bytes, .. } = *self;
        let refuse = |reason: String| Err(PlanError(reason));
        if !(0.01..=255.0).contains(&chain_length_mean) {
            return refuse(format!("chain_length_mean {chain_length_mean}: 0.01 to 255 are supported"));
        }
        if let ChainedDirectory::Enhanced { filter_bits } = directory
            && !(1..=32).contains(&filter_bits)
        {
            return refuse(format!("filter_bits {filter_bits}: 1 to 32 are supported"));
        }
        if !(0.01..=0.9).contains(&garbage_share_max) {
            return refuse(format!("garbage_share_max {garbage_share_max}: 0.01 to 0.9 are supported"));
        }
        match pointer_bytes {
            4 | 5 => Ok(()),
            _ => refuse(format!("pointer_bytes {pointer_bytes}: 4 and 5 are supported")),
        }
    }
}

impl fmt::Display for ChainedSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { chain_length_mean, directory, garbage_share_max, pointer_bytes, walk_reads_max } = self;
        write!(out, "log chained from a directory, {chain_length_mean} keys a chain")?;
        match directory {
            ChainedDirectory::Base => {}
            ChainedDirectory::Enhanced { filter_bits } => {
                write!(out, ", the shorter of two, bloom {filter_bits}")?
            }
        }
        write!(out, ", {pointer_bytes}-byte pointers, garbage {garbage_share_max}")?;
        match walk_reads_max {
            Some(reads) => write!(out, ", chains written anew after {reads} reads"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn what_no_directory_can_be_is_refused() {
        let plan = ChainedSpec::of_length(10.0);
        assert!(plan.validate().is_ok());
        for chain_length_mean in [0.0, -1.0, 300.0, f64::NAN] {
            assert!(ChainedSpec { chain_length_mean, ..plan }.validate().is_err());
        }
        for garbage_share_max in [0.0, 0.95, f64::NAN] {
            assert!(ChainedSpec { garbage_share_max, ..plan }.validate().is_err());
        }
        assert!(ChainedSpec { pointer_bytes: 3, ..plan }.validate().is_err());
        let directory = ChainedDirectory::Enhanced { filter_bits: 0 };
        assert!(ChainedSpec { directory, ..plan }.validate().is_err());
    }

    #[test]
    fn plans_that_were_stored_with_a_length_alone_are_read() {
        let plan = Plan::from_json(r#"{"chained":{"chain_length_mean":10.0}}"#).unwrap();
        assert_eq!(plan, Plan::skimpystash());
    }
}
