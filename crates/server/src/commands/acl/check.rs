//! Refusing commands that the user of a client may not execute, and closing connections that lost their permission.

use std::sync::Arc;

#[cfg(feature = "scripting")]
use alluvium_protocol::Arguments;

use super::request::request;
use super::{Command, Context, Failure};
#[cfg(feature = "scripting")]
use crate::acl::User;
use crate::acl::{Change, Denial, Place, Reason};
#[cfg(feature = "scripting")]
use crate::commands::dispatch::resolve_name;

/// Maximum length of a name in the server's log.
const USER_BYTES_MAX: usize = 64;

/// Whether the user of the client may execute `command`, which the arguments name. A refusal is logged.
pub(in crate::commands) fn check(context: &Context<'_>, command: &'static Command) -> Result<(), Failure> {
    let user = &context.session.user;
    if user.is_unrestricted() {
        return Ok(());
    }
    let request = request(command, context.arguments);
    let Err(denial) = user.check(&request) else { return Ok(()) };
    let (reason, object) = match denial {
        Denial::Command => (Reason::Command, request.name.as_bytes()),
        Denial::Key(position) => (Reason::Key, &context.arguments[position]),
        Denial::Channel(position) => (Reason::Channel, &context.arguments[position]),
    };
    let place = place(context);
    context.shared.acl_log.add(reason, place, object, &user.name, client_line(context));
    Err(Failure::Text(match place {
        Place::Script => denial.text_in_script(),
        Place::Transaction if context.is_in_transaction => denial.text_in_exec(),
        Place::Transaction | Place::TopLevel => denial.text(request.name),
    }))
}

/// Whether the user may execute the command that the arguments name; `None` if there is no such command.
#[cfg(feature = "scripting")]
pub(crate) fn is_allowed(user: &User, arguments: Arguments<'_>) -> Option<bool> {
    let command = resolve_name(arguments)?;
    Some(user.is_unrestricted() || user.check(&request(command, arguments)).is_ok())
}

/// Logs that a client gave a wrong password.
pub(in crate::commands) fn denied_password(context: &Context<'_>, user: &[u8]) {
    context.shared.denied_log.write(|more| {
        let user = String::from_utf8_lossy(&user[..user.len().min(USER_BYTES_MAX)]);
        tracing::warn!(client = context.session.client.peer(), %user, more, "a client gives a wrong password");
    });
    let command = &context.arguments[0];
    context.shared.acl_log.add(Reason::Password, place(context), command, user, client_line(context));
}

fn place(context: &Context<'_>) -> Place {
    if context.session.is_script {
        Place::Script
    } else if context.is_in_transaction || context.session.transaction.is_some() {
        Place::Transaction
    } else {
        Place::TopLevel
    }
}

fn client_line(context: &Context<'_>) -> String {
    // A script's session is not that of the client.
    let client = context.shared.connected.get(context.session.id);
    client.unwrap_or_else(|| Arc::clone(&context.session.client)).line(crate::commands::full_name)
}

/// Closes the connections of clients whose user was removed, or may not receive any more what they have subscribed to.
pub(in crate::commands) fn kill_clients(context: &mut Context<'_>, changes: &[Change]) {
    let shared = context.shared;
    let all = shared.connected.all();
    let mut killed = Vec::new();
    for change in changes {
        let (Change::Set(user) | Change::Removed(user)) = change;
        let mut ids: Vec<u64> =
            all.iter().filter(|client| Arc::ptr_eq(&client.user(), user)).map(|client| client.id).collect();
        if matches!(change, Change::Set(_)) {
            let rules = user.rules();
            let denied = shared.subscribers.sessions_where(|topic, name| !rules.allows_channel(topic, name));
            ids.retain(|id| denied.contains(id));
        }
        killed.append(&mut ids);
    }
    let this = context.session.id;
    if killed.contains(&this) {
        context.session.closing = true;
    }
    shared.connected.kill(killed.into_iter().filter(|id| *id != this));
}
