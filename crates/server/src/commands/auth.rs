//! `AUTH [username] password`

use super::{Command, Context, Failure};

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
        2 if context.shared.options.password.is_none() => {
            return Err(Failure::Fixed(
                "ERR AUTH <password> called without any password configured for the default user. Are you sure your \
                 configuration is correct?",
            ));
        }
        2 => authenticate(context, b"default", &arguments[1])?,
        3 => authenticate(context, &arguments[1], &arguments[2])?,
        _ => return Err(Failure::SYNTAX),
    }
    context.reply.ok();
    Ok(())
}

/// Lets the client in if the password is right. The one user is `default`, who passes with any if there is none.
pub(super) fn authenticate(context: &mut Context<'_>, user: &[u8], password: &[u8]) -> Result<(), Failure> {
    let is_right = context.shared.options.password.as_ref().is_none_or(|expected| expected.is(password));
    if user != b"default" || !is_right {
        return Err(Failure::Fixed("WRONGPASS invalid username-password pair or user is disabled."));
    }
    context.session.is_authenticated = true;
    Ok(())
}
