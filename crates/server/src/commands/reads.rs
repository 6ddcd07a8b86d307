//! Which items a request reads, as far as its arguments say.

use alluvium_protocol::Arguments;

use super::find;

/// Calls `each` with the keys whose items the request will read. Returns whether it is a request on keys other than a
/// plain get, which the worker looks up together with others anyway.
pub(crate) fn keys_to_read(arguments: Arguments<'_>, each: &mut dyn FnMut(&[u8])) -> bool {
    let Some(command) = find(&arguments[0]) else { return false };
    let (first, last, step) = command.keys;
    if first == 0 || !command.accepts(arguments.len()) {
        return false;
    }
    let is_blind = match command.name {
        "set" => !arguments.from(3).iter().any(depends_on_item),
        "mset" | "setex" | "psetex" => true,
        _ => false,
    };
    if !is_blind {
        let last = if last < 0 { arguments.len() as i32 + last } else { last };
        for position in (first..=last).step_by(step.max(1) as usize) {
            each(&arguments[position as usize]);
        }
    }
    command.name != "get"
}

/// Whether this option makes `SET` read the item that it replaces.
fn depends_on_item(option: &[u8]) -> bool {
    [&b"nx"[..], b"xx", b"get", b"keepttl"].iter().any(|name| option.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use alluvium_protocol::{Limits, Parser, request};

    use super::keys_to_read;

    fn keys(words: &[&str]) -> (Vec<String>, bool) {
        let (mut frame, mut parser) = (Vec::new(), Parser::new(Limits::default()));
        request::encode(words, &mut frame);
        parser.parse(&frame).unwrap();
        let mut keys = Vec::new();
        let arguments = parser.arguments(&frame);
        let is_other =
            keys_to_read(arguments, &mut |key| keys.push(String::from_utf8_lossy(key).into_owned()));
        (keys, is_other)
    }

    #[test]
    fn requests_read_the_keys_that_they_depend_on() {
        let none: [&str; 0] = [];
        for (words, expected, is_other) in [
            (&["GET", "a"][..], &["a"][..], false),
            (&["INCR", "a"], &["a"], true),
            (&["MGET", "a", "b"], &["a", "b"], true),
            (&["HGET", "a", "field"], &["a"], true),
            (&["DEL", "a", "b"], &["a", "b"], true),
            (&["SET", "a", "value"], &none, true),
            (&["SET", "a", "nx"], &none, true),
            (&["SET", "a", "value", "NX"], &["a"], true),
            (&["SET", "a", "value", "EX", "10"], &none, true),
            (&["MSET", "a", "1"], &none, true),
            (&["RENAME", "a", "b"], &["a", "b"], true),
            (&["PING"], &none, false),
            (&["GET"], &none, false),
            (&["unknown", "a"], &none, false),
        ] {
            let (found, other) = keys(words);
            assert_eq!(
                (&found.iter().map(String::as_str).collect::<Vec<_>>()[..], other),
                (expected, is_other)
            );
        }
    }
}
