//! Measurements of the multi-level filter (SPEC A5), compared with SlimDB's.
//!
//! Filters of eight runs at 95 % occupancy, with 32 Ki keys per run as in the engine, and one filter of all keys. Keys
//! are all different and declared as such, as after a get before each put; the case `blind` declares nothing and
//! overwrites a quarter. For every present key it is checked that its run is named, and only that.

use std::collections::BTreeMap;

use alluvium_base::KeyHash;
use alluvium_index::multi_level_filter::{Known, MultiLevelFilter, MultiLevelFilterBuilder, RUNS_MAX};

use super::IndexConfig;
use super::cuckoo::{PREFETCH_DISTANCE, nanoseconds_each, random_hashes, rate_per_s};
use crate::measurement::Measurement;

const FINGERPRINT_BITS: u32 = 12;
const KEYS_PER_FILTER: usize = RUNS_MAX as usize * (32 << 10);
/// Number of absent keys for measuring a false-positive rate.
const STRANGERS: usize = 1 << 22;

/// Runs all cases.
pub fn run(config: &IndexConfig) -> Vec<Measurement> {
    let keys = config.keys.max(1) as usize;
    let hashes = random_hashes(keys, config.seed);
    let mut measurements =
        vec![distinct("multi_level_filters", &hashes, keys.div_ceil(KEYS_PER_FILTER), config)];
    if keys > KEYS_PER_FILTER {
        measurements.push(distinct("multi_level_filter_one", &hashes, 1, config));
    }
    measurements.push(blind(&hashes[..keys.min(KEYS_PER_FILTER)], config));
    measurements
}

/// Filters that each cover an equal range of the hash space.
struct Filters {
    built: Vec<MultiLevelFilter>,
}

impl Filters {
    fn number(&self, hash: KeyHash) -> usize {
        number(hash, self.built.len())
    }

    fn of(&self, hash: KeyHash) -> &MultiLevelFilter {
        &self.built[self.number(hash)]
    }
}

fn number(hash: KeyHash, filters: usize) -> usize {
    ((u128::from(hash.high()) * filters as u128) >> 64) as usize
}

/// The keys of each filter, in the order of its runs.
fn grouped(hashes: &[KeyHash], filters: usize) -> Vec<Vec<KeyHash>> {
    let mut groups = vec![Vec::new(); filters];
    for &hash in hashes {
        groups[number(hash, filters)].push(hash);
    }
    groups
}

fn run_of(index: usize, keys: usize) -> u8 {
    (index * RUNS_MAX as usize / keys) as u8
}

fn build(keys: &[KeyHash]) -> MultiLevelFilter {
    let mut builder = MultiLevelFilterBuilder::new(keys.len(), FINGERPRINT_BITS);
    for (index, &hash) in keys.iter().enumerate() {
        builder
            .insert(hash, run_of(index, keys.len()), Known::Absent)
            .expect("95 % of the slots can be filled");
    }
    builder.finish()
}

