//! Measurements of the static filter, the rival of the hash filter for immutable runs (SPEC A2).
//!
//! The widths of the hash filter's rows, in filters of 32 Ki keys like the engine's runs, and one filter of all keys.
//! `bits_per_key_bound` is the minimum for any filter with that rate, `overhead` how much more this one takes. Every
//! present key is checked.

use std::hint::black_box;

use alluvium_base::KeyHash;
use alluvium_index::static_filter::StaticFilter;

use super::IndexConfig;
use super::cuckoo::{PREFETCH_DISTANCE, nanoseconds_each, random_hashes, rate_per_s};
use crate::measurement::Measurement;

const WIDTHS: [u32; 4] = [15, 12, 8, 4];
const KEYS_PER_FILTER: usize = 32 << 10;

/// Maximum bits that SPEC allows, as a multiple of the bound.
const OVERHEAD_TARGET: f64 = 1.13;

/// Maximum number of absent keys for measuring a false-positive rate.
const STRANGERS: usize = 1 << 22;

/// Runs all cases: 2^20 keys in 32 filters at every width, then `config.keys` in one filter of 12 bits.
pub fn run(config: &IndexConfig) -> Vec<Measurement> {
    let keys = (config.keys.max(1) as usize).min(32 * KEYS_PER_FILTER);
    let hashes = random_hashes(keys, config.seed);
    let mut measurements: Vec<Measurement> =
        WIDTHS.iter().map(|&width| measure(&hashes, KEYS_PER_FILTER, width, config)).collect();
    let hashes = random_hashes(config.keys.max(1) as usize, config.seed);
    measurements.push(measure(&hashes, hashes.len(), WIDTHS[1], config));
    measurements
}

fn measure(hashes: &[KeyHash], filter_keys: usize, width: u32, config: &IndexConfig) -> Measurement {
    let keys = hashes.len();
    let build = || hashes.chunks(filter_keys).map(|part| StaticFilter::new(part, width)).collect();
    let mut filters: Vec<StaticFilter> = Vec::new();
    let build_keys_per_s = rate_per_s(keys, || (), |()| filters = build());
    for (filter, part) in filters.iter().zip(hashes.chunks(filter_keys)) {
        assert!(part.iter().all(|&hash| filter.may_contain(hash)), "a present key was missed");
    }
    // Each lookup goes to another filter than the previous one.
    let probes: Vec<(usize, KeyHash)> = (0..keys)
        .map(|number| {
            let at = (number * 40_503 + number / 7) % keys;
            (at / filter_keys, hashes[at])
        })
        .collect();
    let strangers: Vec<(usize, KeyHash)> = random_hashes(config.lookups(STRANGERS), !config.seed)
        .into_iter()
        .enumerate()
        .map(|(number, hash)| (number % filters.len(), hash))
        .collect();
    let count = |probes: &[(usize, KeyHash)]| {
        probes.iter().filter(|(filter, hash)| filters[*filter].may_contain(*hash)).count()
    };
    let count_ahead = |probes: &[(usize, KeyHash)]| {
        let mut found = 0;
        for (number, &(filter, hash)) in probes.iter().enumerate() {
            if let Some(&(later, hash)) = probes.get(number + PREFETCH_DISTANCE) {
                filters[later].prefetch(hash);
            }
            found += usize::from(filters[filter].may_contain(hash));
        }
        found
    };
    let timed = |count: &dyn Fn() -> usize, keys: usize| {
        rate_per_s(
            keys,
            || (),
            |()| {
                black_box(count());
            },
        )
    };
    let present = timed(&|| count(&probes), keys);
    let present_ahead = timed(&|| count_ahead(&probes), keys);
    let absent = timed(&|| count(&strangers), strangers.len());
    let absent_ahead = timed(&|| count_ahead(&strangers), strangers.len());
    let memory_bytes: u64 = filters.iter().map(StaticFilter::memory_bytes).sum();
    let bits_per_key = memory_bytes as f64 * 8.0 / keys as f64;
    Measurement::new("index", if filters.len() == 1 { "static_filter_one" } else { "static_filters" })
        .config("keys", keys)
        .config("filters", filters.len())
        .config("width", width)
        .config("seed", config.seed)
        .metric("build_keys_per_s", build_keys_per_s)
        .metric("lookup_ns", nanoseconds_each(present))
        .metric("lookup_keys_per_s", present_ahead)
        .metric("absent_lookup_ns", nanoseconds_each(absent))
        .metric("absent_lookup_keys_per_s", absent_ahead)
        .metric("false_positive_rate", count(&strangers) as f64 / strangers.len() as f64)
        .metric("bits_per_key", bits_per_key)
        .metric("bits_per_key_bound", width)
        .metric("overhead", bits_per_key / f64::from(width))
        .metric("overhead_target", OVERHEAD_TARGET)
        .metric("memory_bytes", memory_bytes)
}
