//! Where a request has its keys, and what its command does with them.

use alluvium_protocol::{Arguments, integer};

use super::Command;

/// The positions of the keys of `command`, which the arguments name. None are found if the arguments are wrong.
pub(crate) fn key_positions(command: &Command, arguments: Arguments<'_>) -> Vec<usize> {
    if let Some(at) = counted_at(command) {
        let count = arguments.get(at).and_then(integer::parse).and_then(|count| usize::try_from(count).ok());
        let last = count.and_then(|count| at.checked_add(count)).filter(|last| *last < arguments.len());
        return last.map_or_else(Vec::new, |last| (at + 1..=last).collect());
    }
    let (first, last, step) = command.keys;
    if first == 0 {
        return Vec::new();
    }
    let end = arguments.len() as i32;
    let last = if last < 0 { end + last } else { last.min(end - 1) };
    (first..=last).step_by(step.max(1) as usize).map(|position| position as usize).collect()
}

/// Where a command has the number of its keys, which come behind it.
pub(super) fn counted_at(command: &Command) -> Option<usize> {
    match command.name {
        "eval" | "eval_ro" | "evalsha" | "evalsha_ro" | "fcall" | "fcall_ro" => Some(2),
        "sintercard" => Some(1),
        _ => None,
    }
}

/// What the command does with its key of this number, in the words of Redis: `access` says that the reply depends on
/// the value.
pub(crate) fn key_flags(
    command: &Command,
    number: usize,
    arguments: Arguments<'_>,
) -> &'static [&'static str] {
    match (command.name, number) {
        ("append" | "sadd" | "hsetnx", _) | ("smove", 1) => &["RW", "insert"],
        ("setnx" | "msetnx", _) | ("renamenx", 1) => &["OW", "insert"],
        ("setex" | "psetex" | "mset" | "restore", _)
        | ("rename" | "copy", 1)
        | ("bitop" | "sdiffstore" | "sunionstore", 0) => &["OW", "update"],
        ("set", _) if !has_word(arguments, 3, b"get") => &["OW", "update"],
        ("sinterstore", 0) => &["RW", "update"],
        ("del" | "unlink", _) => &["RM", "delete"],
        ("hdel" | "srem", _) => &["RW", "delete"],
        ("getdel" | "spop", _) | ("rename" | "renamenx" | "smove", 0) => &["RW", "access", "delete"],
        ("bitfield", _) if !["set", "incrby"].iter().any(|word| has_word(arguments, 2, word.as_bytes())) => {
            &["RO", "access"]
        }
        (
            "set" | "move" | "getset" | "getex" | "incr" | "decr" | "incrby" | "decrby" | "incrbyfloat"
            | "hincrby" | "hincrbyfloat" | "setbit" | "bitfield" | "eval" | "evalsha" | "fcall",
            _,
        ) => &["RW", "access", "update"],
        ("copy" | "bitop" | "sdiffstore" | "sinterstore" | "sunionstore", _) => &["RO", "access"],
        (
            "exists" | "hexists" | "hlen" | "hstrlen" | "scard" | "sismember" | "smismember" | "strlen"
            | "touch" | "type" | "watch" | "usage" | "encoding" | "freq" | "idletime" | "refcount",
            _,
        ) => &["RO"],
        _ if command.is_write() => &["RW", "update"],
        _ => &["RO", "access"],
    }
}

/// Whether one of the arguments from `position` on is `word`, in lower case, in any case.
fn has_word(arguments: Arguments<'_>, position: usize, word: &[u8]) -> bool {
    let from = position.min(arguments.len());
    arguments.from(from).iter().any(|argument| argument.eq_ignore_ascii_case(word))
}
