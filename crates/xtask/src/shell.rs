//! Runs other programs from the root of the repository.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

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

/// A command that runs this program in the root of the repository.
pub fn program(path: &Path) -> Command {
    let mut command = Command::new(path);
    command.current_dir(root());
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

/// Runs all `lines`, of which some wait, a few at a time. Their output is shown as they print it. After a failure no
/// further one is started.
pub fn run_beside_each_other(lines: &[String]) -> Result<(), String> {
    let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
    thread::scope(|scope| {
        for _ in 0..=thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(line) = lines.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(reason) = run(line) {
                        failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
                        next.store(lines.len(), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
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

/// Bytes that may still be written to the file system of `directory`, if the system says it.
pub fn available_bytes(directory: &str) -> Option<u64> {
    output(&format!("df --output=avail --block-size=1 {directory}"))?.lines().nth(1)?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_among_others_is_reported() {
        let lines = ["true", "false", "true"].map(str::to_owned);
        assert_eq!(run_beside_each_other(&lines[..1]), Ok(()));
        let reason = run_beside_each_other(&lines).unwrap_err();
        assert!(reason.starts_with("`false` failed"), "{reason}");
    }
}
