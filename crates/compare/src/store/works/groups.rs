//! Scans of groups of ten items with a common prefix, which were put in an order in which groups take turns.

use alluvium_bench::random::Random;
use alluvium_bench::{BenchError, WorkDirectories};

use super::super::Options;
use super::super::contest::Contest;
use super::super::engine::Settings;
use super::super::items::{GROUP_ITEMS, PREFIX_BYTES, group_key, value_of};
use super::super::request::scan_group;
use super::super::row::Row;
use super::super::turn::Step;
use super::VALUE_BYTES;

pub fn run(options: &Options, directories: &WorkDirectories) -> Result<Vec<Row>, BenchError> {
    let groups = options.items.div_ceil(GROUP_ITEMS);
    let memory = Settings::new(options.memory, VALUE_BYTES);
    let settings = Settings { prefix_bytes: Some(PREFIX_BYTES), ..memory };
    let contest = Contest::open(options, directories, "groups", |_| true, &settings)?;
    contest.fill(groups * GROUP_ITEMS, |place| {
        let number = place % groups * GROUP_ITEMS + place / groups;
        (group_key(number), value_of(number, VALUE_BYTES))
    })?;
    contest.warm(groups, |reader, group| scan_group(reader, group, VALUE_BYTES))?;
    let tallies = contest.by_turns("scans of groups", |opened, round, tally| {
        let step_of = |thread: usize| -> Result<Step<'_>, BenchError> {
            let mut random = Random::new(options.seed + round, thread as u64);
            Ok(Box::new(move |reader| scan_group(reader, random.below(groups), VALUE_BYTES)))
        };
        options.turn().read(&*opened.engine, step_of, tally)
    })?;
    contest.close()?;
    let mut row = Row::of_rates(format!("scans of groups of 10, {} threads", options.threads), &tallies);
    // Alluvium counts the requests of gets only.
    row.cells.iter_mut().for_each(|(_, cell)| cell.reads = None);
    Ok(vec![with_target(row)])
}

/// RocksDB's rate is the target.
fn with_target(row: Row) -> Row {
    #[cfg(feature = "rocksdb")]
    if let Some((_, rocks)) = row.cells.iter().find(|(kind, _)| *kind == super::super::kind::Kind::Rocksdb) {
        let least = rocks.figure;
        return row.with_target("≥ RocksDB", |cell| cell.figure >= least);
    }
    let is_met = None;
    Row { target: super::super::row::Target { text: "≥ RocksDB".to_owned(), is_met }, ..row }
}
