//! Gets of values of 4 KiB and of 1 MiB: twice as many bytes as the memory, if --items are enough.

use alluvium_bench::{BenchError, WorkDirectories};

use super::super::Options;
use super::super::contest::{Contest, Results};
use super::super::engine::Settings;
use super::super::items::{key_of, value_of};
use super::super::raw::Raw;
use super::super::request::UniformGets;
use super::super::row::{Cell, Row, Target, Unit};
use super::super::tally::Tally;
use super::super::turn::Turn;

const SMALL_BYTES: usize = 4 << 10;
const LARGE_BYTES: usize = 1 << 20;
/// Bytes of values for each of --items, if that is less than twice the memory.
const BYTES_PER_ITEM: u64 = 2 << 10;
/// Targets: reads of a get, with what is left of 0.5 % of false positives, and the share of the device's rate.
const READS: f64 = 1.005;
const DEVICE_SHARE: f64 = 0.9;

pub fn run(options: &Options, directories: &WorkDirectories) -> Result<Vec<Row>, BenchError> {
    let (small, _) = gets(options, directories, SMALL_BYTES)?;
    let name = |size: &str| format!("values of {size}, {} threads", options.threads);
    let small_cells =
        small.iter().map(|(kind, tally)| (*kind, with_median(Cell::rate(tally), tally))).collect();
    let target = Target::of("≤ 1.0 r", &small_cells, |cell| cell.reads.is_some_and(|reads| reads <= READS));
    let unit = Unit::KiloOperations;
    let small = Row { name: name("4 KiB"), unit, cells: small_cells, target };

    let (large, device) = gets(options, directories, LARGE_BYTES)?;
    let large_cells = large.iter().map(|(kind, tally)| {
        let megabytes = tally.rate() * LARGE_BYTES as f64 / 1e6;
        (*kind, with_median(Cell { figure: megabytes, ..Cell::rate(tally) }, tally))
    });
    let large_cells = large_cells.collect();
    let least = DEVICE_SHARE * device / 1e6;
    let target = format!("≥ {least:.0}: 0.9 × device");
    let target = Target::of(target, &large_cells, |cell| cell.figure >= least);
    let large = Row { name: name("1 MiB"), unit: Unit::MegabytesPerSecond, cells: large_cells, target };
    Ok(vec![small, large])
}

fn with_median(cell: Cell, tally: &Tally) -> Cell {
    let p50 = tally.latencies.quantile_us(0.5);
    cell.with_note(format!("p50 {p50:.0} µs"))
}

/// The tallies, and the bytes per second of the device itself for reads of that size.
fn gets(
    options: &Options,
    directories: &WorkDirectories,
    value_bytes: usize,
) -> Result<(Results<Tally>, f64), BenchError> {
    let bytes = (2 * options.memory).min(options.items * BYTES_PER_ITEM);
    let items = (bytes / value_bytes as u64).max(options.threads as u64);
    let directory = directories.create(&options.parent(), "raw")?;
    let raw = Raw::create(directory.path(), items * value_bytes as u64)?;
    let turn = Turn { is_timed: true, ..options.turn() };
    let device_before = raw.bytes_per_s(value_bytes, options.threads, turn.duration)?;

    let settings = Settings::new(options.memory, value_bytes);
    let contest = Contest::open(options, directories, "values", |_| true, &settings)?;
    contest.fill(items, |number| (key_of(number), value_of(number, value_bytes)))?;
    let gets = UniformGets { items, value_bytes, is_lent: false };
    contest.warm(items, |reader, number| gets.get(reader, number))?;
    let tallies = contest.by_turns("gets of large values", |opened, round, tally| {
        turn.read(&*opened.engine, |thread| Ok(gets.step(options.seed + round, thread)), tally)
    })?;
    contest.close()?;

    let device_after = raw.bytes_per_s(value_bytes, options.threads, turn.duration)?;
    drop(raw);
    directory.remove()?;
    Ok((tallies, (device_before + device_after) / 2.0))
}
