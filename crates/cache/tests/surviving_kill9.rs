//! A process that writes to a cache that survives, and is killed: what it had acknowledged is there.
//!
//! `ALLUVIUM_KILL9_ROUNDS` is the number of rounds; `cargo xtask kill9` runs a thousand.
#![cfg(all(target_os = "linux", not(miri), not(loom)))]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use alluvium_cache::{Cache, Codec, Opened, Survive, SurvivingCache};

const FILE: &str = "ALLUVIUM_KILL9_FILE";
const FIRST: &str = "ALLUVIUM_KILL9_FIRST";
const CODEC: &str = "ALLUVIUM_KILL9_COMPRESSED";
const ROUNDS: &str = "ALLUVIUM_KILL9_ROUNDS";
const KEYS: u64 = 5000;

fn open(path: &Path, is_compressed: bool) -> SurvivingCache {
    // With compression it is small, so that zones are cleaned in each round.
    let bytes = if is_compressed { 1 << 20 } else { 8 << 20 };
    let parts = if is_compressed { 1 } else { 2 };
    let builder = Cache::builder().memory_limit(bytes).partitions(parts).survive(path, Survive::Process);
    if is_compressed { builder.compressed(Codec::Lz4).open().unwrap() } else { builder.open().unwrap() }
}

/// Operation number `number`: its key, and the value that it sets, or `None` for a removal.
fn operation(number: u64) -> (Vec<u8>, Option<Vec<u8>>) {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    let key = format!("key {}", mixed % KEYS).into_bytes();
    let value = (!mixed.is_multiple_of(7)).then(|| format!("{number} {}", ".".repeat(mixed as usize % 200)));
    (key, value.map(String::into_bytes))
}

/// The process that is killed.
#[test]
#[ignore = "run by the other test"]
fn child() {
    let Some(path) = std::env::var_os(FILE) else { return };
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    let cache = open(Path::new(&path), std::env::var_os(CODEC).is_some());
    assert!(matches!(cache.opened(), Opened::Complete | Opened::New));
    let mut out = std::io::stderr().lock();
    for number in first.. {
        match operation(number) {
            (key, Some(value)) => cache.set(&key, &value).unwrap(),
            (key, None) => drop(cache.remove(&key)),
        }
        writeln!(out, "{number}").unwrap();
    }
}

#[test]
fn what_was_acknowledged_is_there_after_a_kill() {
    rounds(false);
}

#[test]
fn what_was_acknowledged_and_compressed_is_not_wrong_after_a_kill() {
    rounds(true);
}

fn rounds(is_compressed: bool) {
    let rounds = std::env::var(ROUNDS).map_or(3, |rounds| rounds.parse().unwrap());
    let path: PathBuf =
        std::env::temp_dir().join(format!("alluvium-kill9-{is_compressed}-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    // By key: what it has.
    let mut model: HashMap<Vec<u8>, Option<Vec<u8>>> = HashMap::new();
    let (mut next, mut present, mut lost) = (0, 0_u64, 0_u64);
    for round in 0..rounds {
        let mut command = Command::new(std::env::current_exe().unwrap());
        if is_compressed {
            command.env(CODEC, "1");
        }
        let mut child = command
            .args(["--exact", "child", "--ignored", "--nocapture", "--test-threads=1"])
            .env(FILE, &path)
            .env(FIRST, next.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let operations = 500 + round * 7919 % 6000;
        let mut acknowledged = Vec::new();
        while acknowledged.len() < operations {
            let line = lines.next().expect("the child runs").unwrap();
            let Ok(number) = line.parse() else {
                let rest: Vec<String> = lines.map_while(Result::ok).collect();
                panic!("round {round}: the child failed: {line}{}", rest.join("\n"));
            };
            acknowledged.push(number);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged.extend(lines.map_while(Result::ok).filter_map(|line| line.parse::<u64>().ok()));
        let last = *acknowledged.last().unwrap();
        for number in next..=last {
            let (key, value) = operation(number);
            model.insert(key, value);
        }
        // It may be there or not.
        let (pending_key, pending) = operation(last + 1);
        let cache = open(&path, is_compressed);
        assert_eq!(cache.opened(), Opened::Complete);
        for (key, value) in &mut model {
            let found = cache.get(key);
            if *key == pending_key && found == pending {
                value.clone_from(&pending);
            }
            match (&found, &*value) {
                (Some(found), value) => {
                    assert_eq!(Some(found), value.as_ref(), "round {round}: wrong or removed");
                    present += 1;
                }
                (None, Some(_)) => {
                    lost += 1;
                    *value = None;
                }
                (None, None) => {}
            }
        }
        next = last + 1;
        // The next round does not write it again.
        if pending.is_some() && cache.get(&pending_key) == pending {
            model.insert(pending_key, pending);
        }
    }
    let _ = std::fs::remove_file(&path);
    // What is evicted is lost as well.
    println!("kill9: {rounds} rounds, {next} operations, {present} items present, {lost} lost, 0 wrong");
    assert!(is_compressed || lost * 1000 <= present, "{lost} lost, {present} present");
}
