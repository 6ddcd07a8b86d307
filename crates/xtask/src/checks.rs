//! Checks that need another compiler flag, toolchain or program. They are skipped with a message if it is not
//! installed.

use std::path::Path;

use crate::programs::Programs;
use crate::shell;

/// The tests that run under loom: the package, its targets, and a filter on test names. Each further target would be
/// compiled for this alone.
const LOOM_TESTS: [(&str, &str, &str); 3] = [
    ("alluvium-cache", "--test loom", "loom"),
    ("alluvium-index", "--test cuckoo_loom --test slb_loom", "loom"),
    ("alluvium-io", "--lib", "append_buffer"),
];

/// Dependencies that take long to optimize and do nothing, or little, in a test under loom.
const IDLE_UNDER_LOOM: [&str; 6] =
    ["proptest", "regex-automata", "regex-syntax", "rustix", "serde_core", "tracing-subscriber"];

/// The engine's sweep of damage, with one in `stride` bytes changed.
pub fn sweep(stride: usize) -> Result<(), String> {
    let line = "cargo test --package alluvium --test all sweep::";
    let mut command = shell::command(line);
    command.env("ALLUVIUM_SWEEP", stride.max(1).to_string());
    shell::run_command(line, command)
}

/// Lock-free code under loom, with as many preemptions as it can explore in minutes.
pub fn loom() -> Result<(), String> {
    under_loom(3, "")
}

/// The same with fewer, for CI, and without the two stories that take longer than all others together.
pub fn loom_smoke() -> Result<(), String> {
    under_loom(
        2,
        " -- --skip loom_items_of_a_store_are_moved_unseen --skip loom_a_scan_visits_an_item_that_comes_inline_once",
    )
}

/// Compiles with `--cfg loom` and runs the tests.
fn under_loom(preemptions_max: u32, arguments: &str) -> Result<(), String> {
    for (package, targets, filter) in LOOM_TESTS {
        // Release, because loom explores millions of interleavings. A separate target folder, because the flag would
        // otherwise invalidate all other builds.
        let line = format!(
            "test --release --package {package} {targets} --target-dir target/loom {filter}{arguments}"
        );
        let mut command = shell::command("cargo");
        for package in IDLE_UNDER_LOOM {
            command.args(["--config", &format!("profile.release.package.{package}.opt-level=0")]);
        }
        command.args(line.split_whitespace());
        command.env("RUSTFLAGS", "--cfg loom").env("LOOM_MAX_PREEMPTIONS", preemptions_max.to_string());
        // Linking takes longer than the tests.
        command.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_DEBUG", "0");
        shell::run_command(&format!("cargo {line}"), command)?;
    }
    Ok(())
}

/// The lints for the other supported processor, if its standard library is installed. Nothing is linked. Without
/// default features, because Lua would need a C compiler for that processor.
pub fn aarch64() -> Result<(), String> {
    const TARGET: &str = "aarch64-unknown-linux-gnu";
    let installed = shell::output("rustc --print sysroot")
        .is_some_and(|sysroot| Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).is_dir());
    if !installed {
        println!("aarch64: skipped, `rustup target add {TARGET}` brings what it needs");
        return Ok(());
    }
    shell::run(&format!("cargo clippy --workspace --no-default-features --target {TARGET} -- -D warnings"))
}

/// What runs under Miri: the package, its targets, and which tests. `io` makes system calls that Miri does not know.
/// The skipped tests take many minutes each: they go through a cache of half a megabyte, the minimum with a compressed
/// zone, or make many items. So do the tables of codes that tries build, which have no unsafe code.
const MIRI_TESTS: [(&str, &str, &str); 3] = [
    ("alluvium-index", "--lib", "--skip loom --skip what_the_caller_does --skip trie::"),
    (
        "alluvium-cache",
        "--lib",
        "--skip all_lengths --skip bytes_come_back --skip values_within_values --skip from_a_hash_is_even \
         --skip classes_rise --skip blocks_never_overlap --skip as_they_were \
         --skip an_index_grows",
    ),
    ("alluvium-cache", "--test all", "beside --skip compressed_values"),
];

/// Unit tests of the index structures and the cache under Miri, and readers beside writers of a cache.
pub fn miri() -> Result<(), String> {
    if !shell::succeeds("cargo +nightly miri --version") {
        println!("miri: skipped, no nightly toolchain with Miri here");
        return Ok(());
    }
    for (package, targets, tests) in MIRI_TESTS {
        let line = format!(
            "cargo +nightly miri test --package {package} {targets} --target-dir target/miri -- {tests}"
        );
        let mut command = shell::command(&line);
        // Few cases: Miri runs some hundred times slower than native code. A backtrace takes it many seconds, and tests
        // panic on purpose.
        command
            .env("MIRIFLAGS", "-Zmiri-disable-isolation")
            .env("PROPTEST_CASES", "2")
            .env("RUST_BACKTRACE", "0");
        shell::run_command(&line, command)?;
    }
    Ok(())
}

