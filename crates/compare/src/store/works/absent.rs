//! Gets of absent keys: each asked for once, and some asked for again and again.

use alluvium::Workload;
use alluvium_bench::random::Random;
use alluvium_bench::{BenchError, WorkDirectories};

use super::super::Options;
use super::super::contest::{Contest, Opened, Results};
use super::super::engine::Settings;
use super::super::items::{key_of, value_of};
use super::super::kind::Kind;
use super::super::request::get_absent;
use super::super::row::Row;
use super::super::tally::Tally;
use super::super::turn::Step;
use super::VALUE_BYTES;

/// What Alluvium is told in one of the rows: half of the keys asked for are new, and this memory may find an item.
const WORKLOAD: Workload = Workload {
    gets: 0.5,
    absent_gets: 0.5,
    puts: 0.5,
    removals: 0.0,
    skew: 0.0,
    key_bytes: 16.0,
    value_bytes: VALUE_BYTES as f64,
};
const INDEX_BYTES_PER_ITEM: f64 = 2.5;

/// Number of keys that are asked for again and again.
const REPEATED: u64 = 1_000;
/// Targets: thousands per second, and reads of a get.
const GETS: f64 = 1_500.0;
const READS: f64 = 0.01;
const READS_REPEATED: f64 = 0.001;

pub fn run(options: &Options, directories: &WorkDirectories) -> Result<Vec<Row>, BenchError> {
    let settings = Settings::new(options.memory, VALUE_BYTES);
    let contest = filled(options, directories, |_| true, &settings)?;
    let by_default = once(&contest)?;
    let again = contest.by_turns("gets of 1,000 absent keys", |opened, round, tally| {
        again_and_again(options, opened, round, tally)
    })?;
    contest.close()?;

    let settings = Settings { workload: Some((WORKLOAD, INDEX_BYTES_PER_ITEM)), ..settings };
    let contest = filled(options, directories, |kind| kind == Kind::Alluvium, &settings)?;
    let told = once(&contest)?;
    contest.close()?;

    let name = |what: &str| format!("absent keys{what}, {} threads", options.threads);
    let by_default_row = Row::of_rates(name(""), &by_default);
    let peers = by_default.into_iter().filter(|(kind, _)| *kind != Kind::Alluvium);
    let told = Row::of_rates(name(", Alluvium with 2.5 B/item"), &told.into_iter().chain(peers).collect())
        .with_target("≥ 1,500 at ≤ 0.01 r", |cell| {
            cell.figure >= GETS && cell.reads.is_some_and(|reads| reads <= READS)
        });
    let again = Row::of_rates(name(" asked for again"), &again)
        .with_target("0 r", |cell| cell.reads.is_some_and(|reads| reads <= READS_REPEATED));
    Ok(vec![by_default_row, told, again])
}

fn filled<'a>(
    options: &'a Options,
    directories: &WorkDirectories,
    kinds: impl Fn(Kind) -> bool,
    settings: &Settings,
) -> Result<Contest<'a>, BenchError> {
    let contest = Contest::open(options, directories, "absent", kinds, settings)?;
    contest.fill(options.items, |number| (key_of(number), value_of(number, VALUE_BYTES)))?;
    Ok(contest)
}

/// Gets of absent keys, none of which was asked for before.
fn once(contest: &Contest<'_>) -> Result<Results<Tally>, BenchError> {
    let options = contest.options;
    contest.by_turns("gets of absent keys", |opened, round, tally| {
        let step_of = |thread: usize| -> Result<Step<'_>, BenchError> {
            // A stretch of numbers for each thread and round, above those of the items and of the repeated keys.
            let mut number = (1 << 60) | round << 48 | (thread as u64) << 36;
            Ok(Box::new(move |reader| {
                number += 1;
                get_absent(reader, number)
            }))
        };
        options.turn().read(&*opened.engine, step_of, tally)
    })
}

fn again_and_again(
    options: &Options,
    opened: &Opened,
    round: u64,
    tally: &mut Tally,
) -> Result<(), BenchError> {
    if round == 0 {
        let mut reader = opened.engine.reader()?;
        (0..REPEATED).try_for_each(|absent| get_absent(&mut *reader, options.items + absent))?;
    }
    let step_of = |thread: usize| -> Result<Step<'_>, BenchError> {
        let mut random = Random::new(options.seed + round, thread as u64);
        Ok(Box::new(move |reader| get_absent(reader, options.items + random.below(REPEATED))))
    };
    options.turn().read(&*opened.engine, step_of, tally)
}
