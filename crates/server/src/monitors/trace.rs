//! How a command is shown to clients that monitor the server.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use alluvium_protocol::Arguments;

use crate::session::Session;
use crate::socket::Endpoint;

/// The line about a command, in Redis' form: time, database and client, and the arguments in quotes.
pub(crate) fn line(session: &Session, command: &str, arguments: Arguments<'_>) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut line = format!("{}.{:06} [{} ", now.as_secs(), now.subsec_micros(), session.database);
    match session.client.ends.as_ref().map(|ends| &ends.local) {
        _ if session.is_script => line.push_str("lua]"),
        Some(Endpoint::Unix(path)) => write!(line, "unix:{}]", path.display()).expect("a text takes all"),
        _ => write!(line, "{}]", session.client.peer()).expect("a text takes all"),
    }
    for (position, argument) in arguments.iter().enumerate() {
        line.push(' ');
        if is_secret(command, arguments, position) {
            line.push_str("\"(redacted)\"");
        } else {
            quote(argument, &mut line);
        }
    }
    line
}

/// Whether an argument is a password, or the name of a user that comes with one.
fn is_secret(command: &str, arguments: Arguments<'_>, position: usize) -> bool {
    match command {
        "auth" => position > 0,
        "hello" => {
            let is_auth = |at: Option<usize>| {
                let word = at.and_then(|at| arguments.get(at));
                word.is_some_and(|word| word.eq_ignore_ascii_case(b"auth"))
            };
            position > 2 && is_auth(position.checked_sub(1))
                || position > 3 && is_auth(position.checked_sub(2))
        }
        _ => false,
    }
}

fn quote(argument: &[u8], line: &mut String) {
    line.push('"');
    for byte in argument {
        match byte {
            b'\\' | b'"' => line.extend(['\\', char::from(*byte)]),
            b'\n' => line.push_str("\\n"),
            b'\r' => line.push_str("\\r"),
            b'\t' => line.push_str("\\t"),
            0x07 => line.push_str("\\a"),
            0x08 => line.push_str("\\b"),
            b' '..=b'~' => line.push(char::from(*byte)),
            _ => write!(line, "\\x{byte:02x}").expect("a text takes all"),
        }
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::acl::Users;
    use crate::client::{Client, Ends};
    use alluvium_protocol::{Limits, Parser};

    fn shown(words: &[&[u8]]) -> String {
        let mut frame = Vec::new();
        alluvium_protocol::request::encode(words, &mut frame);
        let mut parser = Parser::new(Limits::default());
        parser.parse(&frame).unwrap();
        let [peer, local] = [4000, 6379].map(|port| Endpoint::Internet(([127, 0, 0, 1], port).into()));
        let user = Arc::clone(Users::new(crate::commands::catalog(), None, None).unwrap().default());
        let session = Session::new(Client::new(1, Some(Ends { peer, local }), user));
        let command = String::from_utf8_lossy(words[0]).to_lowercase();
        let line = line(&session, &command, parser.arguments(&frame));
        line.split_once(' ').unwrap().1.to_owned()
    }

    #[test]
    fn arguments_are_quoted_and_secrets_hidden() {
        assert_eq!(
            shown(&[b"SET", b"a\"b\\", b"\x00\r\n\t\x07\x08\xff ~"]),
            r#"[0 127.0.0.1:4000] "SET" "a\"b\\" "\x00\r\n\t\a\b\xff ~""#
        );
        assert_eq!(shown(&[b"auth", b"u", b"p"]), r#"[0 127.0.0.1:4000] "auth" "(redacted)" "(redacted)""#);
        assert_eq!(
            shown(&[b"HELLO", b"3", b"AUTH", b"u", b"p", b"SETNAME", b"n"]),
            r#"[0 127.0.0.1:4000] "HELLO" "3" "AUTH" "(redacted)" "(redacted)" "SETNAME" "n""#
        );
    }
}
