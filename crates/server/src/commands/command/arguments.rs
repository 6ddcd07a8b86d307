//! The arguments of commands in `COMMAND DOCS`, read from their syntax.
//!
//! Words in capitals are tokens; other words are arguments, whose names say their types. `[ ]` is optional, `( )`
//! groups, `...` repeats what is before it. Between brackets `|` separates sequences, elsewhere single words.

use alluvium_protocol::Reply;

/// An argument, or a group of them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Argument {
    name: String,
    kind: Kind,
    token: Option<String>,
    is_optional: bool,
    is_multiple: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// A type of Redis.
    Value(&'static str),
    OneOf(Vec<Argument>),
    Block(Vec<Argument>),
}

/// Number of arguments that [`write`] writes.
pub(super) fn len(syntax: &str) -> usize {
    parse(syntax).len()
}

/// Writes the arguments as an array of maps.
pub(super) fn write(syntax: &str, reply: &mut Reply<'_>) {
    write_all(&parse(syntax), reply);
}

fn write_all(arguments: &[Argument], reply: &mut Reply<'_>) {
    reply.array(arguments.len());
    for Argument { name, kind, token, is_optional, is_multiple } in arguments {
        let (kind, members) = match kind {
            Kind::Value(kind) => (*kind, None),
            Kind::OneOf(members) => ("oneof", Some(members)),
            Kind::Block(members) => ("block", Some(members)),
        };
        let flags: Vec<&str> = [("optional", is_optional), ("multiple", is_multiple)]
            .into_iter()
            .filter_map(|(flag, is_set)| is_set.then_some(flag))
            .collect();
        let optional = [token.is_some(), !flags.is_empty(), members.is_some()];
        reply.map(2 + optional.into_iter().filter(|is_there| *is_there).count());
        for (title, text) in [("name", &name[..]), ("type", kind)] {
            reply.bulk(title.as_bytes());
            reply.bulk(text.as_bytes());
        }
        if let Some(token) = token {
            reply.bulk(b"token");
            reply.bulk(token.as_bytes());
        }
        if !flags.is_empty() {
            reply.bulk(b"flags");
            reply.set(flags.len());
            flags.iter().for_each(|flag| reply.simple(flag));
        }
        if let Some(members) = members {
            reply.bulk(b"arguments");
            write_all(members, reply);
        }
    }
}

fn parse(syntax: &str) -> Vec<Argument> {
    let mut arguments = Vec::new();
    let mut rest = syntax;
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { break };
        let length = match first {
            '[' | '(' => group_len(rest),
            _ => rest.find(' ').unwrap_or(rest.len()),
        };
        let (part, after) = rest.split_at(length);
        rest = after;
        match first {
            _ if part == "..." => repeat(&mut arguments),
            '[' => arguments
                .extend(group(&part[1..length - 1]).map(|group| Argument { is_optional: true, ..group })),
            '(' => arguments.extend(group(&part[1..length - 1])),
            _ => arguments.extend(one_of(part.split('|').map(word).collect())),
        }
    }
    with_tokens(arguments)
}

