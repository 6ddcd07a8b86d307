//! Commands: executing requests and answering them.
//!
//! A command is one file with one [`Command`] value and its handler. [`table`] lists them all; dispatch, `COMMAND` and
//! the `HELP` subcommands answer from there.

use alluvium_protocol::{Arguments, Reply, integer};

use crate::changes::Event;
use crate::mail::Outbox;
use crate::reply_room::{ReplyRoom, RoomState};
use crate::session::Session;
use crate::shared::Shared;
use crate::store::{Database, DatabaseNumber, Databases, StoreError, WrongType};

mod acl;
mod alluvium;
mod append;
mod auth;
mod bgsave;
mod bitcount;
mod bitfield;
mod bitfield_ro;
mod bitop;
mod bitpos;
mod bits;
mod catalog;
mod categories;
mod client;
mod command;
mod config;
mod copy;
mod dbsize;
mod debug;
mod decr;
mod decrby;
mod del;
mod discard;
mod dispatch;
mod dump;
mod echo;
#[cfg(feature = "scripting")]
mod eval;
#[cfg(feature = "scripting")]
mod eval_ro;
#[cfg(feature = "scripting")]
mod evalsha;
#[cfg(feature = "scripting")]
mod evalsha_ro;
mod exec;
mod exists;
mod expire;
mod expireat;
mod expiretime;
mod expiry;
#[cfg(feature = "scripting")]
mod fcall;
#[cfg(feature = "scripting")]
mod fcall_ro;
mod flushall;
mod flushdb;
#[cfg(feature = "scripting")]
mod function;
mod get;
mod getbit;
mod getdel;
mod getex;
mod getrange;
mod getset;
mod hdel;
mod hello;
mod help;
mod hexists;
mod hget;
mod hgetall;
mod hincrby;
mod hincrbyfloat;
mod hkeys;
mod hlen;
mod hmget;
mod hmset;
mod hrandfield;
mod hscan;
mod hset;
mod hsetnx;
mod hstrlen;
mod hvals;
mod incr;
mod incrby;
mod incrbyfloat;
mod info;
mod key_use;
mod keys;
mod lastsave;
mod latency;
mod lcs;
mod members;
mod memory;
mod mget;
mod monitor;
mod move_;
mod mset;
mod msetnx;
mod multi;
mod object;
mod observe;
mod persist;
mod pexpire;
mod pexpireat;
mod pexpiretime;
mod ping;
mod psetex;
mod psubscribe;
mod pttl;
mod publish;
mod pubsub;
mod punsubscribe;
mod quit;
mod randomkey;
mod reads;
mod rename;
mod renamenx;
mod reset;
mod restore;
mod sadd;
mod save;
mod scan;
mod scard;
#[cfg(feature = "scripting")]
mod script;
mod sdiff;
mod sdiffstore;
mod select;
mod set;
mod set_operation;
mod setbit;
mod setex;
mod setnx;
mod setrange;
mod shutdown;
mod sinter;
mod sintercard;
mod sinterstore;
mod sismember;
mod slowlog;
mod smembers;
mod smismember;
mod smove;
mod spop;
mod srandmember;
mod srem;
mod sscan;
mod strlen;
mod subscribe;
mod subscription;
mod substr;
mod sunion;
mod sunionstore;
mod swapdb;
mod table;
mod time;
mod touch;
mod transfer;
mod ttl;
mod type_;
mod unlink;
mod unsubscribe;
mod unwatch;
mod watch;

#[cfg(feature = "scripting")]
pub(crate) use acl::is_allowed;
pub(crate) use catalog::catalog;
#[cfg(feature = "scripting")]
pub(crate) use dispatch::resolve_name;
pub(crate) use dispatch::{Executed, execute, may_write, waits};
pub(crate) use reads::keys_to_read;
pub(crate) use table::{COMMANDS, find, full_name, number, number_of, position, subcommands};

/// The version of Redis whose behaviour and texts are kept. Clients choose features by it.
pub(crate) const REDIS_VERSION: &str = "7.0.15";

/// Executes a command and writes its reply. If it fails, what it wrote is discarded.
pub(crate) type Handler = fn(&mut Context<'_>) -> Result<(), Failure>;

/// All that is known about a command, or a subcommand.
pub(crate) struct Command {
    /// In lower case; a subcommand's own name only.
    pub(crate) name: &'static str,
    /// Number of arguments including the name, negative for a minimum; a subcommand counts both names.
    pub(crate) arity: i32,
    /// As `COMMAND` reports them: `write`, `readonly`, `fast`, ….
    pub(crate) flags: &'static [&'static str],
    /// Positions of the first and the last key and the step between keys: 0 for none, negative from the end.
    pub(crate) keys: (i32, i32, i32),
    pub(crate) group: &'static str,
    /// The version of Redis that introduced it.
    pub(crate) since: &'static str,
    pub(crate) complexity: &'static str,
    pub(crate) summary: &'static str,
    /// Arguments for the reader of `HELP`.
    pub(crate) syntax: &'static str,
    pub(crate) handler: Handler,
    /// Empty unless the second argument names a subcommand.
    pub(crate) subcommands: &'static [Command],
}

