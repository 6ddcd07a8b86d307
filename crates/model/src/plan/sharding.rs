//! [`Sharding`]: how the hash space is cut for writers.

use serde::{Deserialize, Serialize};

/// How the hash space is cut into shards, each with one writer at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sharding {
    /// Maximum log-index entries of a shard before the log freezes (SILT §3.1 has at most 2¹⁵ buckets of 4). Default
    /// 16,384. Larger shards mean fewer, larger runs and more memory per merge. Where items are removed while they are
    /// in the log, shards grow up to 16 times this, with 262,144 entries in all.
    pub log_entries_per_shard: u32,
    /// Share of the keyspace's items that the log holds before it freezes, within the bound above. Default 0.0115.
    /// A larger share costs index memory and disk space, a smaller one more runs.
    pub log_share: f64,
    /// Maximum number of shards, a power of two. Shards double in number as the data grows. Default 1,024.
    pub shards_max: u32,
    /// Items of a shard once there are eight shards; every doubling of the items doubles the shards. Default 1.25 M.
    /// The first eight shards are made earlier, from 32,768 items each, so that a merge never needs much space.
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

/// Until there are this many shards, one is added for each [`EARLY_ITEMS_PER_SHARD`] items.
const EARLY_SHARDS_MAX: u64 = 8;
const EARLY_ITEMS_PER_SHARD: u64 = 32 << 10;
/// Minimum log entries of a shard before the log freezes, unless `log_entries_per_shard` is smaller.
const LOG_ENTRIES_MIN: u64 = 1024;

impl Sharding {
    /// Shards of a keyspace of `items` items, a power of two.
    ///
    /// A merge needs twice the space of a shard's runs. To keep that small relative to small data, too, the first
    /// shards are made earlier than `items_per_shard` requires.
    pub fn shards(&self, items: u64) -> u64 {
        let by_size = (items / self.items_per_shard + 1).next_power_of_two();
        let by_merge_space = (items / EARLY_ITEMS_PER_SHARD + 1).next_power_of_two().min(EARLY_SHARDS_MAX);
        by_size.max(by_merge_space).min(u64::from(self.shards_max))
    }

    /// A number of items for which [`shards`](Self::shards) returns `shards`.
    pub fn items_for_shards(&self, shards: u64) -> u64 {
        let per_shard = if shards > EARLY_SHARDS_MAX { self.items_per_shard } else { EARLY_ITEMS_PER_SHARD };
        (shards - 1) * per_shard
    }

    /// Entries that a shard's log index takes before the log freezes, in a keyspace of `items` items.
    pub fn log_entries(&self, items: u64) -> u64 {
        let entries_max = u64::from(self.log_entries_per_shard);
        let share = (items as f64 * self.log_share) as u64 / self.shards(items);
        share.min(entries_max).max(LOG_ENTRIES_MIN.min(entries_max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_double_with_the_items() {
        let sharding = Sharding::default();
        for shards in (0..=10).map(|bits| 1u64 << bits) {
            assert_eq!(sharding.shards(sharding.items_for_shards(shards)), shards);
        }
        assert_eq!(sharding.shards(0), 1);
        assert_eq!(sharding.shards(u64::MAX / 2), 1024);
        assert_eq!(sharding.log_entries(0), 1024);
        assert_eq!(sharding.log_entries(20_000_000), 7187);
        assert_eq!(sharding.log_entries(1 << 40), 16_384);
    }
}
