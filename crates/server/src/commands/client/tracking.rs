//! `CLIENT TRACKING` and what belongs to it: clients are not notified of changes to keys that they have read.

use super::CONNECTION;
use crate::commands::{Command, Context, Failure};

pub(super) const CACHING: Command = Command {
    name: "caching",
    arity: 3,
    since: "6.0.0",
    summary: "Enable/disable tracking of the keys for next command in OPTIN/OPTOUT modes",
    syntax: "(YES|NO)",
    handler: caching,
    ..CONNECTION
};

pub(super) const GETREDIR: Command = Command {
    name: "getredir",
    arity: 2,
    since: "6.0.0",
    summary: "Return the client ID we are redirecting to when tracking is enabled",
    handler: get_redirection,
    ..CONNECTION
};

pub(super) const TRACKING: Command = Command {
    name: "tracking",
    arity: -3,
    since: "6.0.0",
    summary: "Disable tracking; it cannot be enabled",
    syntax: "OFF",
    handler: tracking,
    ..CONNECTION
};

pub(super) const TRACKINGINFO: Command = Command {
    name: "trackinginfo",
    arity: 2,
    since: "6.2.0",
    summary: "Report tracking status for the current connection",
    handler: tracking_info,
    ..CONNECTION
};

fn caching(_: &mut Context<'_>) -> Result<(), Failure> {
    Err(Failure::Fixed(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled",
    ))
}

fn get_redirection(context: &mut Context<'_>) -> Result<(), Failure> {
    context.reply.integer(-1);
    Ok(())
}

fn tracking(context: &mut Context<'_>) -> Result<(), Failure> {
    if context.is_word(2, "on") {
        return Err(Failure::Fixed("ERR this server does not track the keys that clients have read"));
    }
    if !context.is_word(2, "off") {
        return Err(Failure::SYNTAX);
    }
    context.reply.ok();
    Ok(())
}

fn tracking_info(context: &mut Context<'_>) -> Result<(), Failure> {
    let reply = &mut context.reply;
    reply.map(3);
    reply.bulk(b"flags");
    reply.set(1);
    reply.bulk(b"off");
    reply.bulk(b"redirect");
    reply.integer(-1);
    reply.bulk(b"prefixes");
    reply.array(0);
    Ok(())
}
