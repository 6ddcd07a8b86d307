//! `ACL GETUSER username`

use alluvium_protocol::Reply;

use super::{ACL, Command, Context, Failure};
use crate::acl::Permissions;

pub(super) const COMMAND: Command = Command {
    name: "getuser",
    arity: 3,
    complexity: "O(n) in the number of rules of the user",
    summary: "Get the user's details",
    syntax: "<username>",
    handler: get_user,
    ..ACL
};

fn get_user(context: &mut Context<'_>) -> Result<(), Failure> {
    let Some(user) = context.shared.users.get(&context.arguments[2]) else {
        context.reply.null();
        return Ok(());
    };
    let rules = user.rules();
    let reply = &mut context.reply;
    reply.map(6);
    reply.bulk(b"flags");
    reply.set(1 + usize::from(rules.accepts_any_password));
    reply.bulk(if rules.is_on { b"on" } else { b"off" });
    if rules.accepts_any_password {
        reply.bulk(b"nopass");
    }
    reply.bulk(b"passwords");
    reply.array(rules.passwords.len());
    rules.passwords.iter().for_each(|password| reply.bulk(password.digest().as_bytes()));
    write(&rules.permissions, reply);
    reply.bulk(b"selectors");
    reply.array(rules.selectors.len());
    for selector in &rules.selectors {
        reply.map(3);
        write(selector, reply);
    }
    Ok(())
}

fn write(permissions: &Permissions, reply: &mut Reply<'_>) {
    reply.bulk(b"commands");
    reply.bulk(permissions.commands_text().as_bytes());
    reply.bulk(b"keys");
    reply.bulk(&permissions.keys_text());
    reply.bulk(b"channels");
    reply.bulk(&permissions.channels_text());
}
