//! Rates and memory of caches: the same requests to each in turn, every value verified.
//!
//! All caches of a shape are loaded in one process, and take turns within each round, so that other activity of the
//! machine affects all of them alike. Each shape has a process of its own: memory that an allocator kept from the
//! previous shape would otherwise be missing from a cache's memory. Keys are arrays; so are values of 8 and 64 bytes,
//! which is cheapest for the others. Larger values are shared, since gets of the others return copies. All have room
//! for every item.

mod contest;
mod ours;
mod peers;
mod subject;

use std::env;
use std::io;
use std::process::Command;
use std::sync::Arc;

use alluvium_bench::cache::options::{CacheOptions, Case, Shape};
use alluvium_bench::{BenchError, Report};
use clap::Parser;

/// Options of `alluvium-compare cache`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Sizes of items: 8+8, 16+64, 128+1024 bytes, or all three
    #[arg(long, value_enum, default_value = "all", overrides_with = "shape")]
    shape: Shape,
    /// Items in each cache; by default 16 million tiny, 4 million small, 1 million large ones
    #[arg(long)]
    items: Option<u64>,
    /// Threads; by default 1, then 2
    #[arg(long)]
    threads: Option<usize>,
    /// Requests of each thread in each round, in addition to half as many that warm up the processor's caches
    #[arg(long, default_value_t = 2_000_000)]
    requests: usize,
    /// Number of rounds; medians are printed
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Print one JSON object per line instead of a table
    #[arg(long)]
    json: bool,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs all requested shapes.
///
/// # Errors
/// [`BenchError`]: the first wrong answer.
pub fn run(options: &Options) -> Result<(), BenchError> {
    let cases = cases(options);
    let [case] = *cases else { return cases.iter().try_for_each(run_apart) };
    let mut report = Report::new(options.json);
    let outcome = match case.name {
        "tiny" => contest::run::<8, [u8; 8]>(options, case, &mut report),
        "small" => contest::run::<16, [u8; 64]>(options, case, &mut report),
        _ => contest::run::<128, Arc<[u8]>>(options, case, &mut report),
    };
    report.finish()?;
    outcome
}

/// Runs one of several shapes with this program's own arguments, in a separate process.
fn run_apart(case: &Case) -> Result<(), BenchError> {
    let status = Command::new(env::current_exe()?)
        .args(env::args_os().skip(1))
        .args(["--shape", case.name])
        .status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{}: {status}", case.name)).into()) }
}

fn cases(options: &Options) -> Vec<Case> {
    // The benchmark's own defaults, so that they stay the same.
    #[derive(Parser)]
    struct Defaults {
        #[command(flatten)]
        options: CacheOptions,
    }
    let defaults = Defaults::parse_from(["compare"]).options;
    CacheOptions { shape: options.shape, items: options.items, ..defaults }.cases()
}
