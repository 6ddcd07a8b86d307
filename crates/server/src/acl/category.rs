//! [`Category`]: groups of commands that a rule allows or refuses together.

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
}
