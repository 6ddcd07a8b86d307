//! Measurements of the BloomCluster (SPEC A6), compared with Table 4.1 of X. Wu's thesis.
//!
//! First a container of LSM-trie with 56 and with 112 runs, whose buckets have 33 items on average, distributed by
//! their hashes: in memory, and on flash, where the lengths of the columns matter. Then each cell of the table: bits
//! per item, and runs. False positives are the runs named for an absent key, per lookup. For every present key it is
//! checked that its run is named.

use std::hint::black_box;

use alluvium_base::KeyHash;
use alluvium_index::bloom_cluster::{BloomCluster, ClusterDirectory, ClusterWriter, ColumnBuilder, Packing};
use rand::rngs::SmallRng;
use rand::{Rng, RngExt, SeedableRng};

use super::IndexConfig;
use super::cuckoo::{nanoseconds_each, rate_per_s};
use crate::measurement::Measurement;

/// Mean items of a bucket: a page, with 124 bytes each.
const BUCKET_ITEMS: u64 = 33;

/// Bits per item in LSM-trie.
const BITS_PER_KEY: f64 = 16.0;

/// Maximum number of absent keys that are looked up: at a rate of 5 % the standard deviation is 0.4 % of it.
const STRANGERS: usize = 1 << 20;

/// Makes the absent keys differ from those of all runs.
const STRANGERS_SEED: u64 = 0x7374_7261_6e67_6572;

/// Maximum number of lookups that are timed.
const LOOKUPS: usize = 1 << 18;

/// Table 4.1: bits per item, and the false positives of 50, 100 and 150 runs.
const TABLE: [(f64, [f64; 3]); 5] = [
    (10.0, [0.4095, 0.8190, 1.2285]),
    (12.0, [0.1570, 0.3140, 0.4710]),
    (14.0, [0.0600, 0.1200, 0.1800]),
    (16.0, [0.0230, 0.0459, 0.0689]),
    (18.0, [0.0088, 0.0176, 0.0264]),
];
const TABLE_RUNS: [u64; 3] = [50, 100, 150];

/// LSM-trie's levels, false positives (the text says "about 5 %" for 112; the table's column for 100 has 4.59 %), and
/// maximum bytes of a request.
const CONTAINERS: [(u64, f64, u64); 2] = [(56, 0.0459 * 0.56, 4096), (112, 0.0459 * 1.12, 8192)];

/// Runs all cases.
pub fn run(config: &IndexConfig) -> Vec<Measurement> {
    let mut measurements: Vec<Measurement> =
        CONTAINERS.iter().map(|&container| measure(container, config)).collect();
    measurements
        .extend(TABLE.iter().map(|(bits_per_key, published)| table_row(*bits_per_key, published, config)));
    measurements
}

/// Keys of a run, each in the bucket that its hash determines.
fn run_keys(buckets: u64, run: u64, seed: u64) -> Vec<Vec<KeyHash>> {
    let mut random = SmallRng::seed_from_u64(seed ^ run << 32);
    let mut keys = vec![Vec::new(); buckets as usize];
    for _ in 0..buckets * BUCKET_ITEMS {
        let hash = KeyHash::from_halves(random.next_u64(), random.next_u64());
        keys[bucket_of(hash, buckets) as usize].push(hash);
    }
    keys
}

fn bucket_of(hash: KeyHash, buckets: u64) -> u64 {
    hash.low() % buckets
}

/// All columns of a cluster, and their positions on flash.
fn build(buckets: u64, runs: &[Vec<Vec<KeyHash>>], bits_per_key: f64) -> (BloomCluster, ClusterDirectory) {
    let mut cluster = BloomCluster::empty(buckets, bits_per_key);
    for keys in runs {
        cluster =
            cluster.with_run(bits_per_key, |bucket, hashes| hashes.extend_from_slice(&keys[bucket as usize]));
    }
    let mut writer = ClusterWriter::new(Packing::Pages);
    let mut column = ColumnBuilder::new(bits_per_key);
    let mut out = Vec::new();
    for bucket in 0..buckets {
        column.clear();
        if let Some(old) = cluster.column(bucket) {
            column.copy(&old, |_| true);
        }
        writer.push(&column, &mut out);
        out.clear();
    }
    (cluster, writer.finish())
}

fn false_positives(cluster: &BloomCluster, config: &IndexConfig) -> f64 {
    let strangers = config.lookups(STRANGERS);
    let mut random = SmallRng::seed_from_u64(!config.seed ^ STRANGERS_SEED);
    let passed: u64 = (0..strangers)
        .map(|_| {
            let hash = KeyHash::from_halves(random.next_u64(), random.next_u64());
            u64::from(cluster.runs_of(bucket_of(hash, cluster.buckets()), hash).len())
        })
        .sum();
    passed as f64 / strangers as f64
}

