//! Rules on the text of source files: leftovers, unsafe code, white space, long lines, files that are not included
//! anywhere.

use super::{Finding, TidyFile};

/// Maximum characters in a line of source or prose; rustfmt breaks code at 110.
const LINE_CHARS_MAX: usize = 120;

/// Crates that may contain unsafe code.
const UNSAFE_CRATES: [&str; 4] = ["crates/cache/", "crates/capi/", "crates/index/", "crates/io/"];

/// Leftovers of unfinished work. Each is composed of two halves here, so that this file passes its own check.
const LEFTOVERS: [(&str, &str); 7] = [
    ("to", "do!("),
    ("unimplem", "ented!("),
    ("db", "g!("),
    ("TO", "DO"),
    ("FIX", "ME"),
    ("XX", "X"),
    ("HA", "CK"),
];

/// The keyword, so that no line of this file looks like a use of it.
const UNSAFE: &str = "unsafe";
/// What is above a function that is exported to C.
const EXPORTED: &str = "#[unsafe(no_mangle)]";
/// Maximum number of lines above an `unsafe` at which its reason may start.
const SAFETY_LINES_ABOVE: usize = 12;

/// Findings in one file.
pub fn check(file: &TidyFile) -> Vec<Finding> {
    if !matches!(file.extension(), "rs" | "md" | "toml" | "sh" | "yml") {
        return Vec::new();
    }
    let mut findings = white_space(file);
    findings.extend(leftovers(file));
    if matches!(file.extension(), "rs" | "md") {
        findings.extend(long_lines(file));
    }
    if file.extension() == "rs" {
        findings.extend(unsafe_code(file));
    }
    findings
}

fn white_space(file: &TidyFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        if line.ends_with([' ', '\t', '\r']) {
            findings.push(Finding::new(&file.path, index + 1, "white space at the end of the line"));
        }
        if line.contains('\t') {
            findings.push(Finding::new(&file.path, index + 1, "a tab"));
        }
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        findings.push(Finding::new(&file.path, 0, "no newline at the end of the file"));
    }
    findings
}

fn leftovers(file: &TidyFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for (head, tail) in LEFTOVERS {
            let leftover = format!("{head}{tail}");
            if contains_word(line, &leftover) {
                let message = format!("a leftover {leftover:?}: finish it or file an issue");
                findings.push(Finding::new(&file.path, index + 1, message));
            }
        }
    }
    findings
}

/// Whether `line` contains `word` without an adjacent letter, digit or underscore.
pub(super) fn contains_word(line: &str, word: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        !before.is_some_and(is_part) && (word.ends_with('(') || !after.is_some_and(is_part))
    })
}

fn long_lines(file: &TidyFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_verbatim = false;
    for (index, line) in file.text.lines().enumerate() {
        if file.extension() == "md" && line.trim_start().starts_with("```") {
            in_verbatim = !in_verbatim;
        }
        let is_table_row = line.trim_start().trim_start_matches("//!").trim_start().starts_with('|');
        let is_free = in_verbatim || is_table_row || line.contains("://");
        let chars = line.chars().count();
        if chars > LINE_CHARS_MAX && !is_free {
            let message = format!("{chars} characters: more than {LINE_CHARS_MAX}");
            findings.push(Finding::new(&file.path, index + 1, message));
        }
    }
    findings
}

fn unsafe_code(file: &TidyFile) -> Vec<Finding> {
    let is_allowed = UNSAFE_CRATES.iter().any(|path| file.path.starts_with(path));
    let is_root = file.path.starts_with("crates/")
        && (file.path.ends_with("/src/lib.rs") || file.path.ends_with("/src/main.rs"));
    if is_root && !is_allowed && !file.text.contains("#![forbid(unsafe_code)]") {
        return vec![Finding::new(
            &file.path,
            1,
            "the crate does not forbid unsafe code: #![forbid(unsafe_code)]",
        )];
    }
    let mut findings = Vec::new();
    let lines: Vec<&str> = file.text.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let opens = ["{", "fn", "impl", "extern", "trait"].map(|rest| format!("{UNSAFE} {rest}"));
        let is_clean =
            !opens.iter().any(|open| contains_word(code, open) || code.contains(&format!(" {open}")));
        if is_clean {
            continue;
        }
        if !is_allowed {
            findings.push(Finding::new(&file.path, index + 1, "unsafe code in a crate that has none"));
        }
        // The contract of a function that is exported to C is that of the header.
        let is_exported = index > 0 && lines[index - 1] == EXPORTED && code.contains("extern \"C\" fn");
        if is_exported {
            continue;
        }
        let first = index.saturating_sub(SAFETY_LINES_ABOVE);
        let has_reason =
            lines[first..=index].iter().any(|line| line.contains("SAFETY:") || line.contains("# Safety"));
        if !has_reason {
            findings.push(Finding::new(
                &file.path,
                index + 1,
                "unsafe code without its SAFETY: reason above",
            ));
        }
    }
    findings
}

