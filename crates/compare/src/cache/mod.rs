//! Rates and memory of caches: the same requests to each, by turns, every value verified.
//!
//! All caches of a shape are loaded side by side in one process, and take turns within each round, so that whatever
//! else the machine does hits all of them alike. Each shape has a process of its own: what an allocator kept of the
//! shape before would be missing in what a cache takes. Keys are arrays; so are values of 8 and 64 bytes, which costs
//! the others least, and larger values are shared, as their gets return copies. All have room for every item.

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
    /// Which items: 8+8, 16+64, 128+1024 bytes, or all three
    #[arg(long, value_enum, default_value = "all", overrides_with = "shape")]
    shape: Shape,
    /// Items in each cache; by default 16 million tiny, 4 million small, 1 million large ones
    #[arg(long)]
    items: Option<u64>,
    /// Threads; by default 1, then 2
    #[arg(long)]
    threads: Option<usize>,
    /// Requests of each thread in each round, beside half as many that warm the processor's caches up
    #[arg(long, default_value_t = 2_000_000)]
    requests: usize,
    /// Rounds, of which medians are printed
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Print one JSON object a line instead of a table
    #[arg(long)]
    json: bool,
    /// Seed of all randomness
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs all shapes asked for.
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

/// Runs one of several shapes as this program was asked to, in a process of its own.
fn run_apart(case: &Case) -> Result<(), BenchError> {
    let status = Command::new(env::current_exe()?)
        .args(env::args_os().skip(1))
        .args(["--shape", case.name])
        .status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{}: {status}", case.name)).into()) }
}

fn cases(options: &Options) -> Vec<Case> {
    // The benchmark's own defaults, whatever they are.
    #[derive(Parser)]
    struct Defaults {
        #[command(flatten)]
        options: CacheOptions,
    }
    let defaults = Defaults::parse_from(["compare"]).options;
    CacheOptions { shape: options.shape, items: options.items, ..defaults }.cases()
}
