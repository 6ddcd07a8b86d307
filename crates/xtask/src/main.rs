//! Developer commands, run as `cargo xtask NAME`. CI runs only `ci`, as `cargo ci`: that compiles no engine first.
//!
//! Exit codes: 0 success, 1 a check failed, 2 wrong usage.
#![forbid(unsafe_code)]

mod c;
mod checks;
mod ci;
#[cfg(feature = "trials")]
mod crashes;
#[cfg(feature = "trials")]
mod fuzz;
#[cfg(feature = "trials")]
mod memory;
mod programs;
mod python;
mod shell;
#[cfg(feature = "trials")]
mod simulate;
mod tidy;
#[cfg(feature = "trials")]
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
    #[cfg(feature = "trials")]
    Simulate(simulate::Options),
    /// Random operations on caches that survive, with crashes that lose single stores
    #[cfg(feature = "trials")]
    Crashes(crashes::Options),
    /// A thousand kills of a process that writes to a cache that survives
    #[cfg(feature = "trials")]
    Kill9,
    /// Real threads on real files, killed at random moments, compared with an exact model
    #[cfg(feature = "trials")]
    Torture(torture::Options),
    #[cfg(feature = "trials")]
    #[command(hide = true)]
    TortureChild(torture::ChildOptions),
    /// The memory of a database under a memory limit, compared with what the documentation promises
    #[cfg(feature = "trials")]
    Memory(memory::Options),
    /// Random and mutated bytes for every parser
    #[cfg(feature = "trials")]
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
    /// The Python package, built and tested in a fresh virtual environment, if python3 and a package index are there
    Python {
        /// Also install Spark, Ray and Dask, about a gigabyte that is kept, and run the tests that need them and Java
        #[arg(long)]
        connectors: bool,
    },
    /// Wheels of the Python package for manylinux on x86-64 and aarch64, and its source distribution
    PythonWheels,
    /// The C library: its header, its tests and the example in Go, also under valgrind, as far as the tools are there
    C,
    /// The C library, optimized, with its header and its file for pkg-config
    CInstall {
        /// Where to: the directory that gets `lib` and `include`
        #[arg(long, default_value = "/usr/local")]
        prefix: std::path::PathBuf,
    },
    /// Every benchmark at a small size: shows that they run and that their answers are right
    BenchSmoke,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Ci => ci::run(),
        Command::Test => ci::test(),
        Command::Tidy(options) => tidy::run(&options),
        #[cfg(feature = "trials")]
        Command::Simulate(options) => simulate::run(&options),
        #[cfg(feature = "trials")]
        Command::Crashes(options) => crashes::run(&options),
        #[cfg(feature = "trials")]
        Command::Kill9 => crashes::kill9(),
        #[cfg(feature = "trials")]
        Command::Torture(options) => torture::run(&options),
        #[cfg(feature = "trials")]
        Command::TortureChild(options) => torture::run_child(&options),
        #[cfg(feature = "trials")]
        Command::Memory(options) => memory::run(&options),
        #[cfg(feature = "trials")]
        Command::Fuzz(options) => fuzz::run(&options),
        Command::Sweep { stride } => checks::sweep(stride),
        Command::Loom => checks::loom(),
        Command::Aarch64 => checks::aarch64(),
        Command::Miri => checks::miri(),
        Command::Valgrind => checks::valgrind(),
        Command::Python { connectors } => python::test(connectors),
        Command::PythonWheels => python::wheels(),
        Command::C => c::test(),
        Command::CInstall { prefix } => c::install(&prefix),
        Command::BenchSmoke => checks::bench_and_compare_smoke(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("xtask: {reason}");
            ExitCode::FAILURE
        }
    }
}
