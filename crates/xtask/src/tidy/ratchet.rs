//! The length ratchet: new files stay short, and long ones may not grow.
//!
//! A file may have 400 lines. `cargo xtask tidy --bless` records the length of a longer one in `ratchet.txt`, where a
//! reviewer sees it, and the file may not grow beyond that; none may have more than 700 lines.

use std::fs;

use super::{Finding, TidyFile};
use crate::shell;

const LINES_FREE: usize = 400;
const LINES_MAX: usize = 700;
const RATCHET: &str = "crates/xtask/src/tidy/ratchet.txt";

/// Findings of files that are too long, and of entries that are no longer needed.
pub fn check(files: &[TidyFile]) -> Vec<Finding> {
    let recorded = recorded(files);
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.extension() == "rs") {
        let lines = file.text.lines().count();
        let limit =
            recorded.iter().find(|(path, _)| *path == file.path).map_or(LINES_FREE, |&(_, lines)| lines);
        if lines > LINES_MAX {
            findings.push(Finding::new(
                &file.path,
                lines,
                format!("{lines} lines: more than {LINES_MAX}; split it"),
            ));
        } else if lines > limit {
            let message =
                format!("{lines} lines: more than {limit}; split it, or `cargo xtask tidy --bless`");
            findings.push(Finding::new(&file.path, lines, message));
        }
    }
    for (path, _) in recorded {
        let is_long = |file: &&TidyFile| file.path == path && file.text.lines().count() > LINES_FREE;
        if !files.iter().any(|file| is_long(&file)) {
            findings.push(Finding::new(RATCHET, 0, format!("{path} is short or gone: remove its entry")));
        }
    }
    findings
}

/// Records the lengths of all long files.
pub fn bless(files: &[TidyFile]) -> Result<(), String> {
    let mut text =
        String::from("# Files of more than 400 lines and how long they may be. `cargo xtask tidy --bless`\n");
    for file in files.iter().filter(|file| file.extension() == "rs") {
        let lines = file.text.lines().count();
        if lines > LINES_FREE {
            text.push_str(&format!("{lines} {}\n", file.path));
        }
    }
    fs::write(shell::root().join(RATCHET), text).map_err(|error| format!("cannot write {RATCHET}: {error}"))
}

fn recorded(files: &[TidyFile]) -> Vec<(String, usize)> {
    let text = files.iter().find(|file| file.path == RATCHET).map_or("", |file| file.text.as_str());
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(lines, path)| Some((path.to_owned(), lines.parse().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    #[test]
    fn long_files_need_an_entry_and_may_not_outgrow_it() {
        let long = "\n".repeat(500);
        assert_eq!(check(&[file("a.rs", &long)]).len(), 1);
        assert_eq!(check(&[file("a.rs", &long), file(RATCHET, "500 a.rs\n")]), []);
        assert_eq!(check(&[file("a.rs", &long), file(RATCHET, "499 a.rs\n")]).len(), 1);
        assert_eq!(check(&[file("a.rs", &"\n".repeat(701)), file(RATCHET, "701 a.rs\n")]).len(), 1);
    }

    #[test]
    fn entries_of_short_files_are_removed() {
        assert_eq!(check(&[file("a.rs", "\n"), file(RATCHET, "500 a.rs\n")]).len(), 1);
    }
}
