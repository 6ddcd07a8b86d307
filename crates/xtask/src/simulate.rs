//! `cargo xtask simulate`: runs many seeds of the engine's simulations in parallel.

use std::io::IsTerminal;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use alluvium::simulation::{self, threads};
use alluvium_base::checksum::checksum64;

/// Which seeds to run.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Number of seeds
    #[arg(long, default_value_t = 100)]
    pub seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    pub start: u64,
    /// Which simulation to run with each seed
    #[arg(long, value_enum, default_value_t = Kind::Both)]
    pub kind: Kind,
    /// Break the engine on purpose in the named way, or in `all` ways in turn: passes if a seed finds the bug
    #[arg(long, value_name = "NAME")]
    pub planted_bug: Option<String>,
    /// How often to search for each of `all` planted bugs, each time with other seeds; the median is printed
    #[arg(long, default_value_t = 5)]
    pub trials: u64,
    /// Threads; all cores by default
    #[arg(long)]
    pub threads: Option<usize>,
}

/// The simulations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// One thread does everything, in order
    Single,
    /// Several clients and all background threads, under a scheduler
    Threads,
    /// Both
    Both,
}

/// Seeds between the starts of two trials.
const TRIAL_SEEDS: u64 = 1_000_000;

/// Runs the seeds; on failure reports the lowest failing seed among those that ran, and how to replay it.
pub fn run(options: &Options) -> Result<(), String> {
    let Some(name) = options.planted_bug.as_deref() else { return run_seeds(options) };
    // Some bugs are found by panics.
    std::panic::set_hook(Box::new(|_| ()));
    let single = simulation::PLANTED_BUGS.iter().map(|&bug| (Kind::Single, bug));
    let threads = threads::PLANTED_BUGS.iter().map(|&bug| (Kind::Threads, bug));
    let known: Vec<(Kind, &str)> = single.chain(threads).collect();
    let is_of_kind = |kind: Kind| options.kind == Kind::Both || options.kind == kind;
    let is_meant = |&(kind, bug): &(Kind, &str)| match name {
        "all" => is_of_kind(kind),
        name => name == bug,
    };
    let meant: Vec<(Kind, &str)> = known.iter().copied().filter(is_meant).collect();
    if meant.is_empty() {
        let known: Vec<&str> = known.iter().map(|(_, bug)| *bug).collect();
        return Err(format!("no bug is named {name:?}; known: {}, all", known.join(", ")));
    }
    let trials = options.trials.max(1);
    let escaped: Vec<&str> = meant
        .into_iter()
        .filter(|&(kind, bug)| !is_found(options, kind, bug, trials))
        .map(|(_, bug)| bug)
        .collect();
    if escaped.is_empty() { Ok(()) } else { Err(format!("planted bugs escaped: {}", escaped.join(", "))) }
}

/// Searches for a planted bug in each trial and prints how many seeds it took.
fn is_found(options: &Options, kind: Kind, bug: &str, trials: u64) -> bool {
    let mut needed = Vec::new();
    let mut reason = String::new();
    for trial in 0..trials {
        let options = Options { start: options.start + trial * TRIAL_SEEDS, kind, ..options.clone() };
        let Some((seed, found)) = look(&options, Some(bug)).failure else {
            println!("simulate: planted bug {bug} escaped {} seeds from {}", options.seeds, options.start);
            return false;
        };
        needed.push(seed - options.start + 1);
        reason = format!("seed {seed}: {}", found.lines().next().unwrap_or_default());
    }
    needed.sort_unstable();
    let median = needed[needed.len() / 2];
    let most = needed[needed.len() - 1];
    println!(
        "simulate: planted bug {bug} found within {median} seeds (median of {trials}, maximum {most}), last by {reason}"
    );
    true
}

/// The work of all threads together.
#[derive(Debug, Default)]
struct Tally {
    seeds: u64,
    operations: u64,
    crashes: u64,
    steps: u64,
    /// The sum of the seeds' checksums.
    checksum: u64,
    failure: Option<(u64, String)>,
}

