//! The program as people and `cargo ci` start it.

#![cfg(feature = "trials")]

use std::process::{Command, Output};

fn xtask(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments).output().unwrap()
}

#[test]
fn wrong_usage_is_told_from_failure() {
    assert_eq!(xtask(&["no-such-command"]).status.code(), Some(2));
    assert_eq!(xtask(&["simulate", "--planted-bug", "no-such-bug"]).status.code(), Some(1));
}

#[test]
fn targets_of_fuzzing_are_listed() {
    let output = xtask(&["fuzz", "--list"]);
    assert_eq!(output.status.code(), Some(0));
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.lines().any(|line| line == "log-record"), "{told}");
}

/// What `cargo ci` asks of this program, at a smaller size.
#[test]
fn a_planted_bug_is_found() {
    let output = xtask(&["simulate", "--planted-bug", "skip-log-sync", "--seeds", "20", "--trials", "1"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}
