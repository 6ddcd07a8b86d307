//! The rule that prose uses the field's terms: comments and documents, not code.

use super::source::contains_word;
use super::{Finding, TidyFile};

/// Words that a reader must read twice, and what to write.
const REFUSED: [(&str, &str); 10] = [
    ("so many", "say how many, or name the number"),
    ("so much", "say how much, or name the quantity"),
    ("whoever", "name the caller, the thread or the reader"),
    ("lest", "write \"so that ... not\""),
    ("lies", "write \"is stored\", \"is\" or \"covers\""),
    ("lie", "write \"are stored\", \"are\" or \"cover\""),
    ("lay", "write \"was stored\" or \"was\""),
    ("told of", "write \"gets\", \"returns\" or \"is notified\""),
    ("told from", "write \"distinguished from\""),
    ("goes on", "write \"continues\""),
];
/// What a comment may not begin with: there it is meant as a maximum.
const REFUSED_FIRST: [&str; 5] = ["Most bytes", "Most items", "Most memory", "Most pages", "Most keys"];
/// Beginnings of the refused words in plain English.
const ALLOWED: [&str; 3] = ["lay out", "lays out", "so much as"];

/// Findings in one file.
pub fn check(file: &TidyFile) -> Vec<Finding> {
    let is_source = file.extension() == "rs";
    let is_covered = is_source || file.extension() == "md";
    // This file has to name the words.
    let is_excepted = file.path.ends_with("tidy/words.rs") || file.path.starts_with("docs/measurements/");
    if !is_covered || is_excepted {
        return Vec::new();
    }
    let lines = file.text.lines().enumerate();
    lines.filter_map(|(index, line)| finding(file, index, prose(line, is_source)?)).collect()
}

/// The part of a line that people read: all of a document's, the comment of a source's.
fn prose(line: &str, is_source: bool) -> Option<&str> {
    if !is_source {
        return Some(line);
    }
    line.trim_start().strip_prefix("//").map(|comment| comment.trim_start_matches(['/', '!']).trim_start())
}

fn finding(file: &TidyFile, index: usize, prose: &str) -> Option<Finding> {
    let is_refused = |(word, _): &(&str, &str)| {
        let is_plain = ALLOWED.iter().any(|allowed| allowed.starts_with(word) && prose.contains(allowed));
        // "So many that ..." compares, and is plain English.
        let rest = prose.find(word).map_or("", |start| &prose[start..]);
        let compares = word.starts_with("so ") && rest.contains(" that ");
        contains_word(prose, word) && !is_plain && !compares
    };
    let refused = REFUSED.into_iter().find(is_refused);
    let first = REFUSED_FIRST.into_iter().find(|first| prose.starts_with(first));
    let maximum = first.filter(|_| file.extension() == "rs").map(|first| (first, "write \"Maximum ...\""));
    let (word, instead) = refused.or(maximum)?;
    Some(Finding::new(&file.path, index + 1, format!("{word:?}: {instead}")))
}

#[cfg(test)]
mod tests {
    use super::super::file;
    use super::*;

    #[test]
    fn prose_is_checked_and_code_is_not() {
        let found = |path: &str, text: &str| {
            check(&file(path, text)).into_iter().map(|finding| finding.line).collect::<Vec<_>>()
        };
        assert_eq!(found("crates/io/src/a.rs", "let lies = 1;\n/// It lies there.\n//! So many\n"), [2]);
        assert_eq!(found("crates/io/src/a.rs", "// so many items\n// so many that it is\n// lay out\n"), [1]);
        assert_eq!(found("crates/io/src/a.rs", "// items that are so many\n"), [1]);
        assert_eq!(
            found(
                "crates/io/src/a.rs",
                "/// Most bytes.\n// Most items of them.\n// Most have it.\n// belies\n"
            ),
            [1, 2]
        );
        assert_eq!(found("README.md", "whoever\nreads on\n"), [1]);
        assert!(found("crates/io/a.toml", "# lest\n").is_empty());
    }
}
