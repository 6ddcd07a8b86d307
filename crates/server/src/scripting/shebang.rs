//! The first line of a script or a library, if it begins with `#!`.

use alluvium_protocol::Limits;

use super::flags::Flags;

/// The first line, and the rest.
type Parts<'a> = (&'a [u8], &'a [u8]);

/// Splits `source` behind its first line, which is returned without `#!`. The rest begins with the end of that line, so
/// that lines keep their numbers. An error if the first line has no end.
fn split(source: &[u8]) -> Option<Result<Parts<'_>, ()>> {
    let rest = source.strip_prefix(b"#!")?;
    let end = rest.iter().position(|byte| *byte == b'\n').ok_or(());
    Some(end.map(|end| rest.split_at(end)))
}

/// What the first line of a script says about it, if it says anything, and the rest.
pub(super) fn of_script(source: &[u8]) -> Result<(Option<Flags>, &[u8]), String> {
    let Some(parts) = split(source) else { return Ok((None, source)) };
    let (line, rest) = parts.map_err(|()| "ERR Invalid script shebang")?;
    let line = String::from_utf8_lossy(line);
    let mut words = line.split_ascii_whitespace();
    if words.next() != Some("lua") {
        return Err(format!("ERR Unexpected engine in script shebang: {}", line.trim()));
    }
    let mut flags = Flags::default();
    for word in words {
        let names =
            word.strip_prefix("flags=").ok_or_else(|| format!("ERR Unknown lua shebang option: {word}"))?;
        for name in names.split(',').filter(|name| !name.is_empty()) {
            if !flags.add(name.as_bytes()) {
                return Err(format!("ERR Unexpected flag in script shebang: {name}"));
            }
        }
    }
    Ok((Some(flags), rest))
}

/// The name of a library, and what follows its first line.
pub(super) fn of_library(source: &[u8]) -> Result<(String, &[u8]), String> {
    let parts = split(source).ok_or("ERR Missing library metadata")?;
    let (line, body) = parts.map_err(|()| "ERR Invalid library metadata")?;
    // The words have quotes as those of an inline request. The engine is the first one, and may be empty.
    let request = [&b"#!"[..], line, b"\n"].concat();
    let words = match alluvium_protocol::parse(&request, Limits::default()) {
        Ok(Some((words, _))) if !words.is_empty() => words,
        _ => return Err("ERR Invalid library metadata".to_owned()),
    };
    let mut name = None;
    for word in &words[1..] {
        let given = word.split_at_checked(5).filter(|(option, _)| option.eq_ignore_ascii_case(b"name="));
        let Some((_, given)) = given else {
            return Err(format!("ERR Invalid metadata value given: {}", String::from_utf8_lossy(word)));
        };
        if name.replace(given).is_some() {
            return Err("ERR Invalid metadata value, name argument was given multiple times".to_owned());
        }
    }
    let name = name.ok_or("ERR Library name was not given")?;
    let name = checked_name(name)?;
    let engine = &words[0][2..];
    if !engine.eq_ignore_ascii_case(b"lua") {
        return Err(format!("ERR Engine '{}' not found", String::from_utf8_lossy(engine)));
    }
    Ok((name, body))
}

/// Maximum length of the name of a library or a function.
const NAME_BYTES_MAX: usize = 1024;

/// The name of a library or a function, if it can be one.
pub(super) fn checked_name(name: &[u8]) -> Result<String, String> {
    let is_legal = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if name.is_empty() || !name.iter().all(is_legal) {
        return Err("ERR Library names can only contain letters, numbers, or underscores(_) and must be at least one \
                    character long"
            .to_owned());
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(format!("ERR names of libraries and functions have at most {NAME_BYTES_MAX} bytes"));
    }
    Ok(String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_has_a_name_and_an_engine() {
        for (source, expected) in [
            ("#!lua name=a\nx", Ok(("a", "\nx"))),
            ("#!LUA NAME=\"a_1\" \r\n", Ok(("a_1", "\n"))),
            ("return 1", Err("ERR Missing library metadata")),
            ("#!lua name=a", Err("ERR Invalid library metadata")),
            ("#!lua name=\"a\n", Err("ERR Invalid library metadata")),
            ("#!lua\n", Err("ERR Library name was not given")),
            (
                "#!lua name=a name=b\n",
                Err("ERR Invalid metadata value, name argument was given multiple times"),
            ),
            ("#!lua name=a b=c\n", Err("ERR Invalid metadata value given: b=c")),
            ("#! name=a\n", Err("ERR Engine '' not found")),
            ("#!js name=a\n", Err("ERR Engine 'js' not found")),
        ] {
            let found = of_library(source.as_bytes());
            let found = found.as_ref().map(|(name, body)| (&name[..], std::str::from_utf8(body).unwrap()));
            assert_eq!(found.map_err(|text| &text[..]), expected, "{source}");
        }
        for name in ["", "a-b", "ä", "a b"] {
            assert!(checked_name(name.as_bytes()).is_err(), "{name}");
        }
        assert!(checked_name(&[b'a'; NAME_BYTES_MAX]).is_ok());
        assert!(checked_name(&[b'a'; NAME_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn scripts_may_have_flags() {
        let flags =
            |source: &str| of_script(source.as_bytes()).map(|(flags, _)| flags.map(|flags| flags.writes()));
        assert_eq!(flags("return 1"), Ok(None));
        assert_eq!(flags("#!lua\n"), Ok(Some(true)));
        assert_eq!(flags("#!lua flags=allow-oom,no-writes\n"), Ok(Some(false)));
        assert!(flags("#!lua flags=other\n").is_err());
        assert!(flags("#!lua").is_err());
    }
}
