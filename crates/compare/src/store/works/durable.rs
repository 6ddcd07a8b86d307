//! Single puts of one thread, each of which returns when it is on the device.

use alluvium_bench::{BenchError, WorkDirectories};

use super::super::Options;
use super::super::contest::Contest;
use super::super::engine::Settings;
use super::super::items::{key_of, set_value};
use super::super::request::get_present;
use super::super::row::{Row, Target};
use super::super::turn::Turn;
use super::VALUE_BYTES;

pub fn run(options: &Options, directories: &WorkDirectories) -> Result<Vec<Row>, BenchError> {
    let settings = Settings { is_durable: true, ..Settings::new(options.memory, VALUE_BYTES) };
    let contest = Contest::open(options, directories, "durable", |_| true, &settings)?;
    let turn = Turn { threads: 1, is_timed: true, ..options.turn() };
    let tallies = contest.by_turns("puts durably", |opened, _, tally| {
        let mut value = vec![0; VALUE_BYTES];
        let put = || {
            let number = opened.next_change();
            set_value(&mut value, number);
            opened.engine.put(&key_of(number), &value)
        };
        turn.write(&*opened.engine, put, tally)
    })?;
    contest.each("verifies", |opened| {
        let mut reader = opened.engine.reader()?;
        (0..opened.next_change())
            .try_for_each(|number| get_present(&mut *reader, (number, key_of(number)), VALUE_BYTES, false))
    })?;
    contest.close()?;
    let mut row = Row::of_rates("durable puts, 1 thread", &tallies);
    for ((_, cell), (_, tally)) in row.cells.iter_mut().zip(&tallies) {
        cell.note = format!("p50 {:.0} µs", tally.latencies.quantile_us(0.5));
    }
    row.target = Target::best(row.unit, &row.cells);
    Ok(vec![row])
}
