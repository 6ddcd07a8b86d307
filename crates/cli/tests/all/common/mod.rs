//! Runs the command like a user.

use std::path::Path;
use std::process::{Command, Output};

/// The command with the words of `line`, to run in `directory`.
pub fn command(directory: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_alluvium"));
    command.args(line.split_whitespace()).current_dir(directory);
    command
}

/// The output of the command with the words of `line`, run in `directory`.
pub fn alluvium(directory: &Path, line: &str) -> Output {
    command(directory, line).output().unwrap()
}
