//! `ACL SETUSER`, `DELUSER`, `LIST`, `USERS`, `WHOAMI`, `LOAD` and `SAVE`

use super::{ACL, Command, Context, Failure, OPEN, kill_clients};
use crate::acl::{self, DEFAULT};

pub(super) const SETUSER: Command = Command {
    name: "setuser",
    arity: -3,
    complexity: "O(n) in the number of rules",
    summary: "Create or modify a user with the specified attributes",
    syntax: "<username> [<attribute> ...]",
    handler: set_user,
    ..ACL
};

pub(super) const DELUSER: Command = Command {
    name: "deluser",
    arity: -3,
    complexity: "O(n) in the number of connections",
    summary: "Delete a list of users",
    syntax: "<username> [<username> ...]",
    handler: delete_users,
    ..ACL
};

pub(super) const LIST: Command = Command {
    name: "list",
    complexity: "O(n) in the number of users",
    summary: "Show users details in config file format",
    handler: list,
    ..ACL
};

pub(super) const USERS: Command = Command {
    name: "users",
    complexity: "O(n) in the number of users",
    summary: "List all the registered usernames",
    handler: users,
    ..ACL
};

pub(super) const WHOAMI: Command =
    Command { name: "whoami", summary: "Return the current connection username", handler: who_am_i, ..OPEN };

pub(super) const LOAD: Command = Command {
    name: "load",
    complexity: "O(n) in the number of users",
    summary: "Reload users from the ACL file",
    handler: load,
    ..ACL
};

pub(super) const SAVE: Command = Command {
    name: "save",
    complexity: "O(n) in the number of users",
    summary: "Save the current config to the ACL file",
    handler: save,
    ..ACL
};

const NO_FILE: Failure = Failure::Fixed(
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via the ACL SETUSER \
     command and then issue a CONFIG REWRITE (assuming you have a Redis configuration file set) in order to store \
     users in the Redis configuration.",
);

fn error(text: String) -> Failure {
    Failure::Text(format!("ERR {}", text.replace(['\r', '\n'], " ")))
}

fn set_user(context: &mut Context<'_>) -> Result<(), Failure> {
    let arguments = context.arguments;
    let change = context.shared.users.set(&arguments[2], arguments.from(3).iter()).map_err(error)?;
    let user = String::from_utf8_lossy(&arguments[2]);
    tracing::info!(client = context.session.client.peer(), %user, "a client changes a user");
    kill_clients(context, &[change]);
    context.reply.ok();
    Ok(())
}

fn delete_users(context: &mut Context<'_>) -> Result<(), Failure> {
    let names = context.arguments.from(2);
    if names.iter().any(|name| name == DEFAULT) {
        return Err(Failure::Fixed("ERR The 'default' user cannot be removed"));
    }
    let removed: Vec<_> = names.iter().filter_map(|name| context.shared.users.remove(name)).collect();
    tracing::info!(client = context.session.client.peer(), users = removed.len(), "a client removes users");
    kill_clients(context, &removed);
    context.reply.count(removed.len());
    Ok(())
}

fn list(context: &mut Context<'_>) -> Result<(), Failure> {
    let users = context.shared.users.all();
    context.reply.array(users.len());
    users.iter().for_each(|user| context.reply.bulk(&acl::line(user)));
    Ok(())
}

fn users(context: &mut Context<'_>) -> Result<(), Failure> {
    let users = context.shared.users.all();
    context.reply.array(users.len());
    users.iter().for_each(|user| context.reply.bulk(&user.name));
    Ok(())
}

fn who_am_i(context: &mut Context<'_>) -> Result<(), Failure> {
    context.reply.bulk(&context.session.user.name);
    Ok(())
}

fn load(context: &mut Context<'_>) -> Result<(), Failure> {
    if context.shared.users.file().is_none() {
        return Err(NO_FILE);
    }
    let changes = context.shared.users.load().map_err(error)?;
    kill_clients(context, &changes);
    context.reply.ok();
    Ok(())
}

fn save(context: &mut Context<'_>) -> Result<(), Failure> {
    if context.shared.users.file().is_none() {
        return Err(NO_FILE);
    }
    context.shared.users.save().map_err(error)?;
    context.reply.ok();
    Ok(())
}
