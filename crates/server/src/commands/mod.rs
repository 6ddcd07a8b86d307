//! Commands: executing requests and answering them.
//!
//! A command is one file with one [`Command`] value and its handler. [`table`] lists them all; dispatch, `COMMAND` and
//! the `HELP` subcommands answer from there.

use alluvium_protocol::{Arguments, Reply, integer};

use crate::pubsub::Outbox;
use crate::session::Session;
use crate::shared::Shared;
use crate::store::{Database, Databases, StoreError, WrongType};

mod append;
mod auth;
mod client;
mod command;
mod config;
mod dbsize;
mod decr;
mod decrby;
mod del;
mod discard;
mod echo;
mod exec;
mod exists;
mod expire;
mod expireat;
mod expiretime;
mod expiry;
mod flushall;
mod flushdb;
mod get;
mod getdel;
mod getex;
mod getrange;
mod getset;
mod hello;
mod incr;
mod incrby;
mod info;
mod mget;
mod mset;
mod multi;
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
mod reset;
mod scan;
mod select;
mod set;
mod setex;
mod setnx;
mod shutdown;
mod strlen;
mod subscribe;
mod subscription;
mod substr;
mod table;
mod time;
mod touch;
mod ttl;
mod type_;
mod unlink;
mod unsubscribe;
mod unwatch;
mod watch;

pub(crate) use table::{COMMANDS, find};

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

    fn accepts(&self, arguments: usize) -> bool {
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
    ) -> Self {
        let reply = Reply::new(output, session.version);
        let databases: &dyn Databases = &*shared.store;
        Self { arguments, reply, session, shared, databases, outbox, is_in_transaction: false }
    }

    /// The database that the client has selected.
    pub(crate) fn store(&self) -> &'a dyn Database {
        self.databases.database(self.session.database)
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
    /// The store's error, sent after `ERR `.
    Store(StoreError),
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

/// Whether executing a request may write to the store.
pub(crate) fn may_write(name: &[u8], session: &Session) -> bool {
    let Some(command) = find(name) else { return false };
    match &session.transaction {
        Some(queue) => command.name == exec::COMMAND.name && queue.has_writes,
        None => command.is_write(),
    }
}

/// Finds the command, checks its arity, executes it, and writes the one reply.
pub(crate) fn execute(context: &mut Context<'_>) {
    let buffered = context.reply.buffered_bytes();
    let Err(failure) = dispatch(context) else { return };
    context.reply.rewind(buffered);
    write_failure(context, failure);
}

fn write_failure(context: &mut Context<'_>, failure: Failure) {
    match failure {
        Failure::Fixed(text) => context.reply.error(text),
        Failure::Text(text) => context.reply.error(text),
        Failure::Store(error) => context.reply.error(format!("ERR {error}")),
        Failure::ReplyTooLarge => {
            context.reply.error("ERR reply exceeds the output limit of this server");
            context.session.closing = true;
        }
    }
}

/// Commands that a client may send while it has subscriptions and speaks RESP2, whose replies it could not tell from
/// messages.
const BESIDE_SUBSCRIPTIONS: [&str; 7] =
    ["ping", "psubscribe", "punsubscribe", "quit", "reset", "subscribe", "unsubscribe"];

/// Commands that are executed at once between `MULTI` and `EXEC`.
const NEVER_QUEUED: [&str; 6] = ["discard", "exec", "multi", "quit", "reset", "watch"];

