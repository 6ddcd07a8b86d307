//! Alluvium compared with other stores where users look first: one table of works and engines.
//!
//! All engines of a work are filled with the same items and settled. Then they take turns, so that other activity of
//! the machine affects all of them alike. Every value is verified. [`NOTES`] says what is equal and what is not.

mod contest;
mod engine;
#[cfg(feature = "stores")]
mod fjall;
mod items;
mod kind;
#[cfg(feature = "stores")]
mod lmdb;
mod ours;
mod raw;
#[cfg(feature = "stores")]
mod redb;
mod request;
#[cfg(feature = "rocksdb")]
mod rocks;
mod row;
mod table;
mod tally;
mod turn;
mod works;

use std::path::PathBuf;
use std::time::Duration;

use alluvium_base::units::parse_bytes;
use alluvium_bench::work_directory::default_parent;
use alluvium_bench::{BenchError, Measurement, Report};
use clap::ValueEnum as _;

use kind::Kind;
use row::Row;
use turn::Turn;
use works::Work;

/// Options of `alluvium-compare store`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Items in each engine; other numbers, of large values for instance, follow from it
    #[arg(long, default_value_t = 300_000)]
    items: u64,
    /// Works, separated by commas; by default all
    #[arg(long, value_enum, value_delimiter = ',')]
    works: Vec<Work>,
    /// Engines, separated by commas; by default all that were built in
    #[arg(long, value_enum, value_delimiter = ',')]
    engines: Vec<Kind>,
    /// Number of rounds in which the engines take turns; medians are printed
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of a turn
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// Threads of works that have many
    #[arg(long, default_value_t = 8)]
    threads: usize,
    /// Alluvium's memory limit, and the block cache of each peer that has one
    #[arg(long, default_value = "256MiB", value_parser = parse_bytes)]
    memory: u64,
    /// Directory for the stores, which get a subdirectory `alluvium-compare-store`. The default is Cargo's `target` if
    /// the current directory has one, else the system's temporary directory
    #[arg(long, default_value_os_t = default_parent())]
    directory: PathBuf,
    /// Print one JSON object per line instead of a table
    #[arg(long)]
    json: bool,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

const SUBDIRECTORY: &str = "alluvium-compare-store";

/// Printed below the table.
const NOTES: &str = "
In brackets: r = read requests for one operation, which Alluvium counts; KiB = bytes that the process read from devices
for one operation (/proc/self/io), for all engines. Medians of the rounds; all engines take turns.
Equal: items, their order, --memory as Alluvium's limit for everything and as the block cache alone of RocksDB, fjall
and redb. No compression.
* reads through the page cache, which no setting of the engine bounds: with data smaller than the machine's memory it
reads no device at all. LMDB has no other cache. To hold such an engine to its memory, run it alone (--engines) in a
control group (systemd-run --scope -p MemoryMax=...). RocksDB and Alluvium bypass the page cache for reads.
Readers of LMDB and redb keep one transaction for all gets of a turn. RocksDB, fjall, LMDB and redb lend their values;
Alluvium copies, except where get_with is named.
Without sync: a put of Alluvium (Durability::Process), RocksDB, fjall and LMDB is in the page cache when it returns
(LMDB may lose the whole file in a power cut), a put of redb (Durability::None) in the memory of the process.
";

impl Options {
    /// The directory of the engines' directories.
    fn parent(&self) -> PathBuf {
        self.directory.join(SUBDIRECTORY)
    }

    /// A turn of many threads.
    fn turn(&self) -> Turn {
        let duration = Duration::from_secs_f64(self.seconds);
        Turn { threads: self.threads, duration, is_timed: false }
    }

    fn check(mut self) -> Result<Self, BenchError> {
        if self.items == 0 || self.threads == 0 || self.rounds == 0 {
            return Err(BenchError::Usage("--items, --threads and --rounds are at least 1".to_owned()));
        }
        if !(0.0..=3_600.0).contains(&self.seconds) {
            return Err(BenchError::Usage("--seconds is 0 to 3,600".to_owned()));
        }
        if self.works.is_empty() {
            self.works = Work::value_variants().to_vec();
        }
        if self.engines.is_empty() {
            self.engines = Kind::value_variants().to_vec();
        }
        Ok(self)
    }
}

/// Lets the engines do all works, and prints the table: after a failure, of what was done until then.
///
/// # Errors
/// [`BenchError`]: the first wrong answer, or another failure.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let options = options.clone().check()?;
    let mut report = Report::new(options.json);
    let directories = report.directories().clone();
    let (mut rows, mut outcome) = (Vec::new(), Ok(()));
    for work in &options.works {
        match work.run(&options, &directories) {
            Ok(more) => rows.extend(more),
            Err(error) => {
                outcome = Err(error);
                break;
            }
        }
    }
    // Nothing is left there except after a failure.
    let removed = directories.remove_all();
    if options.json {
        rows.iter().flat_map(measurements).try_for_each(|measurement| report.add(measurement))?;
    } else if !rows.is_empty() {
        print!("{}{NOTES}", table::text(&rows, &options.engines));
    }
    outcome?;
    removed?;
    Ok(())
}

fn measurements(row: &Row) -> impl Iterator<Item = Measurement> + '_ {
    row.cells.iter().map(|(kind, cell)| {
        Measurement::new("compare_store", kind.name())
            .config("work", row.name.as_str())
            .config("unit", row.unit.name())
            .metric("figure", cell.figure)
            .metric("read_requests_per_op", cell.reads)
            .metric("device_read_bytes_per_op", cell.read_bytes)
            .metric("note", cell.note.as_str())
            .metric("target", row.target.text.as_str())
            .metric("target_is_met", row.target.is_met)
    })
}

#[cfg(all(test, feature = "stores"))]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn every_engine_does_every_work() {
        let directory = tempfile::tempdir().unwrap();
        let text = "compare --items 1000 --rounds 1 --seconds 0.01 --threads 2 --memory 8MiB --directory";
        let mut words: Vec<_> = text.split(' ').map(std::ffi::OsString::from).collect();
        words.push(directory.path().into());
        let options = Command::try_parse_from(words).unwrap_or_else(|error| panic!("{error}")).options;
        let options = options.check().unwrap();
        let report = Report::new(false);
        for work in &options.works {
            let rows = work.run(&options, report.directories()).unwrap();
            for row in &rows {
                let is_measured = |kind: &Kind| {
                    let cell = row.cells.iter().find(|(other, _)| other == kind);
                    cell.is_some_and(|(_, cell)| cell.figure.is_finite())
                };
                assert!(options.engines.iter().all(is_measured), "{}", row.verdict());
            }
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "all is removed");
    }
}
