//! `AUTH [username] password`

use super::{Command, Context, Failure, acl};
use crate::acl::DEFAULT;

pub(super) const COMMAND: Command = Command {
    name: "auth",
    arity: -2,
    flags: &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"],
    group: "connection",
    summary: "Authenticate to the server",
    syntax: "[username] password",
    handler: auth,
    ..Command::DEFAULT
};

fn auth(context: &mut Context<'_>) -> Result<(), Failure> {
    let arguments = context.arguments;
    match arguments.len() {
        2 if context.shared.users.default().rules().accepts_any_password => {
            return Err(Failure::Fixed(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                 configuration is correct?",
            ));
        }
        2 => authenticate(context, DEFAULT, &arguments[1])?,
        3 => authenticate(context, &arguments[1], &arguments[2])?,
        _ => return Err(Failure::SYNTAX),
    }
    context.reply.ok();
    Ok(())
}

/// Lets the client be the user if the password is right.
pub(super) fn authenticate(context: &mut Context<'_>, user: &[u8], password: &[u8]) -> Result<(), Failure> {
    match context.shared.users.authenticate(user, password) {
        Some(user) => {
            context.session.authenticate(user);
            Ok(())
        }
        None => {
            acl::denied_password(context, user);
            Err(Failure::Fixed("WRONGPASS invalid username-password pair or user is disabled."))
        }
    }
}
