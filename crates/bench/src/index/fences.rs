//! Measurements of page fences (SPEC A8).

use std::hint::black_box;

use alluvium_base::KeyHash;
use alluvium_index::fences::{PageFences, PageFencesBuilder};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::IndexConfig;
use super::cuckoo::{nanoseconds_each, rate_per_s};
use super::trie::sorted_hashes;
use crate::measurement::Measurement;

/// Maximum number of lookups that are timed.
const LOOKUPS: usize = 2_000_000;
const KEYS_PER_PAGE: u64 = 32;
const RESOLUTION_BITS: u32 = 8;

/// Runs all cases: pages of exactly 32 keys, and pages that end between two cells. Every key is looked up and must be
/// in the pages found; otherwise the benchmark panics.
pub fn run(config: &IndexConfig) -> Vec<Measurement> {
    let mut random = SmallRng::seed_from_u64(config.seed);
    let hashes = sorted_hashes(config.keys, &mut random);
    let probes: Vec<u64> = match hashes.len() {
        0 => Vec::new(),
        keys => (0..config.lookups(LOOKUPS)).map(|_| hashes[random.random_range(0..keys)].high()).collect(),
    };
    let measure = |(case, aligned)| {
        let (fences, page_starts) = build(&hashes, aligned);
        let pages_read = verify(&fences, &hashes, &page_starts);
        let builds = |_: &()| {
            black_box(build(&hashes, aligned));
        };
        let build_keys_per_s = rate_per_s(hashes.len().max(1), || (), builds);
        let lookups = |_: &()| {
            let pages = probes.iter().map(|hash| fences.lookup(*hash).map_or(0, |pages| pages.last));
            black_box(pages.fold(0, std::ops::BitXor::bitxor));
        };
        let lookup_ns = nanoseconds_each(rate_per_s(probes.len().max(1), || (), lookups));
        let keys = config.keys.max(1) as f64;
        Measurement::new("index", case)
            .config("keys", config.keys)
            .config("seed", config.seed)
            .config("resolution_bits", RESOLUTION_BITS)
            .metric("bits_per_key", fences.memory_bytes() as f64 * 8.0 / keys)
            .metric("keys_per_page_mean", keys / fences.pages().max(1) as f64)
            .metric("pages_per_lookup", pages_read as f64 / keys)
            .metric("lookup_ns", lookup_ns)
            .metric("build_keys_per_s", build_keys_per_s)
            .metric("memory_bytes", fences.memory_bytes())
    };
    [("fences_32", false), ("fences_aligned_32", true)].into_iter().map(measure).collect()
}

/// Fences and the rank of each page's first key. Aligned pages end at 32 keys or, if that is within a cell, after the
/// next key that is the last of its cell.
fn build(hashes: &[KeyHash], aligned: bool) -> (PageFences, Vec<usize>) {
    let pages_expected = hashes.len() as u64 / KEYS_PER_PAGE;
    let mut builder = PageFencesBuilder::new(0, u64::MAX, pages_expected, RESOLUTION_BITS);
    let mut starts = Vec::with_capacity(pages_expected as usize + 1);
    let mut start = 0;
    while let Some(first) = hashes.get(start) {
        match start.checked_sub(1) {
            Some(before) => builder.push_page_after(hashes[before].high(), first.high()),
            None => builder.push_page(first.high()),
        }
        starts.push(start);
        start += KEYS_PER_PAGE as usize;
        while aligned
            && hashes
                .get(start)
                .is_some_and(|next| builder.cell_of(next.high()) == builder.cell_of(hashes[start - 1].high()))
        {
            start += 1;
        }
    }
    (builder.finish(), starts)
}

/// Number of pages read if every key is looked up once.
fn verify(fences: &PageFences, hashes: &[KeyHash], page_starts: &[usize]) -> u64 {
    let mut pages_read = 0;
    let mut page = 0;
    for (rank, hash) in hashes.iter().enumerate() {
        page += u64::from(page_starts.get(page as usize + 1) == Some(&rank));
        let found = fences.lookup(hash.high());
        let Some(range) = found.filter(|range| (range.first..=range.last).contains(&page)) else {
            panic!("key {rank} is in page {page}, found {found:?}");
        };
        pages_read += range.pages();
    }
    pages_read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_reports_every_case() {
        let measurements = run(&IndexConfig { keys: 5000, seed: 1 });
        let pages: Vec<f64> =
            measurements.iter().filter_map(|case| case.metrics["pages_per_lookup"].as_f64()).collect();
        assert_eq!(pages.len(), 2);
        assert!(pages[0] < 1.03, "{pages:?}");
        assert_eq!(pages[1], 1.0);
    }
}
