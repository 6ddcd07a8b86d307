//! One key overwritten a million times: the rate, and what is on disk when all has settled.

use std::time::Instant;

use alluvium_bench::device::allocated_bytes;
use alluvium_bench::{BenchError, WorkDirectories};

use super::super::Options;
use super::super::contest::{Contest, Opened};
use super::super::engine::Settings;
use super::super::items::{is_value, key_of, missing, set_value, wrong};
use super::super::row::{Cell, Row, Target, Unit};
use super::VALUE_BYTES;

/// Overwrites for each of --items, up to this number.
const PUTS_PER_ITEM: u64 = 10;
const PUTS_MAX: u64 = 1_000_000;
/// Target in megabytes.
const DISK: f64 = 10.0;

pub fn run(options: &Options, directories: &WorkDirectories) -> Result<Vec<Row>, BenchError> {
    let puts = (PUTS_PER_ITEM * options.items).min(PUTS_MAX);
    let settings = Settings::new(options.memory, VALUE_BYTES);
    let contest = Contest::open(options, directories, "hot-key", |_| true, &settings)?;
    let outcomes = contest.each("overwrites a key", |opened| overwrite(opened, puts))?;
    contest.close()?;
    let rates = outcomes.iter().map(|(kind, (rate, _))| (*kind, Cell::plain(rate / 1e3))).collect();
    let disk = outcomes.iter().map(|(kind, (_, bytes))| (*kind, Cell::plain(*bytes as f64 / 1e6))).collect();
    let best = Target::best(Unit::KiloOperations, &rates);
    let little = Target::of("≤ 10", &disk, |cell| cell.figure <= DISK);
    Ok(vec![
        Row {
            name: format!("one key put {puts} times"),
            unit: Unit::KiloOperations,
            cells: rates,
            target: best,
        },
        Row { name: "disk after that".to_owned(), unit: Unit::Megabytes, cells: disk, target: little },
    ])
}

/// Overwrites per second, and bytes of disk afterwards.
fn overwrite(opened: &Opened, puts: u64) -> Result<(f64, u64), BenchError> {
    let (engine, key) = (&*opened.engine, key_of(0));
    let mut value = vec![0; VALUE_BYTES];
    let start = Instant::now();
    for number in 0..puts {
        set_value(&mut value, number);
        engine.put(&key, &value)?;
    }
    let rate = puts as f64 / start.elapsed().as_secs_f64();
    engine.settle()?;
    let (last, mut is_right) = (puts - 1, false);
    if !engine.reader()?.get(&key, &mut |value| is_right = is_value(value, last, VALUE_BYTES))? {
        return Err(missing(last));
    }
    if !is_right {
        return Err(wrong(last));
    }
    Ok((rate, allocated_bytes(opened.directory.path())))
}
