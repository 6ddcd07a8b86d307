//! Checks that need another compiler flag, toolchain or program. What is not installed is skipped with a message.

use std::path::Path;

use crate::shell;

/// Where tests run under loom: the package, its targets, and what their names contain. Each further target would be
/// compiled for this alone.
const LOOM_TESTS: [(&str, &str, &str); 3] = [
    ("alluvium-cache", "--test loom", "loom"),
    ("alluvium-index", "--test cuckoo_loom --test slb_loom", "loom"),
    ("alluvium-io", "--lib", "append_buffer"),
];

/// The engine's sweep of damage, with one byte in `stride` changed.
pub fn sweep(stride: usize) -> Result<(), String> {
    let line = "cargo test --package alluvium --test sweep";
    let mut command = shell::command(line);
    command.env("ALLUVIUM_SWEEP", stride.max(1).to_string());
    shell::run_command(line, command)
}

/// Lock-free code under loom, with as many preemptions as it can explore in minutes.
pub fn loom() -> Result<(), String> {
    under_loom(3)
}

/// The same with fewer, for CI.
pub fn loom_smoke() -> Result<(), String> {
    under_loom(2)
}

/// Compiled with `--cfg loom`.
fn under_loom(preemptions_max: u32) -> Result<(), String> {
    for (package, targets, filter) in LOOM_TESTS {
        // Release, because loom explores millions of interleavings; a target folder of its own, because the flag
        // would otherwise throw away every other build.
        let line =
            format!("cargo test --release --package {package} {targets} --target-dir target/loom {filter}");
        let mut command = shell::command(&line);
        command.env("RUSTFLAGS", "--cfg loom").env("LOOM_MAX_PREEMPTIONS", preemptions_max.to_string());
        // Linking takes longer than the tests do.
        command.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_DEBUG", "0");
        shell::run_command(&line, command)?;
    }
    Ok(())
}

/// The lints for the other processor that this runs on, where its standard library is installed. Nothing is linked.
pub fn aarch64() -> Result<(), String> {
    const TARGET: &str = "aarch64-unknown-linux-gnu";
    let installed = shell::output("rustc --print sysroot")
        .is_some_and(|sysroot| Path::new(sysroot.trim()).join("lib/rustlib").join(TARGET).is_dir());
    if !installed {
        println!("aarch64: skipped, `rustup target add {TARGET}` brings what it needs");
        return Ok(());
    }
    shell::run(&format!("cargo clippy --workspace --target {TARGET} -- -D warnings"))
}

/// What runs under Miri: the package, its targets, and what of them. `io` talks to the kernel in ways that Miri does
/// not know; what is skipped goes through so many values that it takes many minutes.
const MIRI_TESTS: [(&str, &str, &str); 3] = [
    ("alluvium-index", "--lib", "--skip loom --skip what_the_caller_does"),
    (
        "alluvium-cache",
        "--lib",
        "--skip all_lengths --skip bytes_come_back --skip values_within_values --skip from_a_hash_is_even \
         --skip classes_rise --skip blocks_never_overlap --skip as_they_were",
    ),
    ("alluvium-cache", "--test threads", "beside"),
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
        // Few cases: Miri runs some hundred times slower than the machine.
        command.env("MIRIFLAGS", "-Zmiri-disable-isolation").env("PROPTEST_CASES", "2");
        shell::run_command(&line, command)?;
    }
    Ok(())
}

/// What runs under valgrind: the unit tests of the crates with unsafe code, and random operations on caches and stores
/// beside a map.
const VALGRIND_TESTS: [(&str, &str); 4] = [
    ("alluvium-cache", "--lib"),
    ("alluvium-index", "--lib"),
    ("alluvium-io", "--lib"),
    ("alluvium-cache", "--test model --test store_model"),
];

/// Tests of the crates with unsafe code under valgrind's memcheck.
pub fn valgrind() -> Result<(), String> {
    under_valgrind(&VALGRIND_TESTS, 4)
}

/// The first of them, with the fewest cases: a minute's worth for CI.
pub fn valgrind_smoke() -> Result<(), String> {
    under_valgrind(&VALGRIND_TESTS[..1], 1)
}

fn under_valgrind(tests: &[(&str, &str)], cases: u32) -> Result<(), String> {
    if !shell::succeeds("valgrind --version") {
        println!("valgrind: skipped, not installed");
        return Ok(());
    }
    for (package, targets) in tests {
        let line = format!("cargo test --package {package} {targets}");
        let mut command = shell::command(&line);
        command
            .env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", "valgrind --quiet --error-exitcode=9")
            .env("PROPTEST_CASES", cases.to_string());
        shell::run_command(&line, command)?;
    }
    Ok(())
}

/// Every benchmark at a size that takes seconds.
pub fn bench_smoke() -> Result<(), String> {
    shell::run("cargo build --release --package alluvium-cli")?;
    let directory = shell::root().join("target/bench-smoke");
    let directory = directory.display();
    let alluvium = "target/release/alluvium";
    shell::run(&format!(
        "{alluvium} bench store --plan silt --items 20000 --value-size 100 --threads 2 --batch 8 \
         --phases load,get,miss,update,mixed,scan,sustain --sustain-seconds 1 --dir {directory}"
    ))?;
    // What grows, the program or what it needs at its beginning, must leave room for a database.
    shell::run(&format!(
        "{alluvium} bench store --items 20000 --memory 16MiB --phases load,get,degrade --operations 2000 \
         --threads 2 --dir {directory}"
    ))?;
    shell::run(&format!("{alluvium} bench dedup crates --dir {directory}"))?;
    let edges = shell::root().join("target/bench-smoke-edges");
    let lines = (0..2_000).map(|edge| format!("{} {}\n", edge * edge % 97, edge));
    std::fs::write(&edges, lines.collect::<String>()).map_err(|error| error.to_string())?;
    shell::run(&format!("{alluvium} bench graph {} --operations 1000 --dir {directory}", edges.display()))?;
    shell::run(&format!("{alluvium} bench index --structure all --keys 20000"))?;
    shell::run(&format!("{alluvium} bench cache --items 20000 --requests 20000"))?;
    shell::run(&format!("{alluvium} bench cache --mode store --items 20000 --requests 20000"))?;
    shell::run(&format!("{alluvium} bench cache --shifts --items 20000"))?;
    shell::run(&format!("{alluvium} bench cache --soak 2"))?;
    // Unoptimized: the others' code takes longer to optimize than to run once.
    let compare = "cargo run --package alluvium-compare --features caches -- cache";
    shell::run(&format!("{compare} --items 20000 --requests 20000 --rounds 1"))?;
    shell::run(&format!("{alluvium} bench durability --puts 200 --dir {directory}"))
}

/// The server against a stock Redis client, where the tools are installed.
pub fn redis() -> Result<(), String> {
    let script = "tests/redis/run.sh";
    if !Path::new(&shell::root().join(script)).exists() || !shell::succeeds("redis-cli --version") {
        println!("redis: skipped, no redis-cli or no {script} here");
        return Ok(());
    }
    shell::run("cargo build --release --package alluvium-cli")?;
    shell::run(&format!("bash {script}"))
}
