//! `cargo xtask fuzz`: random bytes and mutated valid samples for every parser of stored or received bytes.
//!
//! Stable Rust has no coverage-guided fuzzer, so the driver starts from valid samples and damages them a little. That
//! passes checksums only by chance, so parsers that have one are also entered after it.

mod bucketed;
mod index;
mod mutate;
mod registry;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use registry::Target;

/// What to fuzz and for how long.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Only the target with this name; all by default
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// Seconds per target
    #[arg(long, default_value_t = 10.0)]
    pub seconds: f64,
    /// Seed of the inputs
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// List the targets and stop
    #[arg(long)]
    pub list: bool,
}

/// Minimum inputs per target, on machines of any speed.
const INPUTS_MIN: u64 = 1_000;

/// The stack of a thread that runs targets: that of a program's first thread.
const STACK_BYTES: usize = 8 << 20;

/// Fuzzes the chosen targets, one on each processor; fails with the first input that makes one panic.
pub fn run(options: &Options) -> Result<(), String> {
    let targets = registry::targets();
    if options.list {
        targets.iter().for_each(|target| println!("{}", target.name));
        return Ok(());
    }
    // The driver reports expected panics; the default hook would print each of them with a backtrace.
    std::panic::set_hook(Box::new(|_| {}));
    let outcome = run_targets(options, &targets);
    drop(std::panic::take_hook());
    outcome
}

fn run_targets(options: &Options, targets: &[Target]) -> Result<(), String> {
    let duration = Duration::from_secs_f64(options.seconds.clamp(0.0, 1e6));
    if fuzz(&registry::canary(), Duration::ZERO, options.seed).is_ok() {
        return Err("the canary, which must fail, did not: the driver finds nothing".to_owned());
    }
    let is_chosen = |target: &&Target| options.target.as_ref().is_none_or(|name| name == target.name);
    let chosen: Vec<&Target> = targets.iter().filter(is_chosen).collect();
    if chosen.is_empty() {
        return Err("no target has that name; `cargo xtask fuzz --list` shows all".to_owned());
    }
    let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
    let work = || {
        while let Some(target) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
            match fuzz(target, duration, options.seed) {
                Ok(inputs) => println!("fuzz: {:<24} {inputs:>10} inputs", target.name),
                Err(input) => {
                    let input = input.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
                    let reason =
                        format!("target {:?} panicked (seed {}) on input {input}", target.name, options.seed);
                    failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
                    next.store(chosen.len(), Ordering::Relaxed);
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from).min(chosen.len()) {
            let builder = thread::Builder::new().stack_size(STACK_BYTES);
            builder.spawn_scoped(scope, work).map_err(|error| format!("no thread to run in: {error}"))?;
        }
        Ok::<_, String>(())
    })?;
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Runs `target` for `duration` and for at least [`INPUTS_MIN`] inputs. Returns their number, or the shortened input
/// that made it panic.
fn fuzz(target: &Target, duration: Duration, seed: u64) -> Result<u64, Vec<u8>> {
    let mut random = StdRng::seed_from_u64(seed);
    let samples = (target.samples)();
    let start = Instant::now();
    let mut inputs = 0;
    while inputs < INPUTS_MIN || start.elapsed() < duration {
        let input = match samples.len() {
            0 => mutate::random_bytes(&mut random),
            count => {
                let sample = &samples[random.random_range(0..count)];
                if random.random_ratio(1, 8) {
                    mutate::random_bytes(&mut random)
                } else {
                    mutate::mutated(sample, &samples, &mut random)
                }
            }
        };
        if panics(target, &input) {
            return Err(mutate::shortened(input, |candidate| panics(target, candidate)));
        }
        inputs += 1;
    }
    Ok(inputs)
}

fn panics(target: &Target, input: &[u8]) -> bool {
    catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_canary_is_found_and_shortened() {
        let input = fuzz(&registry::canary(), Duration::ZERO, 3).unwrap_err();
        assert!(input.len() <= 8, "{input:?}");
    }

    #[test]
    fn every_target_survives_its_own_samples() {
        for target in registry::targets() {
            for sample in (target.samples)() {
                assert!(!panics(&target, &sample), "{}", target.name);
            }
        }
    }
}