fn distinct(name: &str, hashes: &[KeyHash], filters: usize, config: &IndexConfig) -> Measurement {
    let keys = hashes.len();
    let groups = grouped(hashes, filters);
    let mut all = Filters { built: Vec::new() };
    let insert = rate_per_s(keys, || (), |()| all.built = groups.iter().map(|group| build(group)).collect());
    for (group, filter) in groups.iter().zip(&all.built) {
        for (index, &hash) in group.iter().enumerate() {
            assert!(filter.runs(hash).eq([run_of(index, group.len())]), "a key got another run than its own");
        }
    }
    let absent = random_hashes(keys, !config.seed);
    let runs_max = hashes.iter().map(|&hash| all.of(hash).runs(hash).len()).max();
    let mut named = 0;
    let single = rate_per_s(keys, || (), |()| named = in_turn(&all, hashes));
    assert_eq!(named, keys, "every present key has one run");
    let ahead = rate_per_s(keys, || (), |()| named = fetching_ahead(&all, hashes));
    assert_eq!(named, keys, "every present key has one run");
    let absent_single = rate_per_s(keys, || (), |()| named = in_turn(&all, &absent));
    let absent_ahead = rate_per_s(keys, || (), |()| named = fetching_ahead(&all, &absent));
    let memory_bytes: usize = all.built.iter().map(MultiLevelFilter::memory_bytes).sum();
    let secondary: usize = all.built.iter().map(MultiLevelFilter::secondary_len).sum();
    let slots: usize = all.built.iter().map(MultiLevelFilter::slots).sum();
    Measurement::new("index", name)
        .config("keys", keys)
        .config("filters", filters)
        .config("fingerprint_bits", FINGERPRINT_BITS)
        .config("seed", config.seed)
        .metric("occupancy", keys as f64 / slots as f64)
        .metric("build_keys_per_s", insert)
        .metric("lookup_ns", nanoseconds_each(single))
        .metric("lookup_keys_per_s", ahead)
        .metric("absent_lookup_ns", nanoseconds_each(absent_single))
        .metric("absent_lookup_keys_per_s", absent_ahead)
        .metric("false_positive_rate", false_positive_rate(&all, config.seed))
        .metric("false_positive_rate_published", 0.002)
        .metric("bits_per_key", memory_bytes as f64 * 8.0 / keys as f64)
        .metric("bits_per_key_published", 16.67)
        .metric("secondary_share", secondary as f64 / keys as f64)
        .metric("runs_per_present_key_max", runs_max)
        .metric("memory_bytes", memory_bytes)
}

/// A filter of eight runs, each of which overwrites keys of the previous one without declaring which.
fn blind(hashes: &[KeyHash], config: &IndexConfig) -> Measurement {
    let per_run = hashes.len() / (RUNS_MAX as usize + 1);
    let mut newest = BTreeMap::new();
    let mut builder =
        MultiLevelFilterBuilder::new(per_run * (3 * RUNS_MAX as usize + 1) / 4, FINGERPRINT_BITS);
    for run in 0..RUNS_MAX as usize {
        // Three quarters of a run are new keys.
        let start = run * per_run * 3 / 4;
        for &hash in &hashes[start..start + per_run] {
            builder.insert(hash, run as u8, Known::Unknown).expect("there is room");
            newest.insert(hash, run as u8);
        }
    }
    let filter = builder.finish();
    let asked = newest.iter().map(|(&hash, &run)| filter.runs(hash).position(|named| named == run));
    let asked: Vec<usize> = asked.map(|at| at.expect("the newest run is named") + 1).collect();
    Measurement::new("index", "multi_level_filter_blind")
        .config("keys", newest.len())
        .config("fingerprint_bits", FINGERPRINT_BITS)
        .config("seed", config.seed)
        .metric("secondary_share", filter.secondary_len() as f64 / newest.len() as f64)
        .metric("bits_per_key", filter.memory_bytes() as f64 * 8.0 / newest.len() as f64)
        .metric("runs_per_present_key", asked.iter().sum::<usize>() as f64 / newest.len() as f64)
        .metric("runs_per_present_key_max", asked.iter().max().copied())
}

fn in_turn(filters: &Filters, hashes: &[KeyHash]) -> usize {
    hashes.iter().map(|&hash| filters.of(hash).runs(hash).len()).sum()
}

fn fetching_ahead(filters: &Filters, hashes: &[KeyHash]) -> usize {
    let mut named = 0;
    for (index, &hash) in hashes.iter().enumerate() {
        if let Some(&later) = hashes.get(index + PREFETCH_DISTANCE) {
            filters.of(later).prefetch(later);
        }
        named += filters.of(hash).runs(hash).len();
    }
    named
}

fn false_positive_rate(filters: &Filters, seed: u64) -> f64 {
    let strangers = random_hashes(STRANGERS, !seed ^ 1);
    in_turn(filters, &strangers) as f64 / STRANGERS as f64
}