fn dispatch(context: &mut Context<'_>) -> Result<(), Failure> {
    let command = match resolve(context.arguments) {
        Ok(command) => command,
        Err(failure) => {
            refuse_transaction(context);
            return if is_of_a_browser(&context.arguments[0]) { close(context) } else { Err(failure) };
        }
    };
    if !context.session.is_authenticated && !command.flags.contains(&"no_auth") {
        refuse_transaction(context);
        return Err(Failure::Fixed("NOAUTH Authentication required."));
    }
    if context.session.takes_only_messages() && !BESIDE_SUBSCRIPTIONS.contains(&command.name) {
        refuse_transaction(context);
        return Err(Failure::Text(format!(
            "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this \
             context",
            text(&context.arguments[0], 128).to_ascii_lowercase()
        )));
    }
    match &mut context.session.transaction {
        Some(queue) if !NEVER_QUEUED.contains(&command.name) => {
            if command.flags.contains(&"no_multi") {
                queue.has_failed = true;
                return Err(Failure::Fixed("ERR Command not allowed inside a transaction"));
            }
            let bytes_max = context.shared.options.limits.frame_bytes_max;
            if !queue.push(context.arguments, command.is_write(), bytes_max) {
                queue.has_failed = true;
                return Err(Failure::Fixed(
                    "ERR the commands of the transaction exceed the limit of a request",
                ));
            }
            context.reply.simple("QUEUED");
            Ok(())
        }
        _ => (command.handler)(context),
    }
}

/// After a refused command, `EXEC` executes none.
fn refuse_transaction(context: &mut Context<'_>) {
    if let Some(queue) = &mut context.session.transaction {
        queue.has_failed = true;
    }
}

/// The command or subcommand of a request, with an arity that fits.
fn resolve(arguments: Arguments<'_>) -> Result<&'static Command, Failure> {
    let command = find(&arguments[0]).ok_or_else(|| unknown(arguments))?;
    if !command.accepts(arguments.len()) {
        return Err(Failure::arity(command.name));
    }
    let (false, Some(name)) = (command.subcommands.is_empty(), arguments.get(1)) else {
        return Ok(command);
    };
    let subcommand =
        command.subcommands.iter().find(|subcommand| subcommand.name.as_bytes().eq_ignore_ascii_case(name));
    match subcommand {
        Some(subcommand) if subcommand.accepts(arguments.len()) => Ok(subcommand),
        Some(subcommand) => Err(Failure::arity(&format!("{}|{}", command.name, subcommand.name))),
        None if name.eq_ignore_ascii_case(b"help") && arguments.len() == 2 => Ok(&HELP),
        None => Err(Failure::Text(format!(
            "ERR unknown subcommand '{}'. Try {} HELP.",
            text(name, 128),
            command.name.to_ascii_uppercase()
        ))),
    }
}

/// `HELP` of every command with subcommands.
const HELP: Command =
    Command { name: "help", flags: &["loading", "stale"], handler: answer_help, ..Command::DEFAULT };

fn answer_help(context: &mut Context<'_>) -> Result<(), Failure> {
    if let Some(command) = find(&context.arguments[0]) {
        help(command, context);
    }
    Ok(())
}

fn help(command: &Command, context: &mut Context<'_>) {
    context.reply.array(2 * command.subcommands.len() + 3);
    context.reply.simple(&format!(
        "{} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        command.name.to_ascii_uppercase()
    ));
    for subcommand in command.subcommands {
        let line = format!("{} {}", subcommand.name.to_ascii_uppercase(), subcommand.syntax);
        context.reply.simple(line.trim_end());
        context.reply.simple(&format!("    {}.", subcommand.summary));
    }
    context.reply.simple("HELP");
    context.reply.simple("    Prints this help.");
}

/// Whether a web page made a browser talk to us: executing the body of its request would be the attack.
fn is_of_a_browser(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:")
}

fn close(context: &mut Context<'_>) -> Result<(), Failure> {
    context.session.closing = true;
    Ok(())
}

fn unknown(arguments: Arguments<'_>) -> Failure {
    const ARGUMENT_BYTES_MAX: usize = 128;
    let name = &arguments[0];
    let mut shown = String::new();
    for argument in arguments.from(1).iter() {
        if shown.len() >= ARGUMENT_BYTES_MAX {
            break;
        }
        shown.push_str(&format!("'{}' ", text(argument, ARGUMENT_BYTES_MAX - shown.len())));
    }
    Failure::Text(format!(
        "ERR unknown command '{}', with args beginning with: {shown}",
        text(name, ARGUMENT_BYTES_MAX)
    ))
}

/// The first bytes of an argument, for an error text.
fn text(argument: &[u8], bytes_max: usize) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(&argument[..argument.len().min(bytes_max)])
}
