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
    /// Break the engine on purpose in the named way, or in `all` ways in turn: passes when a seed finds the bug
    #[arg(long, value_name = "NAME")]
    pub planted_bug: Option<String>,
    /// Threads; all cores by default
    #[arg(long)]
    pub threads: Option<usize>,
}

impl Options {
    /// What CI runs on the engine as it is.
    pub fn smoke() -> Self {
        Self { seeds: 100, start: 0, planted_bug: None, threads: None }
    }

    /// What CI runs on the engine broken on purpose: shows that the simulation would notice.
    pub fn canaries() -> Self {
        Self { seeds: 1_000, planted_bug: Some("all".to_owned()), ..Self::smoke() }
    }
}

/// Runs the seeds; fails with the lowest failing seed among those that ran and how to replay it.
pub fn run(options: &Options) -> Result<(), String> {
    match options.planted_bug.as_deref() {
        None => run_seeds(options, None),
        Some("all") => simulation::PLANTED_BUGS.iter().try_for_each(|name| run_seeds(options, Some(name))),
        Some(name) if simulation::PLANTED_BUGS.contains(&name) => run_seeds(options, Some(name)),
        Some(name) => {
            let known = simulation::PLANTED_BUGS.join(", ");
            Err(format!("no bug is named {name:?}; known: {known}, all"))
        }
    }
}

/// What the threads have done together.
#[derive(Debug, Default)]
struct Tally {
    seeds: u64,
    operations: u64,
    crashes: u64,
    failure: Option<(u64, String)>,
}

fn run_seeds(options: &Options, planted_bug: Option<&str>) -> Result<(), String> {
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = options.threads.unwrap_or_else(available).max(1);
    let end = options.start.checked_add(options.seeds).ok_or("the last seed is beyond 2^64")?;
    let next = AtomicU64::new(options.start);
    let tally = Mutex::new(Tally::default());
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let outcome = run_seed(seed, planted_bug);
                    if outcome.is_err() {
                        // No new seeds after a failure; those in progress finish, so the lowest failing seed wins.
                        next.fetch_max(end, Ordering::Relaxed);
                    }
                    let mut tally = tally.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    tally.take(seed, outcome);
                    report_progress(tally.seeds, options.seeds);
                }
            });
        }
    });
    let tally = tally.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    verdict(&tally, planted_bug)?;
    if planted_bug.is_none() {
        println!(
            "simulate: {} seeds passed, {} operations, {} crashes, {:.1} s",
            tally.seeds,
            tally.operations,
            tally.crashes,
            start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

impl Tally {
    fn take(&mut self, seed: u64, outcome: Result<simulation::Summary, String>) {
        self.seeds += 1;
        match outcome {
            Ok(summary) => {
                self.operations += summary.operations;
                self.crashes += summary.crashes;
            }
            Err(reason) if self.failure.as_ref().is_none_or(|(lowest, _)| seed < *lowest) => {
                self.failure = Some((seed, reason));
            }
            Err(_) => {}
        }
    }
}

fn verdict(tally: &Tally, planted_bug: Option<&str>) -> Result<(), String> {
    match (planted_bug, &tally.failure) {
        (None, None) => Ok(()),
        (None, Some((seed, reason))) => Err(format!(
            "seed {seed} failed: {reason}\nreplay: cargo xtask simulate --start {seed} --seeds 1"
        )),
        (Some(name), Some((seed, reason))) => {
            println!("simulate: planted bug {name} found by seed {seed}: {reason}");
            Ok(())
        }
        (Some(name), None) => Err(format!("planted bug {name} escaped {} seeds", tally.seeds)),
    }
}

fn run_seed(seed: u64, planted_bug: Option<&str>) -> Result<simulation::Summary, String> {
    let options = simulation::Options { planted_bug: planted_bug.map(str::to_owned) };
    match std::panic::catch_unwind(|| simulation::run(seed, &options)) {
        Ok(outcome) => outcome.map_err(|failure| failure.to_string()),
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
