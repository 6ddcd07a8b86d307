//! Measurements of the partial-key cuckoo table (SPEC A1).
//!
//! Every case fills tables to 95 % with random keys and looks up all of them, in two orders: *grouped*, table after
//! table, like a group commit or a batch sorted by shard; and *scattered*, nearly every key in another table than the
//! previous one, with prefetching. `lookup_ns` is one lookup after another, scattered and without prefetching. Every
//! lookup is verified, within the timed loop.

mod shards;
mod timing;

use alluvium_index::cuckoo::CuckooTable;

use super::IndexConfig;
use crate::measurement::Measurement;
pub(super) use shards::{Numbered, Shards};
pub(super) use timing::{nanoseconds_each, random_hashes, rate_per_s};

/// Entries of a table in the engine: a shard of the log.
const ENTRIES_PER_TABLE: usize = 16 << 10;

/// Keys of the cases that SPEC A1 names: 64 tables, or one.
const KEYS_REFERENCE: usize = 64 * ENTRIES_PER_TABLE;

/// How many keys ahead of the current one memory is prefetched.
pub(super) const PREFETCH_DISTANCE: usize = 16;

/// Number of tables that are filled until a key finds no room, for the load factor.
const FILLINGS: u64 = 8;

/// Runs all cases: 2^20 keys in 64 tables of 16 Ki entries and in one table, then `config.keys` both ways.
pub fn run(config: &IndexConfig) -> Vec<Measurement> {
    cases(config)
        .into_iter()
        .map(|(keys, tables)| {
            let name = if tables == 1 { "cuckoo_one_table" } else { "cuckoo_shards" };
            case(name, keys, tables, config.seed)
        })
        .collect()
}

/// (keys, tables) of every case; at least one key.
pub(super) fn cases(config: &IndexConfig) -> Vec<(usize, usize)> {
    let mut cases = Vec::new();
    for keys in [KEYS_REFERENCE, config.keys.max(1) as usize] {
        for tables in [keys.div_ceil(ENTRIES_PER_TABLE), 1] {
            if !cases.contains(&(keys, tables)) {
                cases.push((keys, tables));
            }
        }
    }
    cases
}

fn case(name: &str, keys: usize, tables: usize, seed: u64) -> Measurement {
    let scattered = Numbered::new(random_hashes(keys, seed));
    let absent = random_hashes(keys, !seed);
    let shards = Shards::sized_for(&scattered, tables);
    let grouped = shards.group(&scattered);

    let insert = rate_per_s(keys, || shards.empty_tables(), |empty| shards.fill(empty, &grouped));
    let insert_scattered =
        rate_per_s(keys, || shards.empty_tables(), |empty| shards.fill_fetching_ahead(empty, &scattered));
    let filled = shards.empty_tables();
    shards.fill(&filled, &grouped);
    let lookup = rate_per_s(keys, || (), |()| assert_eq!(shards.found_in_batches(&filled, &grouped), keys));
    let lookup_scattered =
        rate_per_s(keys, || (), |()| assert_eq!(shards.found_in_batches(&filled, &scattered), keys));
    let single = rate_per_s(keys, || (), |()| assert_eq!(shards.found(&filled, &scattered), keys));
    let mut false_candidates = 0;
    let single_absent =
        rate_per_s(keys, || (), |()| false_candidates = shards.candidates_of(&filled, &absent));

    let memory_bytes: usize = filled.iter().map(CuckooTable::memory_bytes).sum();
    let slots: usize = filled.iter().map(CuckooTable::slots).sum();
    Measurement::new("index", name)
        .config("keys", keys)
        .config("tables", tables)
        .config("seed", seed)
        .metric("load_factor", load_factor(keys / tables, seed))
        .metric("occupancy", keys as f64 / slots as f64)
        .metric("insert_keys_per_s", insert)
        .metric("insert_scattered_keys_per_s", insert_scattered)
        .metric("lookup_keys_per_s", lookup)
        .metric("lookup_scattered_keys_per_s", lookup_scattered)
        .metric("lookup_ns", nanoseconds_each(single))
        .metric("absent_lookup_ns", nanoseconds_each(single_absent))
        .metric("false_positive_rate", false_candidates as f64 / keys as f64)
        .metric("bits_per_key", memory_bytes as f64 * 8.0 / keys as f64)
        .metric("memory_bytes", memory_bytes)
}

/// Mean occupancy of tables for `entries` entries when the first key finds no room.
fn load_factor(entries: usize, seed: u64) -> f64 {
    let total: f64 =
        (0..FILLINGS).map(|filling| filled_until_full(entries, seed ^ filling << 32).occupancy()).sum();
    total / FILLINGS as f64
}

/// A table for `entries` entries that took random keys until one found no room.
pub(super) fn filled_until_full(entries: usize, seed: u64) -> CuckooTable {
    let table = CuckooTable::with_entries(entries);
    for (hash, offset) in random_hashes(table.slots() + 1, seed).into_iter().zip(0..) {
        if table.insert(hash, offset).is_err() {
            break;
        }
    }
    table
}
