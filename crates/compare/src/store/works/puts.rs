//! Single puts of one thread while an engine is loaded: the rate, and the slowest.

use std::time::Instant;

use alluvium_bench::latencies::Latencies;
use alluvium_bench::random::Random;
use alluvium_bench::{BenchError, WorkDirectories};

use super::super::Options;
use super::super::contest::{Contest, Opened};
use super::super::engine::Settings;
use super::super::items::{key_of, set_value};
use super::super::request::get_present;
use super::super::row::{Cell, Row, Target, Unit};
use super::VALUE_BYTES;

/// Puts for each of --items, so that merges happen meanwhile, up to this number of puts.
const PUTS_PER_ITEM: u64 = 10;
const PUTS_MAX: u64 = 2_000_000;
/// Number of items read back afterwards.
const VERIFIED: u64 = 10_000;
/// Target in microseconds.
const P999: f64 = 100.0;

pub fn run(options: &Options, directories: &WorkDirectories) -> Result<Vec<Row>, BenchError> {
    let puts = options.items.max((PUTS_PER_ITEM * options.items).min(PUTS_MAX));
    let settings = Settings::new(options.memory, VALUE_BYTES);
    let contest = Contest::open(options, directories, "puts", |_| true, &settings)?;
    let loads = contest.each("loads", |opened| load(opened, puts, options.seed))?;
    contest.close()?;
    let rates = loads.iter().map(|(kind, load)| (*kind, Cell::plain(load.rate / 1e3))).collect();
    let slowest = loads.iter().map(|(kind, load)| {
        let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|quantile| load.latencies.quantile_us(quantile));
        (*kind, Cell::plain(p999).with_note(format!("p50 {p50:.1}, p99 {p99:.1}")))
    });
    let slowest = slowest.collect();
    let p999 = Target::of("≤ 100", &slowest, |cell| cell.figure <= P999);
    let best = Target::best(Unit::KiloOperations, &rates);
    Ok(vec![
        Row { name: format!("{puts} puts"), unit: Unit::KiloOperations, cells: rates, target: best },
        Row { name: "p999 of these puts".to_owned(), unit: Unit::Microseconds, cells: slowest, target: p999 },
    ])
}

struct Load {
    /// Puts per second.
    rate: f64,
    latencies: Latencies,
}

fn load(opened: &Opened, puts: u64, seed: u64) -> Result<Load, BenchError> {
    let engine = &*opened.engine;
    let (mut latencies, mut value) = (Latencies::default(), vec![0; VALUE_BYTES]);
    let start = Instant::now();
    for number in 0..puts {
        set_value(&mut value, number);
        let key = key_of(number);
        let begun = Instant::now();
        engine.put(&key, &value)?;
        latencies.record(begun.elapsed());
    }
    let rate = puts as f64 / start.elapsed().as_secs_f64();
    engine.settle()?;
    let (mut reader, mut random) = (engine.reader()?, Random::new(seed, 0));
    for _ in 0..VERIFIED.min(puts) {
        let number = random.below(puts);
        get_present(&mut *reader, (number, key_of(number)), VALUE_BYTES, false)?;
    }
    Ok(Load { rate, latencies })
}