/// Source files that no `mod` line includes.
pub fn dead_files(files: &[TidyFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files {
        let Some((folder, name)) = file.path.rsplit_once('/') else { continue };
        let is_module =
            file.path.starts_with("crates/") && file.path.contains("/src/") && name.ends_with(".rs");
        let is_root = matches!(name, "main.rs" | "lib.rs") || folder.ends_with("/bin");
        if !is_module || is_root {
            continue;
        }
        let (folder, module) = match name.strip_suffix(".rs") {
            Some("mod") => folder.rsplit_once('/').unwrap_or((folder, "")),
            stem => (folder, stem.unwrap_or_default()),
        };
        let parents = [
            format!("{folder}/mod.rs"),
            format!("{folder}/lib.rs"),
            format!("{folder}/main.rs"),
            format!("{folder}.rs"),
        ];
        let (line, attribute) = (format!("mod {module};"), format!("#[path = \"{name}\"]"));
        let is_included = files.iter().any(|other| {
            let is_parent = parents.contains(&other.path) && other.text.contains(&line);
            is_parent || (other.path.starts_with(folder) && other.text.contains(&attribute))
        });
        if !is_included {
            findings.push(Finding::new(&file.path, 0, "no `mod` line includes this file: remove it"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::file;

    fn messages(path: &str, text: &str) -> usize {
        check(&file(path, text)).len()
    }

    #[test]
    fn leftovers_are_found_as_whole_words() {
        for (head, tail) in LEFTOVERS {
            assert_eq!(messages("a.md", &format!("see {head}{tail} here\n")), 1, "{head}{tail}");
        }
        assert_eq!(messages("a.md", &format!("a {}{}ED thing\n", "HA", "CK")), 0);
    }

    #[test]
    fn white_space_and_length() {
        assert_eq!(messages("a.rs", "fn a() {} \n"), 1);
        assert_eq!(messages("a.rs", "\tfn a() {}\n"), 1);
        assert_eq!(messages("a.rs", "fn a() {}"), 1);
        assert_eq!(messages("a.rs", &format!("// {}\n", "é".repeat(117))), 0);
        assert_eq!(messages("a.rs", &format!("// {}\n", "é".repeat(118))), 1);
        assert_eq!(messages("a.md", &format!("| {} |\n", "a".repeat(200))), 0);
        assert_eq!(messages("a.md", &format!("```\n{}\n```\n", "a".repeat(200))), 0);
    }

    #[test]
    fn unsafe_code_needs_a_permitted_crate_and_a_reason() {
        let open = format!("{UNSAFE} {{");
        let bare = format!("fn a() {{\n    {open} b() }}\n}}\n");
        let reasoned = format!("fn a() {{\n    // SAFETY: b is harmless.\n    {open} b() }}\n}}\n");
        assert_eq!(messages("crates/io/src/a.rs", &bare), 1);
        // A string on the line does not exempt it.
        assert_eq!(messages("crates/io/src/a.rs", &bare.replace("b()", "b(\"text\")")), 1);
        assert_eq!(messages("crates/io/src/a.rs", &reasoned), 0);
        assert_eq!(messages("crates/engine/src/a.rs", &reasoned), 1);
        let exported = format!("{EXPORTED}\npub {UNSAFE} extern \"C\" fn a() {{}}\n");
        assert_eq!(messages("crates/capi/src/a.rs", &exported), 0);
        assert_eq!(messages("crates/capi/src/a.rs", exported.trim_start_matches(EXPORTED)), 1);
        assert_eq!(messages("crates/engine/src/a.rs", &exported), 1);
        assert_eq!(messages("crates/engine/src/lib.rs", "//! Text\n"), 1);
        assert_eq!(messages("crates/engine/src/lib.rs", "#![forbid(unsafe_code)]\n"), 0);
    }

    #[test]
    fn files_that_nothing_includes() {
        let root = file("crates/a/src/lib.rs", "mod b;\nmod c;\n");
        let used = file("crates/a/src/b.rs", "");
        let folder = file("crates/a/src/c/mod.rs", "mod d;\n");
        let nested = file("crates/a/src/c/d.rs", "");
        let dead = file("crates/a/src/c/e.rs", "");
        let named = file("crates/a/src/b_test.rs", "");
        let naming = file("crates/a/src/f.rs", "#[path = \"b_test.rs\"]\nmod tests;\n");
        let root = file(&root.path, &format!("{}mod f;\n", root.text));
        let findings = dead_files(&[root, used, folder, nested, dead, named, naming]);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].path, "crates/a/src/c/e.rs");
    }
}
