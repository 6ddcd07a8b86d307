//! Wu's Figure 4.13: gets of a growing store whose filters and indexes soon exceed memory.
//!
//! The thesis has 4 GB, in which the filters of the first four levels always fit, and those of the last level from some
//! size on do not. Here filters, indexes and what is known of each table have 2 bytes for each item of the largest
//! store, 0.8 of them for tables, which are small here: what `lsm-trie-on-flash` needs at its worst moment, with the
//! filters of the last level on the device. `lsm-trie` has all filters in memory as long as they fit. `leveled` has the
//! layout of LevelDB and RocksDB. Rows are not kept, and reads pass the system's cache.

use std::path::Path;
use std::time::{Duration, Instant};

use alluvium::{Db, Durability, Keyspace};
use alluvium_bench::BenchError;
use alluvium_bench::random::Random;
use alluvium_model::Plan;

use super::stored::{device_reads, key};
use super::{Axis, Figure, Panel, Published, Scale, Series};

/// A curve's name, and its plan.
type Curve = (&'static str, fn() -> Plan);

const CURVES: [Curve; 3] = [
    ("lsm-trie", Plan::lsm_trie),
    ("lsm-trie-on-flash", Plan::lsm_trie_on_flash),
    ("leveled", Plan::leveled),
];
const VALUE_BYTES: usize = 94;
/// Bytes of filters, indexes and tables for each item of the largest store.
const BYTES_PER_ITEM: f64 = 2.0;
const DOUBLINGS: u32 = 5;
const THREADS: u64 = 8;
/// Maximum gets of each thread that are measured, and how many items there are for each; as many gets are done before.
const GETS_MAX: u64 = 2_500;
const ITEMS_PER_GET: u64 = 1_000;
/// 99th percentile of the thesis, in milliseconds.
const P99_MS: f64 = 0.92;

/// Gets of a store of some size.
struct Point {
    items: f64,
    gets_per_s: f64,
    reads_per_get: f64,
    p99_ms: f64,
}

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let mut curves = Vec::new();
    let mut published = Vec::new();
    for (name, plan) in CURVES {
        let directory = scale.directories.create(&scale.directory, &format!("wu-4.13-{name}"))?;
        let points = points(&plan(), directory.path(), scale);
        // The remains of a database that failed are of no use.
        let removed = directory.remove();
        let points = points?;
        removed?;
        if let [first, .., last] = &points[..] {
            let id = name.replace('-', "_");
            match name {
                "lsm-trie-on-flash" => published.push(Published::new("p99_ms", P99_MS, last.p99_ms)),
                _ => published.push(Published::ours(format!("{id}_p99_ms"), last.p99_ms)),
            }
            let rate = last.gets_per_s / first.gets_per_s;
            published.push(Published::ours(format!("{id}_gets_at_most_items_by_fewest"), rate));
            published.push(Published::ours(format!("{id}_reads_per_get_at_fewest"), first.reads_per_get));
            published.push(Published::ours(format!("{id}_reads_per_get_at_most"), last.reads_per_get));
        }
        curves.push((name, points));
    }
    let series = |of: fn(&Point) -> f64| {
        let curve = |(name, points): &(&'static str, Vec<Point>)| {
            Series::measurement(*name, points.iter().map(|point| (point.items, of(point))).collect())
        };
        curves.iter().map(curve).collect()
    };
    let panel = |label, of: fn(&Point) -> f64| Panel {
        x: Axis::logarithmic("items"),
        y: Axis::linear(label),
        series: series(of),
    };
    Ok(Figure {
        id: "wu-4.13",
        title: "Gets of a growing store with little memory",
        source: "Wu's thesis, Figure 4.13: 4 GB; here 2 bytes of filters and indexes for each item of the \
                 largest store, items of 16+94 bytes, eight threads",
        panels: vec![
            panel("gets a second", |point| point.gets_per_s),
            panel("reads of the device for a get", |point| point.reads_per_get),
        ],
        published,
    })
}

/// Loads a store, and measures its gets each time that it has twice as many items.
fn points(plan: &Plan, directory: &Path, scale: &Scale) -> Result<Vec<Point>, BenchError> {
    let items_max = scale.stored_items_max;
    let builder = Db::builder(directory).plan(plan.clone()).durability(Durability::Buffered);
    let db = builder.row_cache_bytes_max(0).expected_items(items_max).open()?;
    db.set_index_bytes_max((BYTES_PER_ITEM * items_max as f64) as u64);
    let keyspace = db.keyspace("items")?;
    let mut points = Vec::new();
    let mut loaded = 0;
    for doubling in (0..=DOUBLINGS).rev() {
        let items = items_max >> doubling;
        for number in loaded..items {
            keyspace.insert(key(number, scale.seed), [number as u8; VALUE_BYTES])?;
        }
        loaded = items;
        db.flush()?;
        db.wait_idle()?;
        // So that what fits is loaded.
        let count = (items_max / ITEMS_PER_GET).clamp(1, GETS_MAX);
        gets(&db, &keyspace, (items, count), scale.seed, 0)?;
        points.push(gets(&db, &keyspace, (items, count), scale.seed, 1)?);
    }
    drop(keyspace);
    db.close()?;
    Ok(points)
}

/// Gets of present keys by several threads, `count` by each.
fn gets(
    db: &Db,
    keyspace: &Keyspace,
    (items, count): (u64, u64),
    seed: u64,
    round: u64,
) -> Result<Point, BenchError> {
    let (before, start) = (device_reads(db), Instant::now());
    let times: Result<Vec<Vec<Duration>>, BenchError> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn(move || gets_of(keyspace, (items, count), seed, round * THREADS + thread))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread that gets does not panic")).collect()
    });
    let seconds = start.elapsed().as_secs_f64();
    let mut times = times?.concat();
    times.sort_unstable();
    let p99 = times[times.len() * 99 / 100];
    Ok(Point {
        items: items as f64,
        gets_per_s: times.len() as f64 / seconds,
        reads_per_get: (device_reads(db) - before) as f64 / times.len() as f64,
        p99_ms: p99.as_secs_f64() * 1e3,
    })
}

fn gets_of(
    keyspace: &Keyspace,
    (items, count): (u64, u64),
    seed: u64,
    stream: u64,
) -> Result<Vec<Duration>, BenchError> {
    let mut random = Random::new(seed, stream);
    let mut times = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let number = random.below(items);
        let start = Instant::now();
        let found = keyspace.get(key(number, seed))?;
        times.push(start.elapsed());
        if found.is_none_or(|value| value != [number as u8; VALUE_BYTES]) {
            return Err(BenchError::WrongAnswer(format!("get of item {number}: another value, or none")));
        }
    }
    Ok(times)
}
