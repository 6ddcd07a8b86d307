//! [`Category`]: groups of commands that a rule allows or refuses together.

use crate::commands::Command;

/// A category of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Category {
    Keyspace,
    Read,
    Write,
    Set,
    SortedSet,
    List,
    Hash,
    String,
    Bitmap,
    HyperLogLog,
    Geo,
    Stream,
    PubSub,
    Admin,
    Fast,
    Slow,
    Blocking,
    Dangerous,
    Connection,
    Transaction,
    Scripting,
}

impl Category {
    /// All categories, in the order of Redis. Some have no command here.
    pub(crate) const ALL: [Self; 21] = [
        Self::Keyspace,
        Self::Read,
        Self::Write,
        Self::Set,
        Self::SortedSet,
        Self::List,
        Self::Hash,
        Self::String,
        Self::Bitmap,
        Self::HyperLogLog,
        Self::Geo,
        Self::Stream,
        Self::PubSub,
        Self::Admin,
        Self::Fast,
        Self::Slow,
        Self::Blocking,
        Self::Dangerous,
        Self::Connection,
        Self::Transaction,
        Self::Scripting,
    ];

    /// Its name, without `@`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Keyspace => "keyspace",
            Self::Read => "read",
            Self::Write => "write",
            Self::Set => "set",
            Self::SortedSet => "sortedset",
            Self::List => "list",
            Self::Hash => "hash",
            Self::String => "string",
            Self::Bitmap => "bitmap",
            Self::HyperLogLog => "hyperloglog",
            Self::Geo => "geo",
            Self::Stream => "stream",
            Self::PubSub => "pubsub",
            Self::Admin => "admin",
            Self::Fast => "fast",
            Self::Slow => "slow",
            Self::Blocking => "blocking",
            Self::Dangerous => "dangerous",
            Self::Connection => "connection",
            Self::Transaction => "transaction",
            Self::Scripting => "scripting",
        }
    }

    /// The category called `name`, in any case.
    pub(crate) fn find(name: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.name().as_bytes().eq_ignore_ascii_case(name))
    }

    /// The categories of a command, or of a subcommand of `container`.
    pub(crate) fn of(container: Option<&Command>, command: &Command) -> Vec<Self> {
        let has = |flag: &str| command.flags.contains(&flag);
        let is = |category: Self| match category {
            Self::Write => has("write") && !is_evaluation(command.name),
            Self::Read => has("readonly") && !is_evaluation(command.name),
            Self::Admin => has("admin"),
            Self::Dangerous => has("admin") || is_dangerous(container, command.name),
            Self::PubSub => has("pubsub") && command.subcommands.is_empty(),
            Self::Fast => has("fast"),
            Self::Slow => !has("fast"),
            Self::Blocking => has("blocking"),
            other => of_group(container, command) == Some(other),
        };
        Self::ALL.into_iter().filter(|category| is(*category)).collect()
    }
}

/// Scripts may do anything, so they are in no category of what they do.
fn is_evaluation(name: &str) -> bool {
    matches!(name, "eval" | "eval_ro" | "evalsha" | "evalsha_ro")
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
