//! Runs other programs from the root of the repository.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The root of the repository.
pub fn root() -> PathBuf {
    let manifest = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    manifest.ancestors().nth(2).map_or(manifest.clone(), PathBuf::from)
}

/// A command that runs in the root of the repository, from words separated by spaces.
pub fn command(line: &str) -> Command {
    let mut words = line.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).current_dir(root());
    command
}

/// Runs `line` with its output shown. The error names the command and how it failed.
pub fn run(line: &str) -> Result<(), String> {
    run_command(line, command(line))
}

/// Runs `command` with its output shown; messages call it `name`.
pub fn run_command(name: &str, mut command: Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("cannot start `{name}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{name}` failed: {status}")) }
}

/// Whether `line` runs and succeeds; its output is discarded.
pub fn succeeds(line: &str) -> bool {
    command(line).stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// The output of `line`, if it succeeds.
pub fn output(line: &str) -> Option<String> {
    let output = command(line).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}
