//! Measurements of the hash filter (SPEC A2).
//!
//! `bits_per_key` and `false_positive_rate` are, like SILT's, those of a table frozen when it became full; the names of
//! those at 95 % occupancy contain `_at_95_percent`. Times are taken at 95 %. Lookups are in the order of random keys,
//! so that nearly each goes to another filter than the previous one: one after another (`lookup_ns`,
//! `absent_lookup_ns`), or with prefetching (`_keys_per_s`). For every present key it is checked that its slot is among
//! the candidates.

use alluvium_base::KeyHash;
use alluvium_index::cuckoo::CuckooTable;
use alluvium_index::hash_filter::HashFilter;

use super::IndexConfig;
use super::cuckoo::{
    Numbered, PREFETCH_DISTANCE, Shards, cases, filled_until_full, nanoseconds_each, random_hashes,
    rate_per_s,
};
use crate::measurement::Measurement;

/// Tag widths measured: SILT's, and the narrow ones that a planner may choose when memory is scarce.
const WIDTHS: [u32; 4] = [15, 12, 8, 4];

/// Number of absent keys for measuring a false-positive rate: its standard deviation is 3 % at 15 bits.
const STRANGERS: usize = 1 << 22;

/// Runs all cases: 2^20 keys in 64 filters at every width, then in one filter, and `config.keys` both ways, at 15 bits.
pub fn run(config: &IndexConfig) -> Vec<Measurement> {
    let mut measurements = Vec::new();
    for (index, (keys, count)) in cases(config).into_iter().enumerate() {
        let tables = FilledTables::new(keys, count, config.seed);
        let widths = if index == 0 { &WIDTHS[..] } else { &WIDTHS[..1] };
        measurements.extend(widths.iter().map(|&tag_bits| tables.measure(tag_bits)));
    }
    measurements
}

/// The tables from which the filters of one case are made, and the keys that are looked up in them.
struct FilledTables {
    seed: u64,
    present: Numbered,
    absent: Vec<KeyHash>,
    shards: Shards,
    tables: Vec<CuckooTable>,
    /// A table of the same size that took keys until it was full.
    full: CuckooTable,
}

impl FilledTables {
    fn new(keys: usize, count: usize, seed: u64) -> Self {
        let present = Numbered::new(random_hashes(keys, seed));
        let shards = Shards::sized_for(&present, count);
        let tables = shards.empty_tables();
        shards.fill(&tables, &shards.group(&present));
        let full = filled_until_full(keys / count, seed);
        Self { seed, present, absent: random_hashes(keys, !seed), shards, tables, full }
    }

    fn measure(&self, tag_bits: u32) -> Measurement {
        let keys = self.present.hashes.len();
        let mut filters: Vec<HashFilter> = Vec::new();
        let build_all = || self.tables.iter().map(|table| HashFilter::from_table(table, tag_bits)).collect();
        let build = rate_per_s(keys, || (), |()| filters = build_all());
        self.verify(&filters);

        let filter_of = |hash: KeyHash| &filters[self.shards.number(hash)];
        let strangers = count_in_turn(filter_of, &self.absent);
        let timed = |count: &dyn Fn() -> usize, expected: usize| {
            rate_per_s(keys, || (), |()| assert_eq!(count(), expected, "every lookup gives the same answer"))
        };
        let single = timed(&|| count_in_turn(filter_of, &self.present.hashes), keys);
        let ahead = timed(&|| count_fetching_ahead(filter_of, &self.present.hashes), keys);
        let absent_single = timed(&|| count_in_turn(filter_of, &self.absent), strangers);
        let absent_ahead = timed(&|| count_fetching_ahead(filter_of, &self.absent), strangers);

        let frozen = HashFilter::from_table(&self.full, tag_bits);
        let memory_bytes: usize = filters.iter().map(HashFilter::memory_bytes).sum();
        let bits_per_key = |bytes: usize, keys: usize| bytes as f64 * 8.0 / keys as f64;
        Measurement::new("index", if filters.len() == 1 { "hash_filter_one" } else { "hash_filter_shards" })
            .config("keys", keys)
            .config("filters", filters.len())
            .config("tag_bits", tag_bits)
            .config("seed", self.seed)
            .metric("build_keys_per_s", build)
            .metric("lookup_ns", nanoseconds_each(single))
            .metric("lookup_keys_per_s", ahead)
            .metric("absent_lookup_ns", nanoseconds_each(absent_single))
            .metric("absent_lookup_keys_per_s", absent_ahead)
            .metric("false_positive_rate", self.false_positive_rate(|_| &frozen))
            .metric("false_positive_rate_at_95_percent", self.false_positive_rate(filter_of))
            .metric("bits_per_key", bits_per_key(frozen.memory_bytes(), frozen.len()))
            .metric("bits_per_key_at_95_percent", bits_per_key(memory_bytes, keys))
            .metric("memory_bytes", memory_bytes)
    }

    /// Checks that every present key has the slot of its entry among its candidates.
    fn verify(&self, filters: &[HashFilter]) {
        for (&hash, &number) in self.present.hashes.iter().zip(&self.present.offsets) {
            let shard = self.shards.number(hash);
            let entry = self.tables[shard].candidates(hash).find(|&(_, offset)| offset == number);
            let (slot, _) = entry.expect("the table contains the key");
            let mut candidates = filters[shard].candidates(hash);
            assert!(candidates.any(|candidate| candidate == slot.index()), "a present key was missed");
        }
    }

    /// Mean number of candidates of an absent key.
    fn false_positive_rate<'f>(&self, filter_of: impl Fn(KeyHash) -> &'f HashFilter) -> f64 {
        let strangers = random_hashes(STRANGERS, !self.seed ^ 1);
        let candidates: usize = strangers.iter().map(|&hash| filter_of(hash).candidates(hash).len()).sum();
        candidates as f64 / STRANGERS as f64
    }
}

/// Number of keys that have candidates, looked up one after another.
fn count_in_turn<'f>(filter_of: impl Fn(KeyHash) -> &'f HashFilter, hashes: &[KeyHash]) -> usize {
    hashes.iter().filter(|&&hash| filter_of(hash).candidates(hash).len() > 0).count()
}

/// Number of keys that have candidates, with prefetching.
fn count_fetching_ahead<'f>(filter_of: impl Fn(KeyHash) -> &'f HashFilter, hashes: &[KeyHash]) -> usize {
    let mut count = 0;
    for (index, &hash) in hashes.iter().enumerate() {
        if let Some(&later) = hashes.get(index + PREFETCH_DISTANCE) {
            filter_of(later).prefetch(later);
        }
        count += usize::from(filter_of(hash).candidates(hash).len() > 0);
    }
    count
}