fn measure((runs, published, request_bytes_max): (u64, f64, u64), config: &IndexConfig) -> Measurement {
    let buckets = (config.keys / (runs * BUCKET_ITEMS)).clamp(16, 1 << 13);
    let keys: Vec<_> = (0..runs).map(|run| run_keys(buckets, run, config.seed)).collect();
    let (cluster, directory) = build(buckets, &keys, BITS_PER_KEY);
    for (run, buckets) in (0..).zip(&keys) {
        for (bucket, hashes) in (0..).zip(buckets) {
            for &hash in hashes {
                assert!(cluster.runs_of(bucket, hash).contains(run), "a present key was missed");
            }
        }
    }
    let lengths: Vec<u64> =
        (0..buckets).map(|bucket| cluster.column(bucket).map_or(0, |column| column.len() as u64)).collect();
    // What one request reads: the pages that a column touches.
    let requests =
        (0..buckets).filter_map(|bucket| directory.column(bucket)).zip(&lengths).map(|(range, length)| {
            let first = range.offset / 4096;
            ((range.offset + length).div_ceil(4096) - first) * 4096
        });
    let within = requests.filter(|bytes| *bytes <= request_bytes_max).count();
    let mut random = SmallRng::seed_from_u64(config.seed);
    let probes: Vec<(u64, KeyHash)> = (0..config.lookups(LOOKUPS))
        .map(|_| {
            let bucket = random.random_range(0..buckets);
            (bucket, KeyHash::from_halves(random.next_u64(), random.next_u64()))
        })
        .collect();
    let lookups = rate_per_s(
        probes.len(),
        || (),
        |()| {
            black_box(probes.iter().map(|(bucket, hash)| cluster.runs_of(*bucket, *hash).len()).sum::<u32>());
        },
    );
    let append = rate_per_s(
        (buckets * BUCKET_ITEMS) as usize,
        || (),
        |()| {
            black_box(cluster.with_run(BITS_PER_KEY, |bucket, hashes| {
                hashes.extend_from_slice(&keys[0][bucket as usize]);
            }));
        },
    );
    let items = (runs * buckets * BUCKET_ITEMS) as f64;
    Measurement::new("index", &format!("bloom_cluster_{runs}_runs"))
        .config("keys", items as u64)
        .config("buckets", buckets)
        .config("runs", runs)
        .config("seed", config.seed)
        .metric("bits_per_key", cluster.memory_bytes() as f64 * 8.0 / items)
        .metric("bits_per_key_published", BITS_PER_KEY)
        .metric("bits_per_key_on_flash", directory.len() as f64 * 8.0 / items)
        .metric("bits_per_key_of_directory", directory.memory_bytes() as f64 * 8.0 / items)
        .metric("false_positives_per_lookup", false_positives(&cluster, config))
        .metric("false_positives_per_lookup_published", published)
        .metric("column_bytes_mean", lengths.iter().sum::<u64>() as f64 / buckets as f64)
        .metric("column_bytes_max", lengths.iter().max().copied())
        .metric("request_bytes_most", request_bytes_max)
        .metric("requests_within", within as f64 / buckets as f64)
        .metric("absent_lookup_ns", nanoseconds_each(lookups))
        .metric("append_keys_per_s", append)
        .metric("memory_bytes", cluster.memory_bytes())
}

/// A row of the table: clusters of 50, 100 and 150 runs at `bits_per_key`.
fn table_row(bits_per_key: f64, published: &[f64; 3], config: &IndexConfig) -> Measurement {
    let runs_most = TABLE_RUNS[2];
    let buckets = (config.keys / (runs_most * BUCKET_ITEMS)).clamp(16, 1 << 8);
    let keys: Vec<_> = (0..runs_most).map(|run| run_keys(buckets, run, !config.seed)).collect();
    let (all, _) = build(buckets, &keys, bits_per_key);
    let mut measurement = Measurement::new("index", &format!("bloom_cluster_{bits_per_key:.0}_bits"))
        .config("keys", runs_most * buckets * BUCKET_ITEMS)
        .config("buckets", buckets)
        .config("seed", config.seed);
    for (runs, published) in TABLE_RUNS.into_iter().zip(published) {
        let cluster = all.with_runs(|run| u64::from(run) < runs);
        let found = false_positives(&cluster, config);
        measurement = measurement
            .metric(&format!("false_positives_at_{runs}_runs"), found)
            .metric(&format!("false_positives_at_{runs}_runs_published"), *published);
    }
    measurement
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_has_every_case() {
        let measurements = run(&IndexConfig { keys: 1, seed: 1 });
        assert_eq!(measurements.len(), 7);
        for measurement in &measurements[..2] {
            let share = measurement.metrics["requests_within"].as_f64();
            assert!(share.is_some_and(|share| share > 0.9), "{}: {share:?}", measurement.case);
        }
    }
}
