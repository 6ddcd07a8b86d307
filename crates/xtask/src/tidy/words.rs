//! The rule that prose uses the field's terms: comments and documents, not code.

use super::source::contains_word;
use super::{Finding, TidyFile};

/// Words that a reader must read twice, and what to write.
const REFUSED: [(&str, &str); 12] = [
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
    ("most bytes", "write \"maximum bytes\""),
    ("most items", "write \"maximum number of items\""),
];
/// Words that are refused only at the beginning of a comment.
const REFUSED_FIRST: (&str, &str) =
    ("Most ", "write \"Maximum ...\", or say \"Most of the ...\" in a sentence");
/// Rooms whose comments are still to be rewritten.
const UNTOUCHED: [&str; 1] = ["crates/engine/src/"];

/// Findings in one file.
pub fn check(file: &TidyFile) -> Vec<Finding> {
    let is_source = file.extension() == "rs";
    let is_covered = is_source || file.extension() == "md";
    // This file has to name the words.
    let is_excepted = file.path.ends_with("tidy/words.rs")
        || file.path.starts_with("docs/measurements/")
        || UNTOUCHED.iter().any(|room| file.path.starts_with(room));
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
    let refused = REFUSED.into_iter().find(|(word, _)| contains_word(prose, word));
    let is_first =
        file.extension() == "rs" && prose.starts_with(REFUSED_FIRST.0) && !prose.starts_with("Most of");
    let (word, instead) = refused.or_else(|| is_first.then_some(REFUSED_FIRST))?;
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
        assert_eq!(found("crates/io/src/a.rs", "/// Most bytes.\n// Most of them.\n// belies\n"), [1]);
        assert_eq!(found("README.md", "whoever\nreads on\n"), [1]);
        assert!(found("crates/io/a.toml", "# lest\n").is_empty());
    }
}
