//! Gets of items that are all in memory: every item was read once before.

use alluvium_bench::{BenchError, WorkDirectories};

use super::super::Options;
use super::super::contest::Contest;
use super::super::engine::Settings;
use super::super::items::{key_of, value_of};
use super::super::request::UniformGets;
use super::super::row::{Row, ours};
use super::super::turn::Turn;
use super::VALUE_BYTES;

/// Targets in thousands per second.
const GETS: f64 = 1_000.0;
const LENT: f64 = 1_500.0;
/// Target of many threads, relative to one.
const THREADS: f64 = 1.5;

pub fn run(options: &Options, directories: &WorkDirectories) -> Result<Vec<Row>, BenchError> {
    let settings = Settings::new(options.memory, VALUE_BYTES);
    let contest = Contest::open(options, directories, "memory", |_| true, &settings)?;
    contest.fill(options.items, |number| (key_of(number), value_of(number, VALUE_BYTES)))?;
    let copied = UniformGets { items: options.items, value_bytes: VALUE_BYTES, is_lent: false };
    contest.warm(options.items, |reader, number| copied.get(reader, number))?;
    let gets = |what: &str, turn: Turn, is_lent: bool| {
        let gets = UniformGets { is_lent, ..copied };
        contest.by_turns(what, |opened, round, tally| {
            turn.read(&*opened.engine, |thread| Ok(gets.step(options.seed + round, thread)), tally)
        })
    };
    let (many, one) = (options.turn(), Turn { threads: 1, ..options.turn() });
    let alone = Row::of_rates("gets in memory, 1 thread", &gets("gets, 1 thread", one, false)?)
        .with_target("≥ 1,000", |cell| cell.figure >= GETS);
    let lent = Row::of_rates("gets in memory by get_with, 1 thread", &gets("gets by get_with", one, true)?)
        .with_target("≥ 1,500", |cell| cell.figure >= LENT);
    let least = THREADS * ours(&alone.cells).map_or(f64::NAN, |cell| cell.figure);
    let together = gets("gets, many threads", many, false)?;
    let together = Row::of_rates(format!("gets in memory, {} threads", options.threads), &together)
        .with_target(format!("≥ {least:.0}: 1.5 × one thread"), |cell| cell.figure >= least);
    contest.close()?;
    Ok(vec![alone, lent, together])
}
