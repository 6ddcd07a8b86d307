//! A real process is killed at random moments; every write that it acknowledged must be present afterwards.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use alluvium_bench::crash_writer::Expectation;
use alluvium_bench::random::Random;

/// Starts the writer, kills it after `life`, and processes its output.
fn write_and_kill(directory: &Path, round: u32, life: Duration, expectation: &mut Expectation) {
    let durability = if round.is_multiple_of(2) { "sync" } else { "process" };
    let mut child = Command::new(env!("CARGO_BIN_EXE_alluvium"))
        .args(["bench", "crash-writer", "--round", &round.to_string(), "--durability", durability])
        .arg(directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = child.stdout.take().unwrap();
    std::thread::scope(|scope| {
        // Read while it runs, or it would wait for the pipe; what is in the pipe outlives it.
        let reader = scope.spawn(|| BufReader::new(output).lines().map_while(Result::ok).collect::<Vec<_>>());
        std::thread::sleep(life);
        assert!(child.try_wait().unwrap().is_none(), "the writer ended by itself in round {round}");
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        reader.join().unwrap().iter().for_each(|line| expectation.take(line));
    });
}

fn rounds(count: u32) {
    let directory = tempfile::tempdir().unwrap();
    let database = directory.path().join("data");
    let mut expectation = Expectation::default();
    let mut random = Random::new(u64::from(std::process::id()), 0);
    for round in 0..count {
        let life = Duration::from_millis(100 + random.below(500));
        write_and_kill(&database, round, life, &mut expectation);
        expectation.check(&database).unwrap_or_else(|error| panic!("round {round} after {life:?}: {error}"));
    }
    assert!(expectation.acknowledged_items() > 0, "no write was acknowledged in {count} rounds");
}

#[test]
fn acknowledged_writes_survive_three_kills() {
    rounds(3);
}

#[test]
#[ignore = "takes half a minute: cargo test -p alluvium-cli --test kill9 -- --ignored"]
fn acknowledged_writes_survive_twenty_kills() {
    rounds(20);
}
