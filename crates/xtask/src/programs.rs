//! Programs that cargo builds and that are then run without it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::shell;

/// A program that cargo built.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// The directory of its package, in which its tests run.
    directory: PathBuf,
    /// The name of its target. For unit tests that is the library's, for other tests that of their file or directory.
    target: String,
    /// Whether it runs tests.
    is_test: bool,
    path: PathBuf,
}

/// Programs that cargo built together.
#[derive(Debug)]
pub struct Programs(Vec<Program>);

impl Programs {
    /// Builds the tests that `selection` stands for, in cargo's words, and the programs that they start.
    pub fn of_tests(selection: &str) -> Result<Self, String> {
        let line = format!("cargo test {selection} --no-run --message-format json-render-diagnostics");
        let output = shell::command(&line).stderr(Stdio::inherit()).output();
        let output = output.map_err(|error| format!("cannot start `{line}`: {error}"))?;
        if !output.status.success() {
            return Err(format!("`{line}` failed: {}", output.status));
        }
        Ok(Self::in_messages(&String::from_utf8_lossy(&output.stdout)))
    }

    /// Those that cargo names in its messages, of which each is a line.
    fn in_messages(messages: &str) -> Self {
        let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        Self(messages.filter_map(|message| program(&message)).collect())
    }

    /// The command that runs the tests of this target, with these words before it.
    pub fn tests(&self, directory: &str, target: &str, before: &[&str]) -> Result<Command, String> {
        let program = self.find(directory, target, true)?;
        let words: Vec<_> = before.iter().map(Path::new).chain([&*program.path]).collect();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(&program.directory);
        // As cargo does it.
        command.env("CARGO_MANIFEST_DIR", &program.directory);
        Ok(command)
    }

    /// The path of the program of this name that is no test.
    pub fn path(&self, directory: &str, name: &str) -> Result<&Path, String> {
        Ok(&self.find(directory, name, false)?.path)
    }

    fn find(&self, directory: &str, target: &str, is_test: bool) -> Result<&Program, String> {
        let is_meant = |program: &&Program| {
            program.directory.ends_with(directory) && program.target == target && program.is_test == is_test
        };
        self.0.iter().find(is_meant).ok_or_else(|| format!("cargo built no {target} of {directory}"))
    }
}

fn program(message: &Value) -> Option<Program> {
    Some(Program {
        directory: Path::new(message["manifest_path"].as_str()?).parent()?.to_owned(),
        target: message["target"]["name"].as_str()?.to_owned(),
        is_test: message["profile"]["test"].as_bool()?,
        path: message["executable"].as_str()?.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(is_test: bool, executable: &str) -> String {
        let manifest = r#""manifest_path":"/work/crates/cache/Cargo.toml""#;
        let target = r#""target":{"name":"model"}"#;
        format!(r#"{{{manifest},{target},"profile":{{"test":{is_test}}},"executable":{executable}}}"#)
    }

    #[test]
    fn programs_are_found_among_other_messages() {
        let messages = [
            artifact(false, "null"),
            artifact(true, r#""/work/target/debug/deps/model-1""#),
            artifact(false, r#""/work/target/debug/model""#),
            r#"{"reason":"build-script-executed","package_id":"libc"}"#.to_owned(),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
            "not a message".to_owned(),
        ];
        let programs = Programs::in_messages(&messages.join("\n"));
        assert_eq!(programs.0.len(), 2, "{programs:?}");
        assert_eq!(programs.path("crates/cache", "model"), Ok(Path::new("/work/target/debug/model")));
        let command = programs.tests("crates/cache", "model", &["valgrind", "--quiet"]).unwrap();
        assert_eq!(command.get_program(), "valgrind");
        let words: Vec<_> = command.get_args().collect();
        assert_eq!(words, ["--quiet", "/work/target/debug/deps/model-1"]);
        assert_eq!(command.get_current_dir(), Some(Path::new("/work/crates/cache")));
        for (directory, target) in [("crates/index", "model"), ("crates/cache", "store_model")] {
            assert!(programs.tests(directory, target, &[]).is_err(), "{directory} {target}");
        }
    }
}
