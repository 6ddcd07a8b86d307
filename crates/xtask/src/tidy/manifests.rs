//! Rules on `Cargo.toml`: versions are declared in one place, and declared dependencies are used.

use super::{Finding, TidyFile};

/// Findings in the manifests of all crates.
pub fn check(files: &[TidyFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for manifest in files {
        let Some(folder) =
            manifest.path.strip_suffix("Cargo.toml").filter(|path| path.starts_with("crates/"))
        else {
            continue;
        };
        for (line, dependency) in dependencies(&manifest.text) {
            if !dependency.is_from_workspace {
                let message = format!("{} names its own version: use `.workspace = true`", dependency.name);
                findings.push(Finding::new(&manifest.path, line, message));
            }
            let identifier = dependency.name.replace('-', "_");
            let is_used = files
                .iter()
                .filter(|file| file.extension() == "rs" && file.path.starts_with(folder))
                .any(|file| mentions(&file.text, &identifier));
            if !is_used {
                let message = format!("{} is declared but not used", dependency.name);
                findings.push(Finding::new(&manifest.path, line, message));
            }
        }
    }
    findings
}

struct Dependency {
    name: String,
    is_from_workspace: bool,
}

/// The dependencies of a manifest with their lines, counted from 1. Reads the one-line forms that this repository uses.
fn dependencies(text: &str) -> Vec<(usize, Dependency)> {
    let mut found = Vec::new();
    let mut in_section = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.starts_with('[') {
            in_section = line.trim_end_matches(']').ends_with("dependencies");
        } else if let Some((key, value)) =
            line.split_once('=').filter(|_| in_section && !line.starts_with('#'))
        {
            let key = key.trim();
            let name = key.strip_suffix(".workspace").unwrap_or(key).trim_matches('"').to_owned();
            let is_from_workspace = key.ends_with(".workspace") || value.contains("workspace = true");
            found.push((index + 1, Dependency { name, is_from_workspace }));
        }
    }
    found
}

/// Whether `text` contains `identifier` as a whole word.
fn mentions(text: &str, identifier: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.match_indices(identifier).any(|(start, _)| {
        let before = start.checked_sub(1).and_then(|position| text.as_bytes().get(position));
        let after = text.as_bytes().get(start + identifier.len());
        !before.is_some_and(|&byte| is_part(byte)) && !after.is_some_and(|&byte| is_part(byte))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    #[test]
    fn unused_and_own_versions_are_found() {
        let manifest = file(
            "crates/a/Cargo.toml",
            "[package]\nname = \"a\"\n[dependencies]\nused-one.workspace = true\nunused.workspace = true\n\
             own = \"1\"\n[dev-dependencies]\nlong = { workspace = true, features = [] }\n",
        );
        let code = file("crates/a/src/lib.rs", "use used_one::X;\nuse own;\nfn unused_not() { long::y() }\n");
        let findings = check(&[manifest, code]);
        let messages: Vec<_> =
            findings.iter().map(|finding| (finding.line, finding.message.as_str())).collect();
        assert_eq!(
            messages,
            [
                (5, "unused is declared but not used"),
                (6, "own names its own version: use `.workspace = true`")
            ]
        );
    }
}
