//! Measurements of the three-level block index (SPEC A4), compared with SlimDB's Tables 3 and 4.
//!
//! Tables are SlimDB's: 148,639 items in 8,744 pages, in groups of 16, 32 or 64 items with one prefix, or in 26 groups
//! of up to 8,000 items whose sizes fall as a power of their rank. One table alone, as in the paper, and as many as
//! `keys` items need, looked up in random order. Every item is looked up and its page compared; so are the pages of
//! every group.

use std::hint::black_box;

use alluvium_base::KeyHash;
use alluvium_index::fences::PageRange;
use alluvium_index::three_level::{SuffixCode, ThreeLevelBuilder, ThreeLevelConfig, ThreeLevelIndex};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::IndexConfig;
use super::cuckoo::{nanoseconds_each, rate_per_s};
use crate::measurement::Measurement;

/// Items and pages of one of SlimDB's tables.
const TABLE_ITEMS: u64 = 148_639;
const TABLE_PAGES: u64 = 8_744;

/// Maximum number of lookups that are timed.
const LOOKUPS: usize = 1_000_000;

/// LevelDB's own index in Table 3.
const LEVELDB_BITS_PER_KEY: f64 = 17.39;

/// Exponent with which the sizes of Zipfian groups fall by rank, chosen so that 26 of them fill a table.
const ZIPF_POWER: f64 = 0.155;
const ZIPF_GROUP_ITEMS_MAX: f64 = 8000.0;

/// A distribution of group sizes, with SlimDB's published results for it.
struct Pattern {
    name: &'static str,
    /// Items of a group by its rank, counted from 1.
    group_items: fn(u64) -> u64,
    /// Table 3.
    bits_per_key: f64,
    /// Table 4.
    lookups_per_s: f64,
    leveldb_lookups_per_s: f64,
}

const PATTERNS: [Pattern; 4] = [
    Pattern {
        name: "fix16",
        group_items: |_| 16,
        bits_per_key: 2.56,
        lookups_per_s: 147_500.0,
        leveldb_lookups_per_s: 1_042_700.0,
    },
    Pattern {
        name: "fix32",
        group_items: |_| 32,
        bits_per_key: 1.94,
        lookups_per_s: 143_600.0,
        leveldb_lookups_per_s: 1_019_400.0,
    },
    Pattern {
        name: "fix64",
        group_items: |_| 64,
        bits_per_key: 1.57,
        lookups_per_s: 149_500.0,
        leveldb_lookups_per_s: 1_016_300.0,
    },
    Pattern {
        name: "zipf",
        group_items: |rank| (ZIPF_GROUP_ITEMS_MAX / (rank as f64).powf(ZIPF_POWER)) as u64,
        bits_per_key: 1.56,
        lookups_per_s: 288_500.0,
        leveldb_lookups_per_s: 1_046_000.0,
    },
];

/// Runs all cases: each pattern with each form of the third level, one table and many.
pub fn run(config: &IndexConfig) -> Vec<Measurement> {
    let tables = config.keys.div_ceil(TABLE_ITEMS).max(1);
    let mut measurements = Vec::new();
    for count in if tables > 1 { vec![1, tables] } else { vec![1] } {
        for pattern in &PATTERNS {
            let items: Vec<Vec<KeyHash>> =
                (0..count).map(|number| table(pattern, config.seed ^ number << 32)).collect();
            for (form, suffix_code) in [("partial", SuffixCode::Partial), ("ect", SuffixCode::Trie)] {
                measurements.push(measure(pattern, form, suffix_code, &items, config));
            }
        }
    }
    measurements
}

/// The hashes of a table's items in order.
fn table(pattern: &Pattern, seed: u64) -> Vec<KeyHash> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut hashes = Vec::with_capacity(TABLE_ITEMS as usize);
    for rank in 1.. {
        let room = TABLE_ITEMS - hashes.len() as u64;
        if room == 0 {
            break;
        }
        let prefix: u64 = random.random();
        let items = (pattern.group_items)(rank).clamp(1, room);
        hashes.extend((0..items).map(|_| KeyHash::from_halves(prefix, random.random())));
    }
    hashes.sort_unstable();
    hashes
}

fn page_of(item: usize) -> u64 {
    item as u64 * TABLE_PAGES / TABLE_ITEMS
}