/// The bytes of the group at the front, with its brackets.
fn group_len(text: &str) -> usize {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' | b'(' => depth += 1,
            b']' | b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

/// The sequences of a group, separated by `|` outside inner groups.
fn group(text: &str) -> Option<Argument> {
    let (mut sequences, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' | b'(' => depth += 1,
            b']' | b')' => depth -= 1,
            b'|' if depth == 0 => {
                sequences.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    sequences.push(&text[start..]);
    one_of(sequences.into_iter().filter_map(|sequence| block(parse(sequence))).collect())
}

fn block(mut arguments: Vec<Argument>) -> Option<Argument> {
    if arguments.len() <= 1 {
        return arguments.pop();
    }
    Some(bundle(arguments, Kind::Block))
}

fn one_of(mut arguments: Vec<Argument>) -> Option<Argument> {
    if arguments.len() <= 1 {
        return arguments.pop();
    }
    Some(bundle(arguments, Kind::OneOf))
}

fn bundle(arguments: Vec<Argument>, kind: fn(Vec<Argument>) -> Kind) -> Argument {
    let names: Vec<&str> = arguments.iter().map(|argument| &argument.name[..]).collect();
    let name = names.join("_");
    Argument { name, kind: kind(arguments), token: None, is_optional: false, is_multiple: false }
}

fn word(text: &str) -> Argument {
    let name = text.trim_matches(['<', '>']);
    let is_token = name.chars().any(char::is_uppercase) && !name.chars().any(char::is_lowercase);
    let kind = match name {
        _ if is_token => "pure-token",
        _ if name.contains("key") && name != "numkeys" || name == "destination" => "key",
        _ if name.contains("pattern") => "pattern",
        "seconds" | "milliseconds" | "count" | "cursor" | "offset" | "increment" | "decrement" | "index"
        | "numkeys" | "ttl" | "start" | "end" | "timeout" | "len" | "limit" => "integer",
        "time" | "timestamp" => "unix-time",
        _ => "string",
    };
    Argument {
        name: name.to_ascii_lowercase(),
        kind: Kind::Value(kind),
        token: is_token.then(|| name.to_owned()),
        is_optional: false,
        is_multiple: false,
    }
}

/// Marks the argument before `...`.
fn repeat(arguments: &mut [Argument]) {
    if let Some(last) = arguments.last_mut() {
        last.is_multiple = true;
    }
}

/// A token belongs to the value behind it, and a repetition to what it repeats.
fn with_tokens(arguments: Vec<Argument>) -> Vec<Argument> {
    let mut joined: Vec<Argument> = Vec::new();
    for mut argument in arguments {
        if let Some(last) = joined.last_mut() {
            if argument.is_optional && argument.is_multiple && argument.name == last.name {
                last.is_multiple = true;
                continue;
            }
            let is_value = argument.kind != Kind::Value("pure-token") && !argument.is_optional;
            if is_value && last.kind == Kind::Value("pure-token") && !last.is_optional {
                argument.token = last.token.take();
                joined.pop();
            }
        }
        joined.push(argument);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::COMMANDS;

    /// One line for a list of arguments.
    fn outline(arguments: &[Argument]) -> String {
        let each = arguments.iter().map(|argument| {
            let inner = match &argument.kind {
                Kind::Value(kind) => format!("{}:{kind}", argument.name),
                Kind::OneOf(members) => format!("one({})", outline(members)),
                Kind::Block(members) => format!("block({})", outline(members)),
            };
            let token = argument.token.as_deref().unwrap_or_default();
            let optional = if argument.is_optional { "?" } else { "" };
            let multiple = if argument.is_multiple { "*" } else { "" };
            format!("{token}{}{inner}{optional}{multiple}", if token.is_empty() { "" } else { "=" })
        });
        each.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn syntax_becomes_arguments() {
        for (syntax, expected) in [
            ("", ""),
            ("key value", "key:key value:string"),
            ("key [key ...]", "key:key*"),
            ("[section [section ...]]", "section:string?*"),
            ("key [EX seconds|PERSIST]", "key:key one(EX=seconds:integer PERSIST=persist:pure-token)?"),
            ("AND|OR destkey", "one(AND=and:pure-token OR=or:pure-token) destkey:key"),
            ("[MATCH pattern] [COUNT count]", "MATCH=pattern:pattern? COUNT=count:integer?"),
            ("key value [key value ...]", "key:key value:string block(key:key value:string*)?"),
            ("(ON|OFF)", "one(ON=on:pure-token OFF=off:pure-token)"),
        ] {
            assert_eq!(outline(&parse(syntax)), expected, "{syntax}");
        }
    }

    #[test]
    fn the_syntax_of_every_command_is_read() {
        for command in COMMANDS.iter().flat_map(|command| std::iter::once(command).chain(command.subcommands))
        {
            assert_eq!(parse(command.syntax).is_empty(), command.syntax.is_empty(), "{}", command.name);
        }
    }
}
