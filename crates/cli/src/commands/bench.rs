//! `alluvium bench`: the command-line interface of the crate `alluvium-bench`.

use std::io::IsTerminal as _;

use alluvium_bench::WorkDirectories;
use alluvium_bench::cache::{self, CacheOptions};
use alluvium_bench::crash_writer::{self, CrashWriterOptions};
use alluvium_bench::dedup::{self, DedupOptions};
use alluvium_bench::durability::{self, DurabilityOptions};
use alluvium_bench::graph::{self, GraphOptions};
use alluvium_bench::hot_key::{self, HotKeyOptions};
use alluvium_bench::index::IndexConfig;
use alluvium_bench::large::{self, LargeOptions};
use alluvium_bench::metadata::{self, MetadataOptions};
use alluvium_bench::queue::{self, QueueOptions};
use alluvium_bench::server::{self, ServerBenchOptions};
use alluvium_bench::store::{self, StoreOptions};
use alluvium_bench::udp::{self, UdpOptions};
use alluvium_bench::{Report, structures};
use clap::Subcommand;

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::warn;

/// Options of `bench`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(subcommand)]
    benchmark: Benchmark,
    /// Print one JSON object per line instead of a table
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Clone, Debug, Subcommand)]
enum Benchmark {
    /// Load, read, overwrite and scan a store; every value is verified
    Store(StoreOptions),
    /// Deduplicate the files of a directory by content
    Dedup(DedupOptions),
    /// Directory entries of a real tree: create, stat, list, rename, remove; every answer is verified
    Metadata(MetadataOptions),
    /// Edges of a real graph: neighbours, lookups, searches, changes; every answer is verified
    Graph(GraphOptions),
    /// Index structures alone, in memory
    Index(IndexOptions),
    /// The memory engine: rates, memory, miss ratios; every value is verified
    Cache(CacheOptions),
    /// Items of 0 B to 64 MiB together: space, rewrites, reads; every value is verified
    Large(LargeOptions),
    /// A queue of constant length: put at its tail, get and remove at its head; every value is verified
    Queue(QueueOptions),
    /// One item overwritten again and again: the disk that its obsolete versions take
    HotKey(HotKeyOptions),
    /// Requests to a running server, also one of Redis or memcached; every value is verified
    Server(ServerBenchOptions),
    /// Requests in datagrams to a cache, and an echo beside it; every value is verified
    Udp(UdpOptions),
    /// Synced puts compared with the raw device
    Durability(DurabilityOptions),
    /// Writes until it is killed: for the test that kills it
    #[command(hide = true)]
    CrashWriter(CrashWriterOptions),
}

#[derive(Clone, Debug, clap::Args)]
struct IndexOptions {
    /// cuckoo, hash-filter, ect, ect-sparse, fences, multi-level-filter, three-level, bloom-cluster, bucketed,
    /// static-filter, slb
    /// or all
    #[arg(long, default_value = "all")]
    structure: String,
    /// Keys in total; 10 million by default, 4 million for slb
    #[arg(long)]
    keys: Option<u64>,
    /// Seed of the keys
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs the benchmark and prints its results, including those made before a failure. A signal ends the process, after
/// the directories that the benchmark has made are removed.
pub fn run(options: &Options) -> Result<(), Failure> {
    let mut report = Report::new(options.json);
    let interrupt = Interrupt::on_signals()?;
    let directories = report.directories().clone();
    interrupt.on_signal(move || end_interrupted(&directories))?;
    let outcome = match &options.benchmark {
        Benchmark::Store(options) => store::run(options, &mut report),
        Benchmark::Dedup(options) => dedup::run(options, &mut report),
        Benchmark::Metadata(options) => metadata::run(options, &mut report),
        Benchmark::Graph(options) => graph::run(options, &mut report),
        Benchmark::Index(options) => {
            let keys = options.keys.unwrap_or_else(|| structures::default_keys(&options.structure));
            let config = IndexConfig { keys, seed: options.seed };
            structures::run(&options.structure, &config, &mut report)
        }
        Benchmark::Cache(options) => cache::run(options, &mut report),
        Benchmark::Large(options) => large::run(options, &mut report),
        Benchmark::Queue(options) => queue::run(options, &mut report),
        Benchmark::HotKey(options) => hot_key::run(options, &mut report),
        Benchmark::Server(options) => server::run(options, &mut report),
        Benchmark::Udp(options) => udp::run(options, &mut report),
        Benchmark::Durability(options) => durability::run(options, &mut report),
        Benchmark::CrashWriter(options) => crash_writer::run(options),
    };
    while interrupt.is_set() {
        // The other thread ends the process; what failed here failed since the files were removed.
        std::thread::park();
    }
    report.finish()?;
    if outcome.is_err() {
        for directory in report.directories().left() {
            warn(&format!("what was written before the failure is left in {}", directory.display()));
        }
    }
    Ok(outcome?)
}

fn end_interrupted(directories: &WorkDirectories) -> ! {
    let message = match directories.remove_all() {
        Ok(removed) if removed.is_empty() => "interrupted".to_owned(),
        Ok(removed) => {
            let names: Vec<String> = removed.iter().map(|path| path.display().to_string()).collect();
            format!("interrupted; removed {}", names.join(" and "))
        }
        Err(error) => format!("interrupted; not all that was made could be removed: {error}"),
    };
    // A progress bar may fill the line.
    if std::io::stderr().is_terminal() {
        eprintln!();
    }
    let _ = Failure::Failed(message).report();
    std::process::exit(1)
}
