//! A queue of 100,000 items: one is put at the tail, then the head is found, checked and removed.

use alluvium_bench::{BenchError, WorkDirectories};

use super::super::Options;
use super::super::contest::{Contest, Opened};
use super::super::engine::Settings;
use super::super::items::{is_value, missing, queue_key, set_value, value_of, wrong};
use super::super::row::Row;
use super::super::tally::Tally;
use super::VALUE_BYTES;

const WIDTH_MAX: u64 = 100_000;
/// Target in thousands of pairs per second.
const PAIRS: f64 = 240.0;

pub fn run(options: &Options, directories: &WorkDirectories) -> Result<Vec<Row>, BenchError> {
    let width = options.items.min(WIDTH_MAX);
    let settings = Settings::new(options.memory, VALUE_BYTES);
    let contest = Contest::open(options, directories, "queue", |_| true, &settings)?;
    contest.fill(width, |number| (queue_key(number), value_of(number, VALUE_BYTES)))?;
    let pairs = |finds_first: bool| {
        contest.by_turns("queues", |opened, _, tally| turn(options, opened, width, finds_first, tally))
    };
    let by_order = Row::of_rates(format!("queue of {width}: push and pop"), &pairs(true)?)
        .with_target("≥ 240", |cell| cell.figure >= PAIRS);
    let by_count = Row::of_rates("queue, all pop by the head's key", &pairs(false)?)
        .with_target("≥ 240", |cell| cell.figure >= PAIRS);
    contest.close()?;
    Ok(vec![by_order, by_count])
}

fn turn(
    options: &Options,
    opened: &Opened,
    width: u64,
    finds_first: bool,
    tally: &mut Tally,
) -> Result<(), BenchError> {
    let engine = &*opened.engine;
    let mut value = vec![0; VALUE_BYTES];
    let pair = || {
        let head = opened.next_change();
        set_value(&mut value, head + width);
        engine.put(&queue_key(head + width), &value)?;
        let (key, mut is_right) = (queue_key(head), false);
        let mut look = |value: &[u8]| is_right = is_value(value, head, VALUE_BYTES);
        let is_found =
            if finds_first { engine.take_head(&key, &mut look) } else { engine.take(&key, &mut look) }?;
        match (is_found, is_right) {
            (true, true) => Ok(()),
            (true, false) => Err(wrong(head)),
            (false, _) => Err(missing(head)),
        }
    };
    options.turn().write(engine, pair, tally)
}
