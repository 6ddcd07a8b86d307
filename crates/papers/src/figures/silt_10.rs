//! SILT's Figure 10: memory that finds items, while a store grows to twice its size, for combinations of its stores.
//!
//! The paper inserts 50 million items of 1 KiB into a store of as many. Memory per item depends on neither the size of
//! items nor, much, their number, so items are small here. Progress is counted in items and not in minutes, since
//! inserts are not held back for gets as in the paper.

use std::path::Path;
use std::time::Instant;

use alluvium::{Db, Durability, Keyspace, Stats};
use alluvium_bench::BenchError;
use alluvium_bench::random::mix;
use alluvium_bench::store::bytes_written;
use alluvium_model::plan_model::{ItemSize, PlanModel, Rules, Workload};
use alluvium_model::{KeyDistribution, Plan};
use indicatif::ProgressBar;

use super::{Axis, Figure, Panel, Published, Scale, Series};

/// A combination of stores.
struct Stores {
    /// Name in the legend.
    name: &'static str,
    plan: fn() -> Plan,
    /// Name of the metrics.
    metric: &'static str,
    /// Its memory in that of all three, as the paper states it.
    times_silt: Option<f64>,
}

/// The one of all three is the last.
const COMBINATIONS: [Stores; 5] = [
    Stores { name: "LogStore", plan: Plan::silt_log, metric: "log", times_silt: Some(10.0) },
    Stores {
        name: "LogStore, HashStore",
        plan: Plan::silt_log_hash,
        metric: "log_hash",
        times_silt: Some(4.0),
    },
    Stores {
        name: "LogStore, SortedStore",
        plan: Plan::silt_log_sorted,
        metric: "log_sorted",
        times_silt: Some(2.0),
    },
    Stores { name: "SortedStore", plan: Plan::silt_sorted, metric: "sorted", times_silt: None },
    Stores { name: "all three", plan: Plan::silt, metric: "silt", times_silt: None },
];

const KEY_BYTES: usize = 16;
const VALUE_BYTES: usize = 48;
/// Number of times that memory is looked at while the second half is inserted.
const SAMPLES: u64 = 64;
/// Points of a curve of the model.
const MODELLED: u64 = 4;
/// Maximum number of items that are looked up at the end.
const GETS_MAX: u64 = 50_000;
/// Bytes per item at most, of all three, in the paper.
const SILT_BYTES: f64 = 0.69;
/// Minutes of all three in those of the LogStore alone, in the paper.
const SILT_MINUTES_TO_LOG: f64 = 238.0 / 170.0;

/// What one combination took.
struct Grown {
    /// Millions of new items, bytes of memory per item.
    memory: Vec<(f64, f64)>,
    seconds: f64,
    written_per_byte: f64,
    reads_per_get: f64,
}

impl Grown {
    fn bytes_max(&self) -> f64 {
        self.memory.iter().map(|point| point.1).fold(0.0, f64::max)
    }
}

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let bar = ProgressBar::new(COMBINATIONS.len() as u64 * scale.stored_items_max);
    let mut grown = Vec::new();
    let mut series = Vec::new();
    for stores in &COMBINATIONS {
        let directory = scale.directories.create(&scale.directory, &format!("silt-10-{}", stores.metric))?;
        let outcome = grow(&(stores.plan)(), directory.path(), scale, &bar);
        let removed = directory.remove();
        let outcome = outcome?;
        removed?;
        series.push(Series::measurement(stores.name, outcome.memory.clone()));
        series.push(Series::model(format!("{}, model", stores.name), modelled(&(stores.plan)(), scale)?));
        grown.push(outcome);
    }
    bar.finish_and_clear();
    let silt = &grown[COMBINATIONS.len() - 1];
    let mut published = vec![
        Published::new("silt_bytes_per_item_max", SILT_BYTES, silt.bytes_max()),
        Published::new("silt_to_log_insert_time", SILT_MINUTES_TO_LOG, silt.seconds / grown[0].seconds),
    ];
    for (stores, grown) in COMBINATIONS.iter().zip(&grown) {
        let name = |what: &str| format!("{}_{what}", stores.metric);
        if let Some(times) = stores.times_silt {
            let ours = grown.bytes_max() / silt.bytes_max();
            published.push(Published::new(name("to_silt_memory_max"), times, ours));
        }
        published.push(Published::ours(name("bytes_per_item_mean"), mean(&grown.memory)));
        published.push(Published::ours(name("write_amplification"), grown.written_per_byte));
        published.push(Published::ours(name("reads_per_get"), grown.reads_per_get));
    }
    Ok(Figure {
        id: "silt-10",
        title: "Memory of SILT's stores, alone and together",
        source: "SILT (SOSP 2011), Figure 10: 50 million new items of 1 KiB beside as many; here items of 16+48 bytes",
        panels: vec![Panel {
            x: Axis::linear("million new items, beside as many as there are in the end"),
            y: Axis::logarithmic("bytes of memory per item that find it"),
            series,
        }],
        published,
    })
}

