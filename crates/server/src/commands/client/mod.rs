//! `CLIENT …`: this connection and the others.

mod info;
mod kill;
mod labels;
mod list;
mod pause;
mod reply;
mod tracking;

use super::{Command, Context, Failure};
use crate::client::Client;

pub(super) use labels::checked_name;

const CONNECTION: Command = Command { flags: CONNECTION_FLAGS, group: "connection", ..Command::DEFAULT };
const CONNECTION_FLAGS: &[&str] = &["noscript", "loading", "stale"];
const ADMIN_FLAGS: &[&str] = &["admin", "noscript", "loading", "stale"];

pub(super) const COMMAND: Command = Command {
    name: "client",
    arity: -2,
    since: "2.4.0",
    complexity: "Depends on subcommand",
    summary: "Name, list and control connections",
    flags: &[],
    subcommands: &[
        tracking::CACHING,
        labels::GETNAME,
        tracking::GETREDIR,
        Command {
            name: "id",
            arity: 2,
            since: "5.0.0",
            summary: "Return the ID of the current connection",
            handler: id,
            ..CONNECTION
        },
        info::COMMAND,
        kill::COMMAND,
        list::COMMAND,
        Command {
            name: "no-evict",
            arity: 3,
            flags: ADMIN_FLAGS,
            since: "7.0.0",
            summary: "Protect current client connection from eviction",
            syntax: "(ON|OFF)",
            handler: no_evict,
            ..CONNECTION
        },
        pause::PAUSE,
        reply::COMMAND,
        labels::SETINFO,
        labels::SETNAME,
        tracking::TRACKING,
        tracking::TRACKINGINFO,
        Command {
            name: "unblock",
            arity: -3,
            flags: ADMIN_FLAGS,
            since: "5.0.0",
            summary: "Unblock the specified blocked client",
            syntax: "<clientid> [TIMEOUT|ERROR]",
            handler: unblock,
            ..CONNECTION
        },
        pause::UNPAUSE,
    ],
    ..CONNECTION
};

fn id(context: &mut Context<'_>) -> Result<(), Failure> {
    context.reply.integer(context.session.id as i64);
    Ok(())
}

/// No client is evicted: the flag is shown in the list only.
fn no_evict(context: &mut Context<'_>) -> Result<(), Failure> {
    let stays = match () {
        () if context.is_word(2, "on") => true,
        () if context.is_word(2, "off") => false,
        () => return Err(Failure::SYNTAX),
    };
    context.session.client.stays.store(stays, std::sync::atomic::Ordering::Relaxed);
    context.reply.ok();
    Ok(())
}

/// No command blocks a client.
fn unblock(context: &mut Context<'_>) -> Result<(), Failure> {
    if context.arguments.len() > 4 {
        return Err(Failure::SYNTAX);
    }
    let is_legal =
        context.arguments.len() == 3 || context.is_word(3, "timeout") || context.is_word(3, "error");
    if !is_legal {
        return Err(Failure::Fixed("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR"));
    }
    context.integer(2)?;
    context.reply.integer(0);
    Ok(())
}

/// Lets the list show this connection as it is within the command.
fn show_this(context: &Context<'_>) {
    let session = &context.session;
    session.client.show(session, std::time::Instant::now());
    let digits = |number: usize| number.to_string().len();
    let request: usize =
        context.arguments.iter().map(|argument| argument.len() + digits(argument.len()) + 5).sum();
    session.client.show_buffers(request + digits(context.arguments.len()) + 3, 0);
}

/// The kinds of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientType {
    Normal,
    Subscriber,
    /// A connection of replication. This server has none.
    Replication,
}

impl ClientType {
    /// The type that the argument at `at` names.
    fn parse(context: &Context<'_>, at: usize) -> Result<Self, Failure> {
        let words = [
            ("normal", Self::Normal),
            ("pubsub", Self::Subscriber),
            ("master", Self::Replication),
            ("replica", Self::Replication),
            ("slave", Self::Replication),
        ];
        let found = words.into_iter().find(|(word, _)| context.is_word(at, word));
        found.map(|(_, kind)| kind).ok_or_else(|| {
            let name = String::from_utf8_lossy(&context.arguments[at]);
            Failure::Text(format!("ERR Unknown client type '{name}'"))
        })
    }

    fn includes(self, client: &Client) -> bool {
        match self {
            Self::Normal => !client.is_subscriber(),
            Self::Subscriber => client.is_subscriber(),
            Self::Replication => false,
        }
    }
}
