//! Glob patterns of `SCAN MATCH` and `CONFIG GET`.

/// Whether `text` matches `pattern`, as Redis's `stringmatchlen`: `*` any bytes, `?` one byte, `[a-c]` `[^a-c]` one of
/// (or outside) a set with `\` escapes, `\` takes the next byte literally; with `fold_case`, ASCII case does not
/// count.
///
/// Cost: O(pattern × text) at worst. Only the last `*` is ever backtracked to, which suffices because an earlier star
/// could match nothing that the later one cannot; Redis recurses at every star and takes exponential time.
pub fn matches(pattern: &[u8], text: &[u8], fold_case: bool) -> bool {
    let (mut at, mut position) = (0, 0);
    // Pattern position after the last star, and the text position up to which that star reaches.
    let mut star: Option<(usize, usize)> = None;
    loop {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            star = Some((at, position));
            continue;
        }
        if let Some(byte) = text.get(position) {
            if let Some(next) = single(pattern, at, *byte, fold_case) {
                (at, position) = (next, position + 1);
                continue;
            }
        } else if at == pattern.len() {
            return true;
        }
        match star {
            Some((after, reach)) if reach < text.len() => {
                star = Some((after, reach + 1));
                (at, position) = (after, reach + 1);
            }
            _ => return false,
        }
    }
}

/// Where the pattern continues after its element at `at` has matched `byte`; `None` if that does not match.
fn single(pattern: &[u8], at: usize, byte: u8, fold_case: bool) -> Option<usize> {
    let fold = |byte: u8| if fold_case { byte.to_ascii_lowercase() } else { byte };
    match *pattern.get(at)? {
        b'?' => Some(at + 1),
        b'[' => {
            let (matched, next) = set(pattern, at + 1, fold(byte), fold);
            matched.then_some(next)
        }
        // A backslash at the very end stands for itself.
        b'\\' if at + 1 < pattern.len() => (fold(pattern[at + 1]) == fold(byte)).then_some(at + 2),
        literal => (fold(literal) == fold(byte)).then_some(at + 1),
    }
}

/// Whether `byte` is in the set whose text starts at `at`, and where the pattern continues. An unclosed set ends with
/// the pattern.
fn set(pattern: &[u8], mut at: usize, byte: u8, fold: impl Fn(u8) -> u8) -> (bool, usize) {
    let negated = pattern.get(at) == Some(&b'^');
    at += usize::from(negated);
    let mut found = false;
    loop {
        match pattern[at.min(pattern.len())..] {
            [] => return (found != negated, pattern.len()),
            [b']', ..] => return (found != negated, at + 1),
            [b'\\', escaped, ..] => {
                found |= fold(escaped) == byte;
                at += 2;
            }
            [low, b'-', high, ..] => {
                let (low, high) = (fold(low), fold(high));
                found |= (low.min(high)..=low.max(high)).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                found |= fold(literal) == byte;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The definition, without sets: try every way.
    fn reference(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([], _) => text.is_empty(),
            ([b'*', rest @ ..], _) => (0..=text.len()).any(|skip| reference(rest, &text[skip..])),
            ([b'?', rest @ ..], [_, text @ ..]) => reference(rest, text),
            ([b'\\', literal, rest @ ..] | [literal, rest @ ..], [byte, text @ ..]) => {
                literal == byte && reference(rest, text)
            }
            _ => false,
        }
    }

    #[test]
    fn cases() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("*", "", true),
            ("h?llo", "hello", true),
            ("h[ae]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            (r"h\*llo", "h*llo", true),
            (r"h\*llo", "hello", false),
            (r"[\]]", "]", true),
            ("[abc", "c", true),
            ("[", "x", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
            ("user:*", "user:1", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes(), false), expected, "{pattern} {text}");
        }
        assert!(matches(b"MaxMemory*", b"maxmemory-policy", true));
        assert!(!matches(b"MaxMemory*", b"maxmemory-policy", false));
    }

    #[test]
    fn many_stars_are_not_exponential() {
        assert!(matches(&b"a*".repeat(100), &[b'a'; 10_000], false));
        assert!(!matches(&[&b"a*".repeat(100)[..], b"b"].concat(), &[b'a'; 10_000], false));
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(pattern in "[ab*?]{0,8}(\\\\[ab*])?", text in "[ab*]{0,10}") {
            prop_assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes(), false),
                reference(pattern.as_bytes(), text.as_bytes())
            );
        }

        #[test]
        fn arbitrary_patterns_never_panic(pattern: Vec<u8>, text: Vec<u8>, fold_case: bool) {
            matches(&pattern, &text, fold_case);
        }
    }
}
