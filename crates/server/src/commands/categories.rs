//! Which categories a command has, for rules of users and for `COMMAND INFO`.

use super::Command;
use crate::acl::Category;

/// The categories of a command, or of a subcommand of `container`.
pub(super) fn categories(container: Option<&Command>, command: &Command) -> Vec<Category> {
    let has = |flag: &str| command.flags.contains(&flag);
    let is = |category: Category| match category {
        Category::Write => has("write") && !is_evaluation(command.name),
        Category::Read => has("readonly") && !is_evaluation(command.name),
        Category::Admin => has("admin"),
        Category::Dangerous => has("admin") || is_dangerous(container, command.name),
        Category::PubSub => has("pubsub") && command.subcommands.is_empty(),
        Category::Fast => has("fast"),
        Category::Slow => !has("fast"),
        Category::Blocking => has("blocking"),
        other => of_group(container, command) == Some(other),
    };
    Category::ALL.into_iter().filter(|category| is(*category)).collect()
}

/// Scripts may do anything, so they are in no category of what they do.
fn is_evaluation(name: &str) -> bool {
    matches!(name, "eval" | "eval_ro" | "evalsha" | "evalsha_ro" | "fcall" | "fcall_ro")
}

/// Commands that are dangerous although they do not administer the server: they are slow, remove much, or show much.
fn is_dangerous(container: Option<&Command>, name: &str) -> bool {
    container.is_none() && matches!(name, "flushall" | "flushdb" | "info" | "keys" | "restore" | "swapdb")
}

/// The category of the commands of the same group. Containers have none: their subcommands have.
fn of_group(container: Option<&Command>, command: &Command) -> Option<Category> {
    if !command.subcommands.is_empty() && command.name != "command" {
        return None;
    }
    match (container.map_or(command.name, |container| container.name), container.unwrap_or(command).group) {
        ("bitcount" | "bitfield" | "bitfield_ro" | "bitop" | "bitpos" | "getbit" | "setbit", _) => {
            Some(Category::Bitmap)
        }
        ("command", _) => Some(Category::Connection),
        ("dbsize" | "flushall" | "flushdb" | "swapdb", _) => Some(Category::Keyspace),
        ("memory", _) => None,
        (_, "generic") => Some(Category::Keyspace),
        (_, "string") => Some(Category::String),
        (_, "hash") => Some(Category::Hash),
        (_, "set") => Some(Category::Set),
        (_, "pubsub") => Some(Category::PubSub),
        (_, "connection") => Some(Category::Connection),
        (_, "transactions") => Some(Category::Transaction),
        (_, "scripting") => Some(Category::Scripting),
        _ => None,
    }
}
