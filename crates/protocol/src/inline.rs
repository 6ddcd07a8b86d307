//! Inline requests: a line of words, as typed into `telnet` or `nc`.

use crate::ProtocolError;
use crate::arguments::Span;

/// Splits `line` (without its line end) into words, as Redis's `sdssplitargs` does: words are separated by white space;
/// `"…"` takes the escapes `\n \r \t \b \a \xHH` and `\` before any other byte; `'…'` takes only `\'`. A closing quote
/// must end the word.
///
/// The words are copied, unescaped, to the end of `bytes`, and their positions there are appended to `spans`.
pub(crate) fn split(line: &[u8], bytes: &mut Vec<u8>, spans: &mut Vec<Span>) -> Result<(), ProtocolError> {
    let mut rest = line;
    loop {
        rest = rest.trim_ascii_start();
        if rest.is_empty() {
            return Ok(());
        }
        let start = bytes.len();
        rest = word(rest, bytes)?;
        spans.push(Span::new(start, bytes.len() - start));
    }
}

/// Copies one word and returns what follows it.
fn word<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        match rest {
            [] => return Ok(rest),
            [space, ..] if space.is_ascii_whitespace() => return Ok(rest),
            [b'"', after @ ..] => return closed(double_quoted(after, out)?),
            [b'\'', after @ ..] => return closed(single_quoted(after, out)?),
            [byte, after @ ..] => {
                out.push(*byte);
                rest = after;
            }
        }
    }
}

/// What follows a closing quote, provided that the word ends there.
fn closed(rest: &[u8]) -> Result<&[u8], ProtocolError> {
    match rest.first() {
        Some(byte) if !byte.is_ascii_whitespace() => Err(ProtocolError::UnbalancedQuotes),
        _ => Ok(rest),
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        (rest, _) = match rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'"', after @ ..] => return Ok(after),
            [b'\\', b'x', high, low, after @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (after, out.push(hexadecimal(*high) << 4 | hexadecimal(*low)))
            }
            [b'\\', escaped, after @ ..] => (after, out.push(unescape(*escaped))),
            [byte, after @ ..] => (after, out.push(*byte)),
        };
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], out: &mut Vec<u8>) -> Result<&'a [u8], ProtocolError> {
    loop {
        (rest, _) = match rest {
            [] => return Err(ProtocolError::UnbalancedQuotes),
            [b'\\', b'\'', after @ ..] => (after, out.push(b'\'')),
            [b'\'', after @ ..] => return Ok(after),
            [byte, after @ ..] => (after, out.push(*byte)),
        };
    }
}

fn unescape(byte: u8) -> u8 {
    match byte {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

fn hexadecimal(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arguments;

    fn words(line: &str) -> Result<Vec<Vec<u8>>, ProtocolError> {
        let (mut bytes, mut spans) = (Vec::new(), Vec::new());
        split(line.as_bytes(), &mut bytes, &mut spans)?;
        Ok(Arguments::new(&bytes, &spans).iter().map(<[u8]>::to_vec).collect())
    }

    #[test]
    fn words_quotes_and_escapes() {
        let cases: [(&str, &[&[u8]]); 7] = [
            ("", &[]),
            ("  \t ", &[]),
            ("SET key value ", &[b"SET", b"key", b"value"]),
            (r#"a "b c" 'd e'"#, &[b"a", b"b c", b"d e"]),
            (r#""\x41\n\t\r\b\a\"\q""#, &[b"A\n\t\r\x08\x07\"q"]),
            (r"'it\'s' '\n'", &[b"it's", b"\\n"]),
            (r#"a"b" "" ''"#, &[b"ab", b"", b""]),
        ];
        for (line, expected) in cases {
            assert_eq!(words(line).unwrap(), expected, "{line:?}");
        }
    }

    #[test]
    fn open_quotes_are_refused() {
        for line in [r#""a"#, "'a", r#""a"b"#, "'a'b", r#""a\"#, "\"", "'"] {
            assert_eq!(words(line), Err(ProtocolError::UnbalancedQuotes), "{line:?}");
        }
    }
}
