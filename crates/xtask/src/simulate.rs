//! `cargo xtask simulate`: many seeds of the engine's simulation, side by side.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use alluvium::simulation;

/// Which seeds to run.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// How many seeds
    #[arg(long, default_value_t = 100)]
    pub seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    pub start: u64,
    /// Break the engine on purpose in the named way: the run then passes when a seed finds it
    #[arg(long, value_name = "NAME")]
    pub planted_bug: Option<String>,
    /// Threads; all cores by default
    #[arg(long)]
    pub threads: Option<usize>,
}

impl Options {
    /// What CI runs.
    pub fn smoke() -> Self {
        Self { seeds: 100, start: 0, planted_bug: None, threads: None }
    }
}

/// Runs the seeds; fails with the lowest failing seed among those that ran and how to replay it.
pub fn run(options: &Options) -> Result<(), String> {
    let threads =
        options.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)).max(1);
    let end = options.start.checked_add(options.seeds).ok_or("the last seed is beyond 2^64")?;
    let next = AtomicU64::new(options.start);
    let done = AtomicU64::new(0);
    let failure: Mutex<Option<(u64, String)>> = Mutex::new(None);
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    if let Err(reason) = run_seed(seed, options) {
                        // No new seeds after a failure; those in progress finish, so the lowest failing seed wins.
                        next.fetch_max(end, Ordering::Relaxed);
                        let mut failure = failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                        if failure.as_ref().is_none_or(|(lowest, _)| seed < *lowest) {
                            *failure = Some((seed, reason));
                        }
                        return;
                    }
                    report_progress(done.fetch_add(1, Ordering::Relaxed) + 1, options.seeds);
                }
            });
        }
    });
    let seeds_done = done.into_inner();
    let failure = failure.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    verdict(options, seeds_done, failure)?;
    println!("simulate: {seeds_done} seeds done in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

fn verdict(options: &Options, seeds_done: u64, failure: Option<(u64, String)>) -> Result<(), String> {
    match (&options.planted_bug, failure) {
        (None, None) => Ok(()),
        (None, Some((seed, reason))) => Err(format!(
            "seed {seed} failed: {reason}\nreplay: cargo xtask simulate --start {seed} --seeds 1"
        )),
        (Some(name), Some((seed, reason))) => {
            println!("simulate: planted bug {name:?} found by seed {seed}: {reason}");
            Ok(())
        }
        (Some(name), None) => Err(format!("planted bug {name:?} escaped {seeds_done} seeds")),
    }
}

fn run_seed(seed: u64, options: &Options) -> Result<(), String> {
    let options = simulation::Options { planted_bug: options.planted_bug.clone(), ..Default::default() };
    match std::panic::catch_unwind(|| simulation::run(seed, &options)) {
        Ok(Ok(_summary)) => Ok(()),
        Ok(Err(failure)) => Err(failure.to_string()),
        Err(_) => Err("it panicked (message above)".to_owned()),
    }
}

fn report_progress(done: u64, seeds: u64) {
    if done.is_multiple_of(50) && std::io::stderr().is_terminal() {
        eprint!("\r{done} of {seeds} seeds");
        if done == seeds {
            eprintln!();
        }
    }
}
