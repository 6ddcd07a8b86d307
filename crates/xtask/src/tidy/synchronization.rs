//! The rule that the engine, its tables and its storage import locks, atomics and threads from one module.

use super::{Finding, TidyFile};

/// Sources that the rule covers.
const COVERED: [&str; 3] = ["crates/engine/src/", "crates/io/src/", "crates/table/src/"];
/// Exceptions among them: the module itself, a buffer that has a model checker of its own, rings with the kernel at the
/// other end, tests, and the simulation, which is not part of the simulated program.
const EXCEPTIONS: [&str; 7] = [
    "crates/io/src/sync/",
    "crates/io/src/append_buffer/",
    "crates/io/src/datagrams/xdp/rings.rs",
    "/tests/",
    "/tests.rs",
    "/simulation/",
    "/simulated/",
];
/// Paths that the covered sources must not name.
const REFUSED: [&str; 5] = ["std::sync", "core::sync", "std::thread", "arc_swap", "parking_lot"];
/// Names in `std::sync` that do not affect scheduling.
const HARMLESS: [&str; 5] = ["Arc", "Weak", "PoisonError", "TryLockError", "LockResult"];

/// Findings in one file.
pub fn check(file: &TidyFile) -> Vec<Finding> {
    let is_covered = COVERED.iter().any(|path| file.path.starts_with(path))
        && !EXCEPTIONS.iter().any(|path| file.path.contains(path));
    if !is_covered || file.extension() != "rs" {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let lines: Vec<&str> = file.text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let opens_tests = line.starts_with("#[cfg(") && line.contains("test");
        if opens_tests && lines[index + 1..].iter().any(|next| next.starts_with("mod tests {")) {
            break; // the tests are at the end of a file
        }
        let code = line.split("//").next().unwrap_or_default();
        if let Some(name) = REFUSED.into_iter().find(|name| names(code, name)) {
            let message = format!("{name}: take it from `alluvium_io::sync`, which the simulation schedules");
            findings.push(Finding::new(&file.path, index + 1, message));
        }
    }
    findings
}

/// Whether `code` names something below the path `refused` that is not harmless.
fn names(code: &str, refused: &str) -> bool {
    code.match_indices(refused).any(|(start, _)| {
        let before = code[..start].chars().next_back();
        if before.is_some_and(|character| character.is_alphanumeric() || character == '_') {
            return false;
        }
        let rest = code[start + refused.len()..].trim_start_matches("::").trim_start_matches('{');
        let rest = rest.split(['}', ';', '(', ')', '>', '<', '&', '=']).next().unwrap_or_default();
        let is_harmless = |name: &str| HARMLESS.contains(&name.trim().split("::").next().unwrap_or_default());
        !refused.ends_with("sync") || !rest.split(',').all(is_harmless)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    fn findings(path: &str, text: &str) -> usize {
        check(&file(path, text)).len()
    }

    #[test]
    fn locks_and_threads_come_from_one_module() {
        let path = "crates/engine/src/a.rs";
        for line in [
            "use std::sync::Mutex;",
            "use std::sync::{Arc, Mutex};",
            "use std::sync::atomic::Ordering;",
            "    std::thread::sleep(duration);",
            "use arc_swap::ArcSwap;",
            "    get: &std::sync::atomic::AtomicU64,",
        ] {
            assert_eq!(findings(path, line), 1, "{line}");
        }
        for line in [
            "use std::sync::Arc;",
            "use std::sync::{Arc, Weak};",
            "    storage: std::sync::Arc<dyn Storage>,",
            "use alluvium_io::sync::{Mutex, ArcSwap};",
            "// as std::sync::Mutex does",
        ] {
            assert_eq!(findings(path, line), 0, "{line}");
        }
        assert_eq!(findings("crates/server/src/a.rs", "use std::sync::Mutex;"), 0);
        assert_eq!(findings("crates/io/src/sync/mod.rs", "use std::sync::Mutex;"), 0);
        assert_eq!(findings(path, "#[cfg(test)]\nmod tests {\n    use std::sync::Mutex;\n}\n"), 0);
        assert_eq!(findings(path, "#[cfg(test)]\nuse std::sync::Mutex;\n"), 1);
    }
}
