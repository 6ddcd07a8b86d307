//! Developer commands, run as `cargo xtask NAME`. CI runs only `cargo xtask ci`.
//!
//! Exit codes: 0 success, 1 a check failed, 2 wrong usage.
#![forbid(unsafe_code)]

mod checks;
mod ci;
mod crashes;
mod fuzz;
mod memory;
mod shell;
mod simulate;
mod tidy;
mod torture;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Developer commands of Alluvium", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything that CI runs, cheapest check first, the test suite last
    Ci,
    /// The test suite: `cargo test --workspace`
    Test,
    /// Checks of the repository itself: file lengths, leftovers, unsafe code, changelog, decisions
    Tidy(tidy::Options),
    /// Random operations with crashes on a simulated disk, compared with a reference map
    Simulate(simulate::Options),
    /// Random operations on caches that survive, with crashes that lose single stores
    Crashes(crashes::Options),
    /// A thousand kills of a process that writes to a cache that survives
    Kill9,
    /// Real threads on real files, killed at random moments, compared with an exact model
    Torture(torture::Options),
    #[command(hide = true)]
    TortureChild(torture::ChildOptions),
    /// The memory of a database under a memory limit, compared with what the documentation promises
    Memory(memory::Options),
    /// Random and mutated bytes for every parser
    Fuzz(fuzz::Options),
    /// Changed bytes everywhere in a small database: detected or harmless, and repaired
    Sweep {
        /// Change one byte in this many; 1 for all, which takes hours
        #[arg(long, default_value_t = 29)]
        stride: usize,
    },
    /// Lock-free code under loom
    Loom,
    /// The lints for aarch64, if its standard library is installed
    Aarch64,
    /// The crates with unsafe code under Miri, if a nightly toolchain with Miri is installed
    Miri,
    /// Tests of the crates with unsafe code under valgrind, if it is installed
    Valgrind,
    /// Every benchmark at a small size: shows that they run and that their answers are right
    BenchSmoke,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Ci => ci::run(),
        Command::Test => ci::test(),
        Command::Tidy(options) => tidy::run(&options),
        Command::Simulate(options) => simulate::run(&options),
        Command::Crashes(options) => crashes::run(&options),
        Command::Kill9 => crashes::kill9(),
        Command::Torture(options) => torture::run(&options),
        Command::TortureChild(options) => torture::run_child(&options),
        Command::Memory(options) => memory::run(&options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Sweep { stride } => checks::sweep(stride),
        Command::Loom => checks::loom(),
        Command::Aarch64 => checks::aarch64(),
        Command::Miri => checks::miri(),
        Command::Valgrind => checks::valgrind(),
        Command::BenchSmoke => checks::bench_smoke(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("xtask: {reason}");
            ExitCode::FAILURE
        }
    }
}