/// What runs under valgrind: the unit tests of the crates with unsafe code, and random operations on caches and stores
/// compared with a map. The directory of the package, the target, and what the names of its tests contain.
const VALGRIND_TESTS: [(&str, &str, &str); 4] = [
    ("crates/cache", "alluvium_cache", "::"),
    ("crates/index", "alluvium_index", "::"),
    ("crates/io", "alluvium_io", "::"),
    ("crates/cache", "all", "model::"),
];

/// Tests of the crates with unsafe code under valgrind's memcheck.
pub fn valgrind() -> Result<(), String> {
    let packages = "--package alluvium-cache --package alluvium-index --package alluvium-io";
    under_valgrind(&Programs::of_tests(&format!("{packages} --lib --test all"))?, &VALGRIND_TESTS, 4, &[])
}

/// The first of them, with the minimum number of cases, for CI. Without the simulation of crashes, which takes minutes
/// there and has no unsafe code: its medium is words of its own.
pub fn valgrind_smoke(programs: &Programs) -> Result<(), String> {
    under_valgrind(programs, &VALGRIND_TESTS[..1], 1, &["durable::simulation", "durable::fuzz"])
}

fn under_valgrind(
    programs: &Programs,
    tests: &[(&str, &str, &str)],
    cases: u32,
    skipped: &[&str],
) -> Result<(), String> {
    if !shell::succeeds("valgrind --version") {
        println!("valgrind: skipped, not installed");
        return Ok(());
    }
    for (directory, target, names) in tests {
        let mut command =
            programs.tests(directory, target, &["valgrind", "--quiet", "--error-exitcode=9"])?;
        command.env("PROPTEST_CASES", cases.to_string()).arg(names);
        for name in skipped {
            command.args(["--skip", name]);
        }
        shell::run_command(&format!("valgrind on {target} of {directory}"), command)?;
    }
    Ok(())
}

/// The structures of `bench index`. Each takes seconds with few keys.
const STRUCTURES: [&str; 10] = [
    "cuckoo",
    "hash-filter",
    "ect",
    "fences",
    "multi-level-filter",
    "three-level",
    "bloom-cluster",
    "bucketed",
    "static-filter",
    "slb",
];

/// Every benchmark of the command as it is shipped, and the comparison of caches, at a size that takes seconds.
pub fn bench_and_compare_smoke() -> Result<(), String> {
    shell::run("cargo build --release --package alluvium-cli")?;
    bench_smoke(&shell::root().join("target/release/alluvium"), "24MiB")?;
    shell::run("cargo test --package alluvium-compare --features caches")
}

/// Every benchmark of the command at `path` at a size that takes seconds, beside each other: some compute, and others
/// wait. The comparison of caches is a test of its crate. The program counts in `memory`, one database's limit.
pub fn bench_smoke(path: &Path, memory: &str) -> Result<(), String> {
    let directory = shell::root().join("target/bench-smoke");
    let edges = shell::root().join("target/bench-smoke-edges");
    let text = (0..2_000).map(|edge| format!("{} {}\n", edge * edge % 97, edge));
    std::fs::write(&edges, text.collect::<String>()).map_err(|error| error.to_string())?;
    let (directory, edges) = (directory.display(), edges.display());
    let mut benchmarks = vec![
        format!(
            "store --plan silt --items 20000 --value-size 100 --threads 2 --batch 8 --raw-seconds 0.5 \
             --phases load,get,miss,update,mixed,scan,sustain --sustain-seconds 1 --dir {directory}"
        ),
        // If the program or its initial memory grows, the limit must still leave room for a database.
        format!(
            "store --items 20000 --memory {memory} --phases load,get,degrade --operations 2000 --threads 2 \
             --raw-seconds 0.5 --dir {directory}-memory"
        ),
        format!("dedup crates --dir {directory}"),
        format!("graph {edges} --operations 1000 --dir {directory}"),
        "cache --items 20000 --requests 20000".to_owned(),
        "cache --mode store --items 20000 --requests 20000".to_owned(),
        "cache --mode zexpander --memory 4MiB --requests 20000 --trace switch".to_owned(),
        "cache --shifts --items 20000".to_owned(),
        "cache --soak 2".to_owned(),
        format!("durability --puts 200 --raw-seconds 0.5 --dir {directory}"),
    ];
    benchmarks.extend(STRUCTURES.map(|name| format!("index --structure {name} --keys 20000")));
    let lines: Vec<String> =
        benchmarks.iter().map(|line| format!("{} bench {line}", path.display())).collect();
    shell::run_beside_each_other(&lines)
}

/// The server of the command at `path` with a stock Redis client, if the tools are installed.
pub fn redis(path: &Path) -> Result<(), String> {
    let script = "tests/redis/run.sh";
    if !Path::new(&shell::root().join(script)).exists() || !shell::succeeds("redis-cli --version") {
        println!("redis: skipped, no redis-cli or no {script} here");
        return Ok(());
    }
    shell::run(&format!("bash {script} {}", path.display()))
}
