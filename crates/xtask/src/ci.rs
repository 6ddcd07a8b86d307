//! `cargo ci`: the list of checks, in one place for people and for CI.
//!
//! Most of its time is that of compilers. So the workspace is compiled for tests once, with one set of features, and
//! whatever else needs code with assertions takes the programs of that build; see `workspace`.

use std::path::Path;
use std::sync::OnceLock;
use std::thread;
use std::time::Instant;

use crate::programs::Programs;
use crate::{c, checks, python, shell, tidy};

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
    ("test-build", || workspace().map(|_| ())),
    ("simulate", || trial("simulate --seeds 100")),
    // The engine broken on purpose: shows that the simulation would notice.
    ("simulate-canaries", || trial("simulate --seeds 3000 --planted-bug all --trials 1")),
    ("crashes", || trial("crashes --seeds 100 --start 100000")),
    ("torture", || trial("torture --rounds 63 --seconds 25 --threads 3")),
    ("fuzz", || trial("fuzz --seconds 2")),
    ("memory", || trial("memory --limits 4,16 --keyspaces 100 --seconds 3")),
    ("valgrind-and-bench-smoke", valgrind_beside_benchmarks),
    ("redis", || checks::redis(command()?)),
    ("python", || python::test(false)),
    // Built with the package for Python, so after it.
    ("c", c::test),
    // Only this step tests the optimized code.
    ("test-optimized", || {
        shell::run("cargo test --release --package alluvium-index --package alluvium-cache --tests")
    }),
    ("loom-smoke", checks::loom_smoke),
    ("test-on-device", || on_device(workspace()?)),
    ("test", || in_memory(&format!("cargo test {WORKSPACE}"))),
];

/// Where files are in memory.
const SHARED_MEMORY: &str = "/dev/shm";
/// Minimum space for the files of all tests, several times what they need at a time.
const SHARED_BYTES_MIN: u64 = 3 << 30;
/// All tests, those of the comparison of caches included.
const WORKSPACE: &str = "--workspace --features alluvium-compare/caches";

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

/// The programs of all tests, built by the first call.
fn workspace() -> Result<&'static Programs, String> {
    static PROGRAMS: OnceLock<Result<Programs, String>> = OnceLock::new();
    PROGRAMS.get_or_init(|| Programs::of_tests(WORKSPACE)).as_ref().map_err(Clone::clone)
}

/// Runs a command of this program as it was built beside its tests: this process may have been built without it.
fn trial(line: &str) -> Result<(), String> {
    let mut command = shell::program(workspace()?.path("crates/xtask", "xtask")?);
    command.args(line.split_whitespace());
    shell::run_command(line, command)
}

/// The command itself, of the same build.
fn command() -> Result<&'static Path, String> {
    workspace()?.path("crates/cli", "alluvium")
}

/// Valgrind runs one thread at a time, and takes minutes: benchmarks have the other processors meanwhile.
fn valgrind_beside_benchmarks() -> Result<(), String> {
    let (programs, command) = (workspace()?, command()?);
    thread::scope(|scope| {
        let valgrind = scope.spawn(|| checks::valgrind_smoke(programs));
        let benchmarks = checks::bench_smoke(command, "32MiB");
        let valgrind = valgrind.join().map_err(|_| "the thread of valgrind panicked".to_owned())?;
        valgrind.and(benchmarks)
    })
}

/// The tests of the crate that reads and writes files, where temporary files usually are.
fn on_device(programs: &Programs) -> Result<(), String> {
    for target in ["alluvium_io", "open_files", "out_of_descriptors", "storages"] {
        shell::run_command(target, programs.tests("crates/io", target, &[])?)?;
    }
    Ok(())
}

/// Runs a command whose temporary files are in memory, if there is room. Hundreds of tests compare every answer of a
/// database, and each of them would wait for the device. Torture and benchmarks run on a device.
fn in_memory(line: &str) -> Result<(), String> {
    let mut command = shell::command(line);
    if shell::available_bytes(SHARED_MEMORY).is_some_and(|bytes| bytes >= SHARED_BYTES_MIN) {
        command.env("TMPDIR", SHARED_MEMORY);
    }
    shell::run_command(line, command)
}

fn documentation() -> Result<(), String> {
    let line = "cargo doc --workspace --no-deps --quiet";
    let mut command = shell::command(line);
    command.env("RUSTDOCFLAGS", "-D warnings");
    shell::run_command(line, command)
}
