//! [`Protocol`]: which protocol a connection speaks, found by its first request.
//!
//! A frame of Redis begins with `*`. A line in lower case is a request of memcached if it begins with a command of
//! memcached, and if the line would not be a request of Redis typed by a person: for `set` and `append`, three numbers
//! must follow the key, and for `incr` and `decr` an amount. `get key` and `touch key time`, which are legal in both
//! protocols, are memcached's, whose clients send nothing but lines. Everything else is Redis's.

/// The protocol of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// It has sent too little to tell.
    #[default]
    Undecided,
    Redis,
    Memcached,
}

/// Commands of memcached, as far as the name decides.
const COMMANDS: [&[u8]; 19] = [
    b"add",
    b"cas",
    b"delete",
    b"flush_all",
    b"gat",
    b"gats",
    b"get",
    b"gets",
    b"ma",
    b"md",
    b"me",
    b"mg",
    b"mn",
    b"ms",
    b"prepend",
    b"replace",
    b"stats",
    b"verbosity",
    b"version",
];

/// Maximum length of such a name.
const NAME_BYTES_MAX: usize = 9;

/// Maximum length of a line that must be whole: a key and four numbers.
const LINE_BYTES_MAX: usize = 512;

impl Protocol {
    /// The protocol of a connection that has sent `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        if !bytes.first().is_none_or(u8::is_ascii_lowercase) {
            return Self::Redis;
        }
        let Some(end) = bytes.iter().position(|byte| matches!(byte, b' ' | b'\r' | b'\n')) else {
            return if bytes.len() > NAME_BYTES_MAX { Self::Redis } else { Self::Undecided };
        };
        let name = &bytes[..end];
        // Positions of the words that must be numbers, and maximum number of words.
        let (numbers, words_max) = match name {
            b"set" | b"append" => (2..5, 6),
            b"incr" | b"decr" | b"touch" => (2..3, 4),
            name => return if COMMANDS.contains(&name) { Self::Memcached } else { Self::Redis },
        };
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            return if bytes.len() > LINE_BYTES_MAX { Self::Redis } else { Self::Undecided };
        };
        let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
        let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).collect();
        let are_numbers =
            words.get(numbers).is_some_and(|numbers| numbers.iter().all(|word| is_number(word)));
        if are_numbers && words.len() <= words_max { Self::Memcached } else { Self::Redis }
    }
}

fn is_number(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::Protocol::{self, Memcached, Redis, Undecided};

    #[test]
    fn the_first_request_decides() {
        for (bytes, protocol) in [
            ("", Undecided),
            ("*", Redis),
            ("GET key\r\n", Redis),
            ("PING\r\n", Redis),
            ("ping\r\n", Redis),
            ("\r\n", Redis),
            ("se", Undecided),
            ("set", Undecided),
            ("set key value\r\n", Redis),
            ("set key value ex 10\r\n", Redis),
            ("set key 1 px 10 nx\r\n", Redis),
            ("set key 0 0 5", Undecided),
            ("set key 0 0 5\r\n", Memcached),
            ("set key 0 -1 5 noreply\n", Memcached),
            ("append key tail\n", Redis),
            ("append key 0 0 5\r\n", Memcached),
            ("incr key\r\n", Redis),
            ("incr key 5\r\n", Memcached),
            ("touch key 10\r\n", Memcached),
            ("touch key other\r\n", Redis),
            ("get key\r\n", Memcached),
            ("get ", Memcached),
            ("gets a b\r\n", Memcached),
            ("mn\r\n", Memcached),
            ("mget a b\r\n", Redis),
            ("version\r\n", Memcached),
            ("quit\r\n", Redis),
            ("verbositya", Redis),
        ] {
            assert_eq!(Protocol::of(bytes.as_bytes()), protocol, "{bytes:?}");
        }
        let key = "k".repeat(600);
        assert_eq!(Protocol::of(format!("set {key}").as_bytes()), Redis);
    }
}
