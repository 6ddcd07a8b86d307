//! A database whose sorted run gets one index after another, for the figures of Lim's chapter 3.

use std::path::Path;
use std::time::Instant;

use alluvium::{Db, Durability, Keyspace, LevelsPlan, Plan};
use alluvium_bench::BenchError;
use alluvium_bench::random::mix;
use alluvium_bench::store::bytes_written;
use alluvium_model::{Filter, Index};

use super::Scale;
use super::stored::{KEY_BYTES, device_reads, key};

/// Gets that are timed and whose reads are counted.
const GETS: u64 = 50_000;

/// An index of the sorted run, and its filter.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    pub name: &'static str,
    pub filter: Filter,
    pub index: Index,
}

/// A trie down to pages (LIM §3.1.6).
pub const SPARSE: Variant = Variant { name: "sparse trie", filter: Filter::None, index: Index::Trie };
/// A trie down to items (LIM §3.1.4).
pub const DENSE: Variant = Variant { name: "dense trie", filter: Filter::None, index: Index::TrieDense };
/// A trie down to items with eight bits of each hash (SILT §3.3).
pub const FRAGMENTS: Variant = Variant {
    name: "dense trie, fragments of 8 bits",
    filter: Filter::Fragments { bits: 8 },
    index: Index::TrieDense,
};
/// Our own page fences.
pub const FENCES: Variant = Variant { name: "fences", filter: Filter::None, index: Index::Fences };

impl Variant {
    fn plan(self) -> Plan {
        let mut plan = LevelsPlan::silt();
        (plan.levels[1].filter, plan.levels[1].index) = (self.filter, self.index);
        plan.into()
    }
}

/// What a database needs under one index.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    /// Bits of filter and index in memory for each item.
    pub bits_per_item: f64,
    /// Reads of pages for a get of a present key.
    pub reads_per_present: f64,
    /// The same of an absent key.
    pub reads_per_absent: f64,
    /// Gets of present keys a second, by one thread.
    pub gets_per_s: f64,
    /// Bytes that the change to this index wrote to files of any kind.
    pub change_bytes_written: f64,
    /// Seconds that the change took.
    pub change_s: f64,
    /// Items on a page, on average.
    pub items_per_page: f64,
}

/// Loads `items` items of `value_bytes` bytes of value under the first of `variants`, and changes to the others.
pub fn measure(
    scale: &Scale,
    name: &str,
    (items, value_bytes): (u64, usize),
    variants: &[Variant],
) -> Result<Vec<Measured>, BenchError> {
    let directory = scale.directories.create(&scale.directory, name)?;
    let measured = measure_in(directory.path(), (items, value_bytes), variants, scale.seed);
    // The remains of a database that failed are of no use.
    let removed = directory.remove();
    let measured = measured?;
    removed?;
    Ok(measured)
}

fn measure_in(
    directory: &Path,
    (items, value_bytes): (u64, usize),
    variants: &[Variant],
    seed: u64,
) -> Result<Vec<Measured>, BenchError> {
    let [first, ..] = variants else { return Ok(Vec::new()) };
    let builder = Db::builder(directory).plan(first.plan()).durability(Durability::Buffered);
    let db = builder.row_cache_bytes_max(0).expected_items(items).open()?;
    let keyspace = db.keyspace("items")?;
    let value = vec![0x5a; value_bytes];
    for number in 0..items {
        keyspace.insert(key(number, seed), &value)?;
    }
    db.compact()?;
    db.wait_idle()?;
    let mut all = Vec::new();
    for variant in variants {
        let (written, start) = (bytes_written(&db.stats()), Instant::now());
        db.change_plan(variant.plan())?;
        db.wait_idle()?;
        let change_s = start.elapsed().as_secs_f64();
        let change_bytes_written = (bytes_written(&db.stats()) - written) as f64;
        let present = |number: u64| key(mix(number) % items, seed);
        let absent = |number: u64| key(items + number, seed);
        // So that all indexes are loaded.
        gets(&db, &keyspace, present)?;
        let (reads_per_present, gets_per_s) = gets(&db, &keyspace, present)?;
        let (reads_per_absent, _) = gets(&db, &keyspace, absent)?;
        let stats = db.stats();
        let pages = stats.levels.iter().map(|level| level.bytes).sum::<u64>() / 4096;
        all.push(Measured {
            bits_per_item: (stats.memory.filters + stats.memory.indexes) as f64 * 8.0 / items as f64,
            reads_per_present,
            reads_per_absent,
            gets_per_s,
            change_bytes_written,
            change_s,
            items_per_page: items as f64 / pages.max(1) as f64,
        });
    }
    drop(keyspace);
    db.close()?;
    Ok(all)
}

/// Reads of pages and of indexes for a get, and gets a second.
fn gets(
    db: &Db,
    keyspace: &Keyspace,
    key: impl Fn(u64) -> [u8; KEY_BYTES],
) -> Result<(f64, f64), BenchError> {
    let (before, start) = (device_reads(db), Instant::now());
    for number in 0..GETS {
        keyspace.get(key(number))?;
    }
    let seconds = start.elapsed().as_secs_f64();
    Ok(((device_reads(db) - before) as f64 / GETS as f64, GETS as f64 / seconds))
}
