//! Wu's Figure 4.11: bytes written per byte put while a store grows.
//!
//! The thesis loads up to 10 TB. Here logs have the minimum size, so that all four levels of `lsm-trie` contain
//! something from a few million items on. SILT has the same logs and as many of them before it rewrites its sorted run,
//! and so does the leveled plan. Each point is what one doubling of the store has written, including the log.

use std::path::Path;

use alluvium::{Db, Durability, Keyspace};
use alluvium_bench::BenchError;
use alluvium_bench::random::mix;
use alluvium_bench::store::bytes_written;
use alluvium_model::plan_model::{ItemSize, PlanModel, Rules, Workload};
use alluvium_model::{KeyDistribution, LevelsPlan, Plan};

use super::{Axis, Figure, Panel, Published, Scale, Series};

/// A curve's name, and how its plan is made.
type Curve = (&'static str, fn() -> Plan);

const CURVES: [Curve; 3] = [("lsm-trie", Plan::lsm_trie), ("leveled", Plan::leveled), ("silt", Plan::silt)];
const VALUE_BYTES: usize = 16;
const ITEM_BYTES: f64 = 32.0;
/// Minimum bytes of a log.
const LOG_BYTES: u64 = 64 << 10;
/// Number of doublings that are measured.
const DOUBLINGS: u32 = 4;
/// Number of doublings that the model's curves cover.
const MODELLED_DOUBLINGS: u32 = 10;
/// A point is only modelled, not measured, if the model predicts more than this.
const MEASURED_MAX: f64 = 100.0;
/// Level 4 of the prototype, which is reached at a billion items.
const PUBLISHED: f64 = 5.0;

pub fn draw(scale: &Scale) -> Result<Figure, BenchError> {
    let items_max = scale.stored_items_max;
    let mut series = Vec::new();
    let mut published = Vec::new();
    for (name, plan) in CURVES {
        let plan = with_small_logs(plan());
        let modelled = |items: u64| modelled(&plan, items, items_max);
        let from = items_max >> (MODELLED_DOUBLINGS / 2);
        let sizes = (0..=MODELLED_DOUBLINGS).map(|doubling| from << doubling);
        let model: Vec<_> =
            sizes.map(|items| Ok((items as f64, modelled(items)?))).collect::<Result<_, BenchError>>()?;
        series.push(Series::model(format!("{name}, model"), model));
        let mut sizes = Vec::new();
        for doubling in (0..=DOUBLINGS).rev() {
            let items = items_max >> doubling;
            if modelled(items)? <= MEASURED_MAX {
                sizes.push(items);
            }
        }
        let directory = scale.directories.create(&scale.directory, &format!("wu-4.11-{name}"))?;
        let measured = measured(&plan, directory.path(), &sizes, (items_max, scale.seed));
        // The remains of a database that failed are of no use.
        let removed = directory.remove();
        let measured = Series::measurement(name, measured?);
        removed?;
        if let Some(&(_, written)) = measured.points.last().filter(|_| name == "lsm-trie") {
            let log = Rules::engine().log_record_bytes / ITEM_BYTES + 1.0;
            published.push(Published::new(
                "lsm_trie_write_amplification_without_log",
                PUBLISHED,
                written - log,
            ));
        }
        series.push(measured);
    }
    Ok(Figure {
        id: "wu-4.11",
        title: "Write amplification while a store grows",
        source: "Wu's thesis, Figure 4.11: up to 10 TB; here logs of 64 KiB, items of 16+16 bytes, log included",
        panels: vec![Panel {
            x: Axis::logarithmic("items, new ones only"),
            y: Axis::logarithmic("bytes written per byte put, since half as many"),
            series,
        }],
        published,
    })
}

/// The plan with logs so small that a few items fill many levels. One writer needs no shards.
fn with_small_logs(plan: Plan) -> Plan {
    let Plan::Levels(LevelsPlan { mut sharding, mut log, levels }) = plan else {
        unreachable!("the plans are plans of levels")
    };
    sharding.shards_max = 1;
    log.segment_bytes_max = LOG_BYTES;
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

/// The model's prediction for the growth from half as many items.
fn modelled(plan: &Plan, items: u64, expected: u64) -> Result<f64, BenchError> {
    let item = ItemSize {
        key_bytes: ITEM_BYTES - VALUE_BYTES as f64,
        value_bytes: VALUE_BYTES as f64,
        deviation_bytes: 0.0,
    };
    let keys = items as f64;
    let workload = Workload {
        keys: KeyDistribution::uniform(keys)?,
        start_keys: keys / 2.0,
        expected_keys: keys.max(expected as f64),
        ..Workload::load(keys, item)?
    };
    let rules = Rules::engine_at_full_speed();
    let model = PlanModel { rules, ..PlanModel::new(plan.clone(), workload) };
    Ok(model.cost()?.cost.write_amplification())
}

/// Loads a store up to each of these sizes, and counts the bytes that the second half of each has written.
fn measured(
    plan: &Plan,
    directory: &Path,
    sizes: &[u64],
    (expected, seed): (u64, u64),
) -> Result<Vec<(f64, f64)>, BenchError> {
    let builder = Db::builder(directory).plan(plan.clone()).durability(Durability::Buffered);
    let db = builder.expected_items(expected).open()?;
    let items = db.keyspace("items")?;
    let mut points = Vec::new();
    let mut loaded = 0;
    for &size in sizes {
        put(&items, loaded..size / 2, seed)?;
        db.wait_idle()?;
        let from = loaded.max(size / 2);
        let before = bytes_written(&db.stats());
        put(&items, from..size, seed)?;
        db.wait_idle()?;
        let written = bytes_written(&db.stats()) - before;
        points.push((size as f64, written as f64 / ((size - from) as f64 * ITEM_BYTES)));
        loaded = size;
    }
    drop(items);
    db.close()?;
    Ok(points)
}

fn put(items: &Keyspace, numbers: std::ops::Range<u64>, seed: u64) -> Result<(), BenchError> {
    for number in numbers {
        let number = mix(number ^ seed << 48);
        let mut key = [0; ITEM_BYTES as usize - VALUE_BYTES];
        key[..8].copy_from_slice(&number.to_le_bytes());
        let value = u128::from(mix(number)).to_le_bytes();
        items.insert(key, value)?;
    }
    Ok(())
}