/// The work of one seed.
#[derive(Debug, Default)]
struct Work {
    operations: u64,
    crashes: u64,
    steps: u64,
    /// Of all that the simulation of one thread did: the same in two builds that do the same.
    checksum: u64,
}

fn run_seeds(options: &Options) -> Result<(), String> {
    let start = Instant::now();
    let tally = look(options, None);
    if let Some((seed, reason)) = &tally.failure {
        return Err(format!(
            "seed {seed} failed: {reason}\nreplay: cargo xtask simulate --start {seed} --seeds 1"
        ));
    }
    // Only what a single thread does is the same in every run.
    let checksum = if options.kind == Kind::Threads {
        String::new()
    } else {
        format!(", checksum {:016x}", tally.checksum)
    };
    println!(
        "simulate: {} seeds passed, {} operations, {} crashes, {} steps of threads{checksum}, {:.1} s",
        tally.seeds,
        tally.operations,
        tally.crashes,
        tally.steps,
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Runs seeds until one fails.
fn look(options: &Options, planted_bug: Option<&str>) -> Tally {
    let available = || std::thread::available_parallelism().map_or(1, usize::from);
    let threads = options.threads.unwrap_or_else(available).max(1);
    let end = options.start.saturating_add(options.seeds);
    let next = AtomicU64::new(options.start);
    let tally = Mutex::new(Tally::default());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let outcome = run_seed(seed, options.kind, planted_bug);
                    if outcome.is_err() {
                        // No new seeds after a failure; those in progress finish, so that the lowest failing seed is
                        // reported.
                        next.fetch_max(end, Ordering::Relaxed);
                    }
                    let mut tally = tally.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                    tally.take(seed, outcome);
                    report_progress(tally.seeds, options.seeds);
                }
            });
        }
    });
    tally.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Tally {
    fn take(&mut self, seed: u64, outcome: Result<Work, String>) {
        self.seeds += 1;
        match outcome {
            Ok(work) => {
                self.operations += work.operations;
                self.crashes += work.crashes;
                self.steps += work.steps;
                self.checksum = self.checksum.wrapping_add(work.checksum);
            }
            Err(reason) if self.failure.as_ref().is_none_or(|(lowest, _)| seed < *lowest) => {
                self.failure = Some((seed, reason));
            }
            Err(_) => {}
        }
    }
}

/// One seed in this number is run twice by one thread, and has to do the same: otherwise no failure could be replayed.
const SEEDS_PER_REPEAT: u64 = 16;

fn run_seed(seed: u64, kind: Kind, planted_bug: Option<&str>) -> Result<Work, String> {
    let options = simulation::Options { planted_bug: planted_bug.map(str::to_owned) };
    let mut work = Work::default();
    if kind != Kind::Threads {
        let run = || match std::panic::catch_unwind(|| simulation::run(seed, &options)) {
            Ok(outcome) => outcome.map_err(|failure| failure.to_string()),
            Err(_) => Err("it panicked (message above)".to_owned()),
        };
        let summary = run()?;
        if planted_bug.is_none() && seed.is_multiple_of(SEEDS_PER_REPEAT) {
            let again = run()?;
            if again != summary {
                return Err(format!(
                    "the seed did something else when repeated: {summary:?}, then {again:?}"
                ));
            }
        }
        (work.operations, work.crashes) = (summary.operations, summary.crashes);
        work.checksum = checksum64(format!("{summary:?}").as_bytes(), seed);
    }
    if kind != Kind::Single {
        let outcome = threads::run(seed, &options);
        let outcome = outcome.map_err(|failure| format!("{failure}\n(with --kind threads)"))?;
        work.operations += outcome.summary.operations;
        work.crashes += outcome.summary.crashes;
        work.steps = outcome.steps;
    }
    Ok(work)
}

fn report_progress(done: u64, seeds: u64) {
    if done.is_multiple_of(50) && std::io::stderr().is_terminal() {
        eprint!("\r{done} of {seeds} seeds");
        if done == seeds {
            eprintln!();
        }
    }
}
