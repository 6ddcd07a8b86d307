//! Rules on documents: the form of the changelog and of decision records, and links without targets.

use super::{Finding, TidyFile};

const CHANGELOG: &str = "CHANGELOG.md";
const DECISIONS: &str = "docs/decisions/";
const TAGS: [&str; 6] = ["feat", "fix", "perf", "format", "api", "tools"];
const DECISION_PARTS: [&str; 4] =
    ["**Context.**", "**Choice.**", "**What we gave up.**", "**What would change our mind.**"];

/// Findings in all documents.
pub fn check(files: &[TidyFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        if file.path == CHANGELOG {
            findings.extend(changelog(file));
        }
        if file.path.starts_with(DECISIONS) {
            findings.extend(decision(file, files));
        }
        if file.extension() == "md" {
            findings.extend(broken_links(file, files));
        }
    }
    findings
}

fn changelog(file: &TidyFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let mut report = |message: String| findings.push(Finding::new(&file.path, index + 1, message));
        if index == 0 && line != "# Changelog" {
            report("the first line is not `# Changelog`".to_owned());
        } else if let Some(release) = line.strip_prefix("## ") {
            let is_release = release.split_once(" - ").is_some_and(|(version, date)| {
                version.split('.').count() == 3 && date.split('-').count() == 3
            });
            if release != "Unreleased" && !is_release {
                report(format!("{release:?} is neither `Unreleased` nor `1.2.3 - 2026-01-31`"));
            }
        } else if let Some(entry) = line.strip_prefix("- ") {
            let tag = entry.split_once(": ").map(|(tag, _)| tag);
            if !tag.is_some_and(|tag| TAGS.contains(&tag)) {
                report(format!("an entry starts with one of the tags {}", TAGS.join(", ")));
            }
        }
    }
    findings
}

fn decision(file: &TidyFile, files: &[TidyFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut report = |message: String| findings.push(Finding::new(&file.path, 0, message));
    let name = file.path.trim_start_matches(DECISIONS);
    let number = name.split('-').next().unwrap_or_default();
    if number.len() != 4 || number.parse::<u32>().is_err() || !name.ends_with(".md") {
        report("a decision is named 0001-what-it-is-about.md".to_owned());
    }
    if files
        .iter()
        .any(|other| other.path != file.path && other.path.starts_with(&format!("{DECISIONS}{number}-")))
    {
        report(format!("two decisions have the number {number}"));
    }
    if !file.text.starts_with(&format!("# {number}. ")) {
        report(format!("the heading is not `# {number}. What was decided`"));
    }
    for part in DECISION_PARTS {
        if !file.text.contains(part) {
            report(format!("the part {part} is missing"));
        }
    }
    let is_linked = files.iter().any(|other| {
        !other.path.starts_with(DECISIONS) && other.extension() == "md" && other.text.contains(&file.path)
    });
    if !is_linked {
        report("no document links to this decision: ARCHITECTURE.md should".to_owned());
    }
    findings
}

/// Relative links to files that do not exist.
fn broken_links(file: &TidyFile, files: &[TidyFile]) -> Vec<Finding> {
    let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for link in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default().trim_end_matches('/');
            if target.is_empty() || target.contains(':') || target.contains(' ') {
                continue;
            }
            let target = resolved(folder, target);
            let exists = files
                .iter()
                .any(|other| other.path == target || other.path.starts_with(&format!("{target}/")));
            if !exists {
                findings.push(Finding::new(
                    &file.path,
                    index + 1,
                    format!("a link to {target}, which does not exist"),
                ));
            }
        }
    }
    findings
}

fn resolved(folder: &str, target: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in target.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    #[test]
    fn changelog_entries_have_known_tags() {
        let good =
            "# Changelog\n\n## Unreleased\n\n- feat: a thing\n\n## 1.2.3 - 2026-01-31\n\n- fix: another\n";
        assert_eq!(changelog(&file(CHANGELOG, good)), []);
        assert_eq!(changelog(&file(CHANGELOG, "# Log\n## soon\n- a thing\n")).len(), 3);
    }

    #[test]
    fn decisions_have_their_parts_and_a_link() {
        let text = format!("# 0001. A thing\n{}\n", DECISION_PARTS.join("\n"));
        let path = "docs/decisions/0001-a-thing.md";
        let page = file("ARCHITECTURE.md", "[why](docs/decisions/0001-a-thing.md)\n");
        assert_eq!(check(&[file(path, &text), page]), []);
        assert_eq!(check(&[file(path, &text)]).len(), 1);
        assert_eq!(check(&[file("docs/decisions/one.md", "# One\n")]).len(), 7);
    }

    #[test]
    fn links_lead_somewhere() {
        let page = |text: &str| file("docs/a.md", text);
        let other = || file("docs/b/c.md", "");
        assert_eq!(broken_links(&page("[x](b/c.md#part) [y](../docs/b) [z](https://a.b)\n"), &[other()]), []);
        assert_eq!(broken_links(&page("[x](c.md)\n"), &[other()]).len(), 1);
    }
}
