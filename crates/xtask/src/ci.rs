//! `cargo xtask ci`: the list of checks, in one place for people and for CI.

use std::time::Instant;

use crate::{checks, crashes, fuzz, memory, shell, simulate, tidy, torture};

/// One check: its name and what it runs.
type Step = (&'static str, fn() -> Result<(), String>);

// Cheap checks come first so that a small mistake fails in seconds; the test suite comes last so that its summary ends
// the output.
const STEPS: &[Step] = &[
    ("format", || shell::run("cargo fmt --all --check")),
    ("tidy", || tidy::run(&tidy::Options::default())),
    ("clippy", || shell::run("cargo clippy --workspace --all-targets -- -D warnings")),
    ("documentation", documentation),
    ("aarch64", checks::aarch64),
    ("simulate", || simulate::run(&simulate::Options::smoke())),
    ("simulate-canaries", || simulate::run(&simulate::Options::canaries())),
    ("crashes", || crashes::run(&crashes::Options::smoke())),
    ("torture", || torture::run(&torture::Options::smoke())),
    ("fuzz", || fuzz::run(&fuzz::Options::smoke())),
    ("memory", || memory::run(&memory::Options::smoke())),
    ("bench-smoke", checks::bench_smoke),
    ("loom-smoke", checks::loom_smoke),
    ("valgrind-smoke", checks::valgrind_smoke),
    ("redis", checks::redis),
    // Only this step tests the optimized code.
    ("test-optimized", || {
        shell::run("cargo test --release --package alluvium-index --package alluvium-cache --tests")
    }),
    ("test", test),
];

/// Runs all checks up to the first that fails.
pub fn run() -> Result<(), String> {
    for (name, step) in STEPS {
        eprintln!("==> {name}");
        let start = Instant::now();
        step().map_err(|reason| format!("check {name:?} failed: {reason}"))?;
        eprintln!("==> {name} passed in {:.0} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}

/// The test suite.
pub fn test() -> Result<(), String> {
    shell::run("cargo test --workspace")
}

fn documentation() -> Result<(), String> {
    let line = "cargo doc --workspace --no-deps --quiet";
    let mut command = shell::command(line);
    command.env("RUSTDOCFLAGS", "-D warnings");
    shell::run_command(line, command)
}
