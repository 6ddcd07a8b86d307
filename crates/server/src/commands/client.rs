//! `CLIENT …`: what a connection is called.

use std::fmt::Write as _;

use alluvium_protocol::Version;

use super::{Command, Context, Failure};
use crate::session::is_label;

const CONNECTION: Command = Command { flags: CONNECTION_FLAGS, group: "connection", ..Command::DEFAULT };
const CONNECTION_FLAGS: &[&str] = &["noscript", "loading", "stale"];

pub(super) const COMMAND: Command = Command {
    name: "client",
    arity: -2,
    since: "2.4.0",
    complexity: "Depends on subcommand",
    summary: "Name and identify this connection",
    flags: &[],
    subcommands: &[
        Command {
            name: "getname",
            arity: 2,
            since: "2.6.9",
            summary: "Return the name of the current connection",
            handler: get_name,
            ..CONNECTION
        },
        Command {
            name: "id",
            arity: 2,
            since: "5.0.0",
            summary: "Return the ID of the current connection",
            handler: id,
            ..CONNECTION
        },
        Command {
            name: "info",
            arity: 2,
            since: "6.2.0",
            summary: "Return information about the current client connection",
            handler: info,
            ..CONNECTION
        },
        Command {
            name: "setinfo",
            arity: 4,
            since: "7.2.0",
            summary: "Set client library meta attribute",
            syntax: "(LIB-NAME|LIB-VER) <value>",
            handler: set_info,
            ..CONNECTION
        },
        Command {
            name: "setname",
            arity: 3,
            since: "2.6.9",
            summary: "Assign the name <name> to the current connection",
            syntax: "<name>",
            handler: set_name,
            ..CONNECTION
        },
    ],
    ..CONNECTION
};

fn get_name(context: &mut Context<'_>) -> Result<(), Failure> {
    let name = context.session.name.as_bytes();
    context.reply.optional_bulk((!name.is_empty()).then_some(name));
    Ok(())
}

fn id(context: &mut Context<'_>) -> Result<(), Failure> {
    context.reply.integer(context.session.id as i64);
    Ok(())
}

fn info(context: &mut Context<'_>) -> Result<(), Failure> {
    let session = &*context.session;
    let mut line = format!("id={}", session.id);
    if let Some(peer) = session.peer {
        let _ = write!(line, " addr={peer}");
    }
    let _ = writeln!(
        line,
        " laddr={} name={} age={} db={} resp={} lib-name={} lib-ver={}",
        context.shared.address,
        session.name,
        session.opened.elapsed().as_secs(),
        session.database,
        if session.version == Version::Resp3 { 3 } else { 2 },
        session.library_name,
        session.library_version,
    );
    context.reply.verbatim_text(&line);
    Ok(())
}

fn set_info(context: &mut Context<'_>) -> Result<(), Failure> {
    let value = label(&context.arguments[3]);
    if context.is_word(2, "lib-name") {
        context.session.library_name = value
            .ok_or(Failure::Fixed("ERR lib-name cannot contain spaces, newlines or special characters."))?;
    } else if context.is_word(2, "lib-ver") {
        context.session.library_version = value
            .ok_or(Failure::Fixed("ERR lib-ver cannot contain spaces, newlines or special characters."))?;
    } else {
        let option = String::from_utf8_lossy(&context.arguments[2]);
        return Err(Failure::Text(format!("ERR Unrecognized option '{option}'")));
    }
    context.reply.ok();
    Ok(())
}

fn set_name(context: &mut Context<'_>) -> Result<(), Failure> {
    context.session.name = checked_name(&context.arguments[2])?;
    context.reply.ok();
    Ok(())
}

/// A name for a connection, for `HELLO` too.
pub(super) fn checked_name(name: &[u8]) -> Result<Box<str>, Failure> {
    label(name)
        .ok_or(Failure::Fixed("ERR Client names cannot contain spaces, newlines or special characters."))
}

fn label(text: &[u8]) -> Option<Box<str>> {
    is_label(text).then(|| String::from_utf8_lossy(text).into())
}