fn mean(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64
}

/// What the model expects on the way.
fn modelled(plan: &Plan, scale: &Scale) -> Result<Vec<(f64, f64)>, BenchError> {
    let (key_bytes, value_bytes) = (KEY_BYTES as f64, VALUE_BYTES as f64);
    let item = ItemSize { key_bytes, value_bytes, deviation_bytes: 0.0 };
    let end = scale.stored_items_max as f64;
    let point = |number: u64| {
        let items = end / 2.0 * (1.0 + number as f64 / MODELLED as f64);
        let workload = Workload {
            keys: KeyDistribution::uniform(items)?,
            // Nothing between: only the size at the end counts.
            start_keys: items - 1.0,
            expected_keys: end,
            ..Workload::load(items, item)?
        };
        let rules = Rules::engine_at_full_speed();
        let cost = PlanModel { rules, ..PlanModel::new(plan.clone(), workload) }.cost()?.cost;
        Ok(((items - end / 2.0) / 1e6, cost.bytes_per_item()))
    };
    (1..=MODELLED).map(point).collect()
}

/// Loads half of the items, and then measures while the other half comes.
fn grow(plan: &Plan, directory: &Path, scale: &Scale, bar: &ProgressBar) -> Result<Grown, BenchError> {
    let end = scale.stored_items_max;
    let builder = Db::builder(directory).plan(plan.clone()).durability(Durability::Buffered);
    let db = builder.expected_items(end).open()?;
    let items = db.keyspace("items")?;
    let half = end / 2;
    put(&items, 0..half, scale.seed)?;
    bar.inc(half);
    db.wait_idle()?;
    let before = bytes_written(&db.stats());
    let start = Instant::now();
    let mut memory: Vec<(f64, f64)> = Vec::new();
    for sample in 0..SAMPLES {
        let part = |sample: u64| half + (end - half) * sample / SAMPLES;
        let (from, to) = (part(sample), part(sample + 1));
        put(&items, from..to, scale.seed)?;
        bar.inc(to - from);
        memory.push(((to - half) as f64 / 1e6, db.stats().memory.finding() as f64 / to as f64));
    }
    db.wait_idle()?;
    let seconds = start.elapsed().as_secs_f64();
    let written = bytes_written(&db.stats()) - before;
    let written_per_byte = written as f64 / ((end - half) * (KEY_BYTES + VALUE_BYTES) as u64) as f64;
    let reads_per_get = get(&db, &items, scale)?;
    drop(items);
    db.close()?;
    Ok(Grown { memory, seconds, written_per_byte, reads_per_get })
}

/// Looks up some of the items and checks what is found. Returns the reads of the device per get.
fn get(db: &Db, items: &Keyspace, scale: &Scale) -> Result<f64, BenchError> {
    let reads = |stats: Stats| stats.traffic.page_reads;
    let before = reads(db.stats());
    let gets = scale.stored_items_max.min(GETS_MAX);
    for number in 0..gets {
        let number = mix(number) % scale.stored_items_max;
        let (key, value) = item(number, scale.seed);
        if items.get(key)?.as_deref() != Some(&value[..]) {
            return Err(BenchError::WrongAnswer(format!("get of item {number}: another value, or none")));
        }
    }
    Ok((reads(db.stats()) - before) as f64 / gets as f64)
}

fn put(items: &Keyspace, numbers: std::ops::Range<u64>, seed: u64) -> Result<(), BenchError> {
    for number in numbers {
        let (key, value) = item(number, seed);
        items.insert(key, value)?;
    }
    Ok(())
}

fn item(number: u64, seed: u64) -> ([u8; KEY_BYTES], [u8; VALUE_BYTES]) {
    let number = mix(number ^ seed << 48);
    let (mut key, mut value) = ([0; KEY_BYTES], [0; VALUE_BYTES]);
    key[..8].copy_from_slice(&number.to_le_bytes());
    value[..8].copy_from_slice(&mix(number).to_le_bytes());
    (key, value)
}
