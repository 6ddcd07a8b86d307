//! Measurements of the entropy-coded trie (SPEC A3).

use std::hint::black_box;

use alluvium_base::KeyHash;
use alluvium_index::trie::{Granularity, Trie, TrieBuilder, TrieConfig};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::IndexConfig;
use super::cuckoo::{nanoseconds_each, rate_per_s};
use crate::measurement::Measurement;

/// Maximum number of lookups that are timed.
const LOOKUPS: usize = 2_000_000;

/// Bytes of a page and bounds of an item's bytes, for pages of items of various lengths: 32 items per page on average.
const PAGE_BYTES: u64 = 4096;
const ITEM_BYTES_MIN: u64 = 64;
const ITEM_BYTES_MAX: u64 = 192;

/// Runs all cases: dense with large and small buckets, sparse with regular pages and with pages of variable items.
/// Every key is looked up and its position compared; the benchmark panics on a wrong one.
pub fn run(config: &IndexConfig) -> Vec<Measurement> {
    let mut random = SmallRng::seed_from_u64(config.seed);
    let hashes = sorted_hashes(config.keys, &mut random);
    let page_of = pages_of_variable_items(config.keys, &mut random);
    let probes: Vec<KeyHash> = match hashes.len() {
        0 => Vec::new(),
        keys => (0..config.lookups(LOOKUPS)).map(|_| hashes[random.random_range(0..keys)]).collect(),
    };
    let cases = [
        ("trie_dense_256", 256, Granularity::Key),
        ("trie_dense_64", 64, Granularity::Key),
        ("trie_sparse_regular_32", 256, Granularity::RegularPage { keys_per_page: 32 }),
        ("trie_sparse_regular_32_small_buckets", 100, Granularity::RegularPage { keys_per_page: 32 }),
        ("trie_sparse_variable_32", 256, Granularity::ListedPage),
    ];
    let measure = |(case, bucket_keys_mean, granularity)| {
        let trie_config = TrieConfig { bucket_keys_mean, ..TrieConfig::new(granularity) };
        let trie = build(&hashes, &page_of, trie_config);
        verify(&trie, &hashes, &page_of);
        let builds = |_: &()| {
            black_box(build(&hashes, &page_of, trie_config));
        };
        let build_keys_per_s = rate_per_s(hashes.len().max(1), || (), builds);
        let lookups = |_: &()| {
            let positions = probes.iter().map(|hash| trie.lookup(*hash).unwrap_or(0));
            black_box(positions.fold(0u64, u64::wrapping_add));
        };
        let lookup_ns = nanoseconds_each(rate_per_s(probes.len().max(1), || (), lookups));
        let keys = config.keys.max(1) as f64;
        Measurement::new("index", case)
            .config("keys", config.keys)
            .config("seed", config.seed)
            .config("bucket_keys_asked", bucket_keys_mean)
            .metric("bits_per_key", trie.memory_bytes() as f64 * 8.0 / keys)
            .metric("bucket_keys_mean", keys / trie.buckets() as f64)
            .metric("keys_per_position_mean", keys / trie.positions().max(1) as f64)
            .metric("lookup_ns", lookup_ns)
            .metric("build_keys_per_s", build_keys_per_s)
            .metric("memory_bytes", trie.memory_bytes())
    };
    cases.into_iter().map(measure).collect()
}

pub(super) fn sorted_hashes(keys: u64, random: &mut SmallRng) -> Vec<KeyHash> {
    let mut hashes: Vec<KeyHash> = (0..keys).map(|_| KeyHash(random.random())).collect();
    hashes.sort_unstable();
    hashes
}

/// The page of every key if items of random length fill pages one after another without being split.
fn pages_of_variable_items(keys: u64, random: &mut SmallRng) -> Vec<u32> {
    let (mut page, mut used) = (0, 0);
    let place = |_| {
        let bytes = random.random_range(ITEM_BYTES_MIN..=ITEM_BYTES_MAX);
        if used + bytes > PAGE_BYTES {
            page += 1;
            used = 0;
        }
        used += bytes;
        page
    };
    (0..keys).map(place).collect()
}

fn build(hashes: &[KeyHash], page_of: &[u32], config: TrieConfig) -> Trie {
    let mut builder = TrieBuilder::new(hashes.len() as u64, config);
    if config.granularity == Granularity::ListedPage {
        let mut page = 0;
        for (hash, &page_of_key) in hashes.iter().zip(page_of) {
            if page_of_key != page {
                builder.end_page();
                page = page_of_key;
            }
            builder.push(*hash);
        }
    } else {
        hashes.iter().for_each(|hash| builder.push(*hash));
    }
    builder.finish()
}

fn verify(trie: &Trie, hashes: &[KeyHash], page_of: &[u32]) {
    for (rank, hash) in hashes.iter().enumerate() {
        let expected = match trie.granularity() {
            Granularity::Key => rank as u64,
            Granularity::RegularPage { keys_per_page } => rank as u64 / u64::from(keys_per_page),
            Granularity::ListedPage => u64::from(page_of[rank]),
        };
        assert_eq!(trie.lookup(*hash), Some(expected), "key {rank}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_reports_every_case() {
        let measurements = run(&IndexConfig { keys: 5000, seed: 1 });
        assert_eq!(measurements.len(), 5);
        for measurement in measurements {
            assert!(
                measurement.metrics["bits_per_key"].as_f64().is_some_and(|bits| bits > 0.3 && bits < 4.0)
            );
        }
    }
}
