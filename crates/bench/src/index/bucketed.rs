//! Measurements of tables in buckets (SPEC B10), compared with those of X. Wu's thesis, §4.2.4.2.
//!
//! A table of items of 1 to 2 · mean bytes, 95 % full, in groups of 64 buckets as in the engine and in one group of all
//! buckets as in the paper. Every item is looked up, and must be where the lookup says.

use std::time::Instant;

use alluvium_base::KeyHash;
use alluvium_index::bucketed::{
    Balance, BucketDirectory, BucketDirectoryBuilder, BucketRules, GroupRange, Home, REMEMBERED_SHARE,
    SizedItem, balance,
};
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};

use super::IndexConfig;
use super::cuckoo::{nanoseconds_each, rate_per_s};
use crate::measurement::Measurement;

/// Bytes of a bucket for items.
const CAPACITY_BYTES: u32 = 4080;
/// Fill level of tables.
const FILL: f64 = 0.95;
/// Buckets of a group in the engine.
pub const GROUP_BUCKETS: u32 = 64;
/// Buckets of LSM-trie's tables.
pub const TABLE_BUCKETS: u32 = 8192;

/// A table without its items' bytes.
#[derive(Debug)]
pub struct BalancedTable {
    /// The hash of each item, and its page.
    pub items: Vec<(KeyHash, u32)>,
    /// Bytes of each bucket before and after balancing, without spares.
    pub loads: Vec<(u32, u32)>,
    /// Number of buckets that are not the home of any item.
    pub spares: u32,
    builder: BucketDirectoryBuilder,
    hash_max: u64,
    /// Seconds that balancing took.
    pub balance_s: f64,
}

impl BalancedTable {
    /// A table of `buckets` in groups of `group_buckets`, of items of 1 to `2 * bytes_mean` bytes.
    pub fn new(buckets: u32, group_buckets: u32, bytes_mean: u32, seed: u64) -> Self {
        let mut random = SmallRng::seed_from_u64(seed);
        let groups = (buckets / group_buckets).max(1);
        let width = u64::MAX / u64::from(groups);
        let mut table = Self {
            items: Vec::new(),
            loads: Vec::new(),
            spares: 0,
            builder: BucketDirectoryBuilder::new(0.0),
            hash_max: u64::from(groups) * width - 1,
            balance_s: 0.0,
        };
        let mut balances: Vec<(u64, Balance)> = Vec::new();
        let mut first_page = 0;
        for group in 0..u64::from(groups) {
            let range = GroupRange { low: group * width, high: (group + 1) * width - 1 };
            let items = items_of(&mut random, group_buckets, bytes_mean, range);
            let rules = BucketRules { capacity_bytes: CAPACITY_BYTES, first_page };
            let start = Instant::now();
            let balance = balance(&items, range, group_buckets, rules).expect("small items can be balanced");
            table.balance_s += start.elapsed().as_secs_f64();
            let places = items.iter().zip(&balance.buckets);
            table.items.extend(places.map(|(item, bucket)| (item.hash, first_page + bucket)));
            table.loads.extend(balance.home_bytes.iter().copied().zip(balance.bytes.iter().copied()));
            table.spares += balance.spares;
            first_page += balance.homes + balance.spares;
            balances.push((range.low, balance));
        }
        table.builder = BucketDirectoryBuilder::new(1.0);
        for (low, balance) in &balances {
            table.builder.push_group(*low, balance);
        }
        table
    }

    /// Its directory, which remembers this share of the buckets.
    pub fn directory(&self, remembered_share: f64) -> BucketDirectory {
        self.builder.clone().with_remembered_share(remembered_share).finish(self.hash_max)
    }

    /// Buckets read for an item, on average.
    pub fn reads(&self, directory: &BucketDirectory) -> f64 {
        let elsewhere =
            self.items.iter().filter(|(hash, page)| directory.locate(*hash) != Some(Home::Page(*page)));
        1.0 + elsewhere.count() as f64 / self.items.len() as f64
    }
}

fn items_of(random: &mut SmallRng, buckets: u32, bytes_mean: u32, range: GroupRange) -> Vec<SizedItem> {
    let mut left = (f64::from(buckets * CAPACITY_BYTES) * FILL) as u32;
    let mut items = Vec::new();
    while left > 0 {
        let bytes = random.random_range(1..=2 * bytes_mean).min(left);
        let high = random.random_range(range.low..=range.high);
        items.push(SizedItem { hash: KeyHash::from_halves(high, random.next_u64()), bytes });
        left -= bytes;
    }
    items
}

/// Runs all cases.
pub fn run(config: &IndexConfig) -> Vec<Measurement> {
    let cases = [("bucketed", GROUP_BUCKETS, 100), ("bucketed_200", GROUP_BUCKETS, 200)];
    let whole = [("bucketed_one_group", TABLE_BUCKETS, 100)];
    cases.into_iter().chain(whole).map(|(case, group, bytes)| measure(case, group, bytes, config)).collect()
}

fn measure(case: &str, group_buckets: u32, bytes_mean: u32, config: &IndexConfig) -> Measurement {
    let wanted = config.keys * u64::from(bytes_mean) / u64::from(CAPACITY_BYTES);
    let buckets = wanted.clamp(u64::from(GROUP_BUCKETS), u64::from(TABLE_BUCKETS)) as u32;
    let table = BalancedTable::new(buckets, group_buckets.min(buckets), bytes_mean, config.seed);
    let directory = table.directory(REMEMBERED_SHARE);
    let bytes_max = table.loads.iter().map(|(_, after)| *after).max();
    let lookups = rate_per_s(
        table.items.len(),
        || (),
        |()| {
            for (hash, _) in &table.items {
                std::hint::black_box(directory.locate(*hash));
            }
        },
    );
    let items = table.items.len() as f64;
    let used: f64 = table.loads.iter().map(|(before, _)| f64::from(*before)).sum();
    let pages = table.loads.len() as f64 + f64::from(table.spares);
    Measurement::new("index", case)
        .config("keys", table.items.len() as u64)
        .config("buckets", u64::from(buckets))
        .config("group_buckets", u64::from(group_buckets))
        .config("item_bytes_mean", u64::from(bytes_mean))
        .config("seed", config.seed)
        .metric("fill", used / pages / f64::from(CAPACITY_BYTES))
        .metric("fill_published", FILL)
        .metric("bucket_bytes_max", bytes_max)
        .metric("bucket_reads_per_lookup", table.reads(&directory))
        .metric("bucket_reads_per_lookup_published", 1.01)
        .metric("bucket_reads_remembering_nothing", table.reads(&table.directory(0.0)))
        .metric("spares", u64::from(table.spares))
        .metric("bits_per_key", directory.memory_bytes() as f64 * 8.0 / items)
        .metric("lookup_ns", nanoseconds_each(lookups))
        .metric("build_keys_per_s", items / table.balance_s)
        .metric("memory_bytes", directory.memory_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_has_every_case() {
        let measurements = run(&IndexConfig { keys: 40_000, seed: 1 });
        assert_eq!(measurements.len(), 3);
        for measurement in &measurements {
            let reads = measurement.metrics["bucket_reads_per_lookup"].as_f64();
            assert!(reads.is_some_and(|reads| reads < 1.04), "{}: {reads:?}", measurement.case);
        }
    }
}