impl Command {
    /// The values of a command's fields unless its file says otherwise.
    pub(crate) const DEFAULT: Self = Self {
        name: "",
        arity: 0,
        flags: &[],
        keys: (0, 0, 0),
        group: "generic",
        since: "1.0.0",
        complexity: "O(1)",
        summary: "",
        syntax: "",
        handler: |_| Ok(()),
        subcommands: &[],
    };

    pub(crate) fn accepts(&self, arguments: usize) -> bool {
        let arity = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { arguments >= arity } else { arguments == arity }
    }

    /// Whether the command writes to the store.
    pub(crate) fn is_write(&self) -> bool {
        self.flags.contains(&"write")
    }
}

/// What a handler works with.
pub(crate) struct Context<'a> {
    /// Including the command's name, and the subcommand's.
    pub(crate) arguments: Arguments<'a>,
    pub(crate) reply: Reply<'a>,
    pub(crate) session: &'a mut Session,
    pub(crate) shared: &'a Shared,
    /// The store, or the transaction that `EXEC` executes.
    pub(crate) databases: &'a dyn Databases,
    /// Messages that are sent after the round's commit.
    pub(crate) outbox: &'a mut Outbox,
    /// Bounds the reply; `None` for commands of scripts.
    pub(crate) room: Option<&'a ReplyRoom<'a>>,
    /// Whether the command is one of those that `EXEC` executes.
    pub(crate) is_in_transaction: bool,
}

impl<'a> Context<'a> {
    pub(crate) fn new(
        arguments: Arguments<'a>,
        output: &'a mut Vec<u8>,
        session: &'a mut Session,
        shared: &'a Shared,
        outbox: &'a mut Outbox,
        room: &'a ReplyRoom<'a>,
    ) -> Self {
        let reply = Reply::within(output, session.version, Some(room));
        let databases: &dyn Databases = &*shared.store;
        let room = Some(room);
        Self { arguments, reply, session, shared, databases, outbox, room, is_in_transaction: false }
    }

    /// Charges the memory that it takes to write this many items together, before anything has happened.
    pub(crate) fn admit_writes(&self, writes: usize) -> Result<(), Failure> {
        const UNCHARGED_WRITES_MAX: usize = 256;
        let Some(room) = self.room.filter(|_| writes > UNCHARGED_WRITES_MAX) else { return Ok(()) };
        match room.admit_work(self.shared.store.batch_bytes(writes)) {
            RoomState::Enough => Ok(()),
            RoomState::Waits => Err(Failure::Waits),
            RoomState::TooLong => {
                Err(Failure::Fixed("ERR more writes at once than this server has memory for"))
            }
        }
    }

    /// Whether the reply had room so far.
    pub(crate) fn room_state(&self) -> RoomState {
        self.room.map_or(RoomState::Enough, ReplyRoom::state)
    }

    /// The database that the client has selected.
    pub(crate) fn store(&self) -> &'a dyn Database {
        self.databases.database(self.session.database)
    }

    /// Notes what the command has done to the key that is the argument at `position`, in the selected database. Must be
    /// called after the write, and after the command's own transaction.
    #[inline]
    pub(crate) fn changed(&mut self, position: usize, event: Event) {
        self.changed_key(self.arguments.get(position).unwrap_or_default(), event);
    }

    /// Like [`Context::changed`], of any key.
    #[inline]
    pub(crate) fn changed_key(&mut self, key: &[u8], event: Event) {
        self.changed_in(self.session.database, key, event);
    }

    /// Like [`Context::changed`], of another database.
    pub(crate) fn changed_in(&mut self, database: DatabaseNumber, key: &[u8], event: Event) {
        self.outbox.changed(self.shared, database, self.session.id, key, event);
    }

    /// The argument at `position` as an integer.
    pub(crate) fn integer(&self, position: usize) -> Result<i64, Failure> {
        integer::parse(&self.arguments[position]).ok_or(Failure::NOT_AN_INTEGER)
    }

    /// Whether the argument at `position` is `word`, in any case; `false` if there is no such argument.
    pub(crate) fn is_word(&self, position: usize, word: &str) -> bool {
        self.arguments.get(position).is_some_and(|argument| argument.eq_ignore_ascii_case(word.as_bytes()))
    }
}

/// Why a command was not executed; becomes the error reply.
pub(crate) enum Failure {
    /// A whole error text, with its code.
    Fixed(&'static str),
    /// A whole error text, with its code.
    Text(String),
    /// A whole error text, with its code, that was counted when the error occurred in a script.
    #[cfg(feature = "scripting")]
    Counted(String),
    /// A whole error text, with its code. Within a transaction, nothing of it may take effect.
    #[cfg(feature = "scripting")]
    Aborted(String),
    /// The store's error, sent after `ERR `.
    Store(StoreError),
    /// Nothing has happened: there is no memory for the command now.
    Waits,
    /// The replies that the client has not read would grow beyond the limit; the connection ends.
    ReplyTooLarge,
}

impl Failure {
    pub(crate) const SYNTAX: Self = Self::Fixed("ERR syntax error");
    pub(crate) const NOT_AN_INTEGER: Self = Self::Fixed("ERR value is not an integer or out of range");

    pub(crate) fn arity(name: &str) -> Self {
        Self::Text(format!("ERR wrong number of arguments for '{name}' command"))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        if error.is::<WrongType>() { Self::Fixed(WrongType::TEXT) } else { Self::Store(error) }
    }
}
