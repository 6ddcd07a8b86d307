//! `OBJECT …`: how a value is stored, as far as clients ask.

use alluvium_protocol::integer;

use super::{Command, Context, Failure};
use crate::store::Kind;

const OBJECT: Command = Command {
    arity: 3,
    flags: &["readonly"],
    keys: (2, 2, 1),
    syntax: "<key>",
    since: "2.2.3",
    ..Command::DEFAULT
};

pub(super) const COMMAND: Command = Command {
    name: "object",
    arity: -2,
    since: "2.2.3",
    complexity: "Depends on subcommand",
    summary: "Inspect how a value is stored",
    subcommands: &[
        Command {
            name: "encoding",
            summary: "Return the kind of internal representation used in order to store the value of a <key>",
            handler: encoding,
            ..OBJECT
        },
        Command {
            name: "freq",
            since: "4.0.0",
            summary: "Return the access frequency index of the <key>, which is not tracked",
            handler: frequency,
            ..OBJECT
        },
        Command {
            name: "idletime",
            summary: "Return the seconds since the last access to the key, which are not tracked: always 0",
            handler: |context| number(context, 0),
            ..OBJECT
        },
        Command {
            name: "refcount",
            summary: "Return the number of references of the value associated with the specified <key>",
            handler: |context| number(context, 1),
            ..OBJECT
        },
    ],
    ..Command::DEFAULT
};

/// Longer values are not stored beside their object in Redis.
const EMBEDDED_BYTES_MAX: usize = 44;

/// What Redis would say of a value that was set in one piece. There is no such difference here.
fn encoding(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut encoding = None;
    context.store().get_any(&context.arguments[2], &mut |found| {
        encoding = Some(match found.value {
            _ if found.kind != Kind::String => "hashtable",
            value if integer::parse(value).is_some() => "int",
            value if value.len() <= EMBEDDED_BYTES_MAX => "embstr",
            _ => "raw",
        });
    })?;
    context.reply.optional_bulk(encoding.map(str::as_bytes));
    Ok(())
}

fn frequency(context: &mut Context<'_>) -> Result<(), Failure> {
    if context.store().contains(&context.arguments[2])? {
        return Err(Failure::Fixed(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that when \
             switching between policies at runtime LRU and LFU data will take some time to adjust.",
        ));
    }
    context.reply.null();
    Ok(())
}

/// Replies with a number if there is a key.
fn number(context: &mut Context<'_>, number: i64) -> Result<(), Failure> {
    if context.store().contains(&context.arguments[2])? {
        context.reply.integer(number);
    } else {
        context.reply.null();
    }
    Ok(())
}
