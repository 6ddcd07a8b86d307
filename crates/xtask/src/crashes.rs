//! `cargo xtask crashes`: many seeds of the simulated crashes of caches that survive, and `cargo xtask kill9`: real
//! ones of the process.

use std::time::Instant;

use alluvium_cache::{Mistake, simulation};

use crate::shell;

/// Which seeds to run.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Number of seeds
    #[arg(long, default_value_t = 3400)]
    seeds: u64,
    /// The first seed
    #[arg(long, default_value_t = 0)]
    start: u64,
    /// Crashes of each seed
    #[arg(long, default_value_t = 30)]
    crashes: u64,
    /// Break the cache on purpose in the named way, or in `all` ways in turn: passes if a seed finds the bug
    #[arg(long, value_name = "NAME")]
    planted_bug: Option<String>,
}

/// Runs the seeds.
pub fn run(options: &Options) -> Result<(), String> {
    let Some(name) = options.planted_bug.as_deref() else { return run_seeds(options) };
    let meant = Mistake::ALL.into_iter().filter(|(known, _)| name == "all" || name == *known);
    let meant: Vec<(&str, Mistake)> = meant.collect();
    if meant.is_empty() {
        let known: Vec<&str> = Mistake::ALL.iter().map(|(known, _)| *known).collect();
        return Err(format!("no bug is named {name:?}; known: {}, all", known.join(", ")));
    }
    for (name, mistake) in meant {
        let mut seeds = options.start..options.start + options.seeds;
        let found =
            seeds.find_map(|seed| Some((seed, simulation::run(seed, options.crashes, Some(mistake)).err()?)));
        match found {
            Some((seed, reason)) => {
                println!("crashes: planted bug {name} found by seed {seed}: {reason}");
            }
            None => return Err(format!("planted bug {name} escaped {} seeds", options.seeds)),
        }
    }
    Ok(())
}

fn run_seeds(options: &Options) -> Result<(), String> {
    let began = Instant::now();
    let mut all = simulation::Summary::default();
    for seed in options.start..options.start + options.seeds {
        let failed = |reason| {
            format!("seed {seed} failed: {reason}\nreplay: cargo xtask crashes --start {seed} --seeds 1")
        };
        for summary in [
            simulation::run(seed, options.crashes, None).map_err(failed)?,
            simulation::run_each_step(seed).map_err(failed)?,
        ] {
            all.add(summary);
        }
    }
    println!(
        "crashes: {} seeds passed, {} operations, {} crashes, {} items survived one, {} did not, 0 wrong; {} were \
         compressed, {} promoted, {} blocks copied; {:.1} s",
        options.seeds,
        all.operations,
        all.crashes,
        all.survived,
        all.lost,
        all.packed,
        all.promoted,
        all.copied,
        began.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Kills a process a thousand times.
pub fn kill9() -> Result<(), String> {
    let mut command =
        shell::command("cargo test --release -p alluvium-cache --test surviving_kill9 -- --nocapture");
    command.env("ALLUVIUM_KILL9_ROUNDS", "1000");
    shell::run_command("kill9", command)
}