fn build(items: &[KeyHash], suffix_code: SuffixCode) -> ThreeLevelIndex {
    let groups = items.chunk_by(|left, right| left.high() == right.high()).count() as u64;
    let config = ThreeLevelConfig { suffix_code, ..ThreeLevelConfig::new(items.len() as u64, groups) };
    let mut builder = ThreeLevelBuilder::new(config);
    items.iter().enumerate().for_each(|(item, hash)| builder.push(*hash, page_of(item)));
    builder.finish()
}

fn verify(index: &ThreeLevelIndex, items: &[KeyHash]) {
    for (item, &hash) in items.iter().enumerate() {
        let page = page_of(item);
        assert_eq!(index.lookup(hash), Some(PageRange { first: page, last: page }), "item {item}");
    }
    let mut first = 0;
    for group in items.chunk_by(|left, right| left.high() == right.high()) {
        let last = first + group.len() - 1;
        let pages = PageRange { first: page_of(first), last: page_of(last) };
        assert_eq!(index.prefix_pages(group[0].high()), Some(pages), "the group of item {first}");
        first = last + 1;
    }
}

fn measure(
    pattern: &Pattern,
    form: &str,
    suffix_code: SuffixCode,
    tables: &[Vec<KeyHash>],
    config: &IndexConfig,
) -> Measurement {
    let indexes: Vec<ThreeLevelIndex> = tables.iter().map(|items| build(items, suffix_code)).collect();
    indexes.iter().zip(tables).for_each(|(index, items)| verify(index, items));
    let items: usize = tables.iter().map(Vec::len).sum();
    let mut random = SmallRng::seed_from_u64(!config.seed);
    let probes: Vec<(usize, KeyHash)> = (0..config.lookups(LOOKUPS))
        .map(|_| {
            let number = random.random_range(0..tables.len());
            (number, tables[number][random.random_range(0..tables[number].len())])
        })
        .collect();
    let lookups_per_s = rate_per_s(
        probes.len(),
        || (),
        |()| {
            let pages = probes.iter().map(|(number, hash)| indexes[*number].lookup(*hash));
            black_box(pages.fold(0u64, |sum, pages| sum.wrapping_add(pages.map_or(0, |pages| pages.last))));
        },
    );
    let build_keys_per_s = rate_per_s(
        tables[0].len(),
        || (),
        |()| {
            black_box(build(&tables[0], suffix_code));
        },
    );
    let memory_bytes: u64 = indexes.iter().map(ThreeLevelIndex::memory_bytes).sum();
    let prefixes: u64 = indexes.iter().map(ThreeLevelIndex::prefixes).sum();
    let pages: u64 = indexes.iter().map(ThreeLevelIndex::pages).sum();
    Measurement::new("index", &format!("three_level_{}_{form}", pattern.name))
        .config("keys", items)
        .config("tables", tables.len())
        .config("seed", config.seed)
        .metric("groups", prefixes)
        .metric("bits_per_key", memory_bytes as f64 * 8.0 / items as f64)
        .metric("bits_per_key_published", pattern.bits_per_key)
        .metric("bits_per_key_leveldb_published", LEVELDB_BITS_PER_KEY)
        .metric("bits_per_page", memory_bytes as f64 * 8.0 / pages as f64)
        .metric("lookup_ns", nanoseconds_each(lookups_per_s))
        .metric("lookup_keys_per_s", lookups_per_s)
        .metric("lookup_keys_per_s_published", pattern.lookups_per_s)
        .metric("lookup_keys_per_s_leveldb_published", pattern.leveldb_lookups_per_s)
        .metric("build_keys_per_s", build_keys_per_s)
        .metric("memory_bytes", memory_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_takes_less_than_slimdbs_index() {
        let measurements = run(&IndexConfig { keys: 1, seed: 1 });
        assert_eq!(measurements.len(), 8);
        for measurement in measurements {
            let figure = |name: &str| measurement.metrics[name].as_f64().unwrap_or(f64::NAN);
            assert!(figure("bits_per_key") < figure("bits_per_key_published"), "{}", measurement.case);
        }
    }

    #[test]
    fn zipfian_groups_are_as_many_as_slimdbs() {
        let zipf = &PATTERNS[3];
        let groups = table(zipf, 1).chunk_by(|left, right| left.high() == right.high()).count();
        assert!((25..=27).contains(&groups), "{groups} groups");
    }
}
