//! `CLIENT SETNAME`, `GETNAME` and `SETINFO`: what a connection is called.

use super::CONNECTION;
use crate::commands::{Command, Context, Failure};
use crate::session::is_label;

pub(super) const GETNAME: Command = Command {
    name: "getname",
    arity: 2,
    since: "2.6.9",
    summary: "Return the name of the current connection",
    handler: get_name,
    ..CONNECTION
};

pub(super) const SETNAME: Command = Command {
    name: "setname",
    arity: 3,
    since: "2.6.9",
    summary: "Assign the name <name> to the current connection",
    syntax: "<name>",
    handler: set_name,
    ..CONNECTION
};

pub(super) const SETINFO: Command = Command {
    name: "setinfo",
    arity: 4,
    since: "7.2.0",
    summary: "Set client library meta attribute",
    syntax: "(LIB-NAME|LIB-VER) <value>",
    handler: set_info,
    ..CONNECTION
};

fn get_name(context: &mut Context<'_>) -> Result<(), Failure> {
    let labels = context.session.client.labels();
    context.reply.optional_bulk((!labels.name.is_empty()).then_some(labels.name.as_bytes()));
    Ok(())
}

fn set_info(context: &mut Context<'_>) -> Result<(), Failure> {
    let value = label(&context.arguments[3]);
    let mut labels = context.session.client.labels();
    if context.is_word(2, "lib-name") {
        labels.library_name = value
            .ok_or(Failure::Fixed("ERR lib-name cannot contain spaces, newlines or special characters."))?;
    } else if context.is_word(2, "lib-ver") {
        labels.library_version = value
            .ok_or(Failure::Fixed("ERR lib-ver cannot contain spaces, newlines or special characters."))?;
    } else {
        let option = String::from_utf8_lossy(&context.arguments[2]);
        return Err(Failure::Text(format!("ERR Unrecognized option '{option}'")));
    }
    context.reply.ok();
    Ok(())
}

fn set_name(context: &mut Context<'_>) -> Result<(), Failure> {
    context.session.client.labels().name = checked_name(&context.arguments[2])?;
    context.reply.ok();
    Ok(())
}

/// A name for a connection, for `HELLO` too.
pub(in crate::commands) fn checked_name(name: &[u8]) -> Result<Box<str>, Failure> {
    label(name)
        .ok_or(Failure::Fixed("ERR Client names cannot contain spaces, newlines or special characters."))
}

fn label(text: &[u8]) -> Option<Box<str>> {
    is_label(text).then(|| String::from_utf8_lossy(text).into())
}
