//! From a request to its handler.

use std::time::Instant;

use alluvium_protocol::Arguments;

use super::{
    Command, Context, Failure, acl, client, exec, find, full_name, help, number_of, observe, psubscribe,
    punsubscribe, subcommands, subscribe, unsubscribe,
};
use crate::pause::Paused;
use crate::reply_room::RoomState;
use crate::session::{Replies, Session};

/// Whether executing a request may write to the store.
pub(crate) fn may_write(arguments: Arguments<'_>, session: &Session) -> bool {
    let Some(command) = resolve_name(arguments) else { return false };
    match &session.transaction {
        Some(queue) => command.name == exec::COMMAND.name && queue.has_writes,
        None => command.is_write(),
    }
}

/// Whether a request must wait while others are paused. `CLIENT` does not, so that the pause can be ended.
pub(crate) fn waits(paused: Paused, arguments: Arguments<'_>, session: &Session) -> bool {
    match paused {
        Paused::Writes => may_write(arguments, session),
        Paused::All => !arguments[0].eq_ignore_ascii_case(client::COMMAND.name.as_bytes()),
    }
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Executed {
    Succeeded,
    /// It was answered by an error.
    Failed,
    /// Nothing has happened: there is no memory for the reply now.
    Waits,
}

/// Finds the command, checks its arity, executes it, and writes the one reply.
pub(crate) fn execute(context: &mut Context<'_>) -> Executed {
    let buffered = context.reply.buffered_bytes();
    if context.session.replies == Replies::SkipNext {
        context.session.replies = Replies::Skip;
    }
    let can_wait = can_wait(context);
    let mut outcome = dispatch(context);
    if context.room_state() != RoomState::Enough && !matches!(outcome, Err(Failure::Text(_))) {
        if can_wait && context.room_state() == RoomState::Waits {
            context.reply.rewind(buffered);
            return Executed::Waits;
        }
        outcome = Err(Failure::ReplyTooLarge);
    }
    if matches!(outcome, Err(Failure::Waits)) && context.session.replies == Replies::Sent {
        context.reply.rewind(buffered);
        return Executed::Waits;
    }
    let succeeded = outcome.is_ok();
    if let Err(failure) = outcome {
        context.reply.rewind(buffered);
        write_failure(context, failure);
    }
    let session = &mut *context.session;
    if let Some(reading) = &mut session.tracking
        && session.transaction.is_none()
        && !context.arguments[0].eq_ignore_ascii_case(client::COMMAND.name.as_bytes())
    {
        reading.is_caching_given = false;
    }
    if context.session.replies != Replies::Sent {
        if !(succeeded && is_answered_by_messages(&context.arguments[0])) {
            context.reply.rewind(buffered);
        }
        context.session.wants = None;
        if context.session.replies == Replies::Skip {
            context.session.replies = Replies::Sent;
        }
    }
    if succeeded { Executed::Succeeded } else { Executed::Failed }
}

/// Whether the command can be executed again later, because it changes nothing.
fn can_wait(context: &Context<'_>) -> bool {
    let session = &context.session;
    let is_plain = session.transaction.is_none() && session.replies == Replies::Sent;
    is_plain && find(&context.arguments[0]).is_some_and(|command| command.flags.contains(&"readonly"))
}

/// Whether the command is answered by messages, which clients get even if they want no replies.
fn is_answered_by_messages(name: &[u8]) -> bool {
    let commands = [subscribe::COMMAND, unsubscribe::COMMAND, psubscribe::COMMAND, punsubscribe::COMMAND];
    commands.iter().any(|command| command.name.as_bytes().eq_ignore_ascii_case(name))
}

pub(super) fn write_failure(context: &mut Context<'_>, failure: Failure) {
    let text = match failure {
        #[cfg(feature = "scripting")]
        Failure::Counted(text) => return context.reply.error(text),
        Failure::Fixed(text) => text.into(),
        Failure::Text(text) => text,
        #[cfg(feature = "scripting")]
        Failure::Aborted(text) => text,
        Failure::Store(error) => format!("ERR {error}"),
        Failure::Waits => "ERR the memory for clients is in use".into(),
        Failure::ReplyTooLarge => {
            context.session.closing = true;
            "ERR reply exceeds the output limit of this server".into()
        }
    };
    context.shared.error_counts.add(&text);
    context.reply.error(text);
}

/// Commands that a client may send while it has subscriptions and speaks RESP2, whose replies it could not tell from
/// messages.
const BESIDE_SUBSCRIPTIONS: [&str; 7] =
    ["ping", "psubscribe", "punsubscribe", "quit", "reset", "subscribe", "unsubscribe"];

/// Commands that are executed at once between `MULTI` and `EXEC`.
const NEVER_QUEUED: [&str; 6] = ["discard", "exec", "multi", "quit", "reset", "watch"];

pub(super) fn dispatch(context: &mut Context<'_>) -> Result<(), Failure> {
    let command = match resolve(context.arguments) {
        Ok(command) => command,
        Err(failure) => {
            refuse_transaction(context);
            return if is_of_a_browser(&context.arguments[0]) { close(context) } else { Err(failure) };
        }
    };
    context.session.last_command = number_of(command);
    if !context.session.is_authenticated && !command.flags.contains(&"no_auth") {
        refuse_transaction(context);
        return Err(Failure::Fixed("NOAUTH Authentication required."));
    }
    if let Err(failure) = acl::check(context, command) {
        refuse_transaction(context);
        return Err(failure);
    }
    if context.session.takes_only_messages() && !BESIDE_SUBSCRIPTIONS.contains(&command.name) {
        refuse_transaction(context);
        return Err(Failure::Text(format!(
            "ERR Can't execute '{}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this \
             context",
            text(&context.arguments[0], 128).to_ascii_lowercase()
        )));
    }
    if context.session.is_monitor && (command.is_write() || command.flags.contains(&"readonly")) {
        refuse_transaction(context);
        return Err(Failure::Fixed("ERR Replica can't interact with the keyspace"));
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
        _ => time(command, context),
    }
}

/// Executes a command, and notes if that takes long.
fn time(command: &'static Command, context: &mut Context<'_>) -> Result<(), Failure> {
    let (slow_log, events) = (&context.shared.slow_log, &context.shared.latency_events);
    let is_timed = slow_log.threshold_us() >= 0 || events.threshold_ms() > 0;
    let begun = is_timed.then(Instant::now);
    let outcome = observe::execute(command, context);
    let Some(duration) = begun.map(|begun| begun.elapsed()) else { return outcome };
    if events.keeps(duration) {
        events.add(if command.flags.contains(&"fast") { "fast-command" } else { "command" }, duration);
    }
    if slow_log.keeps(duration) && !command.flags.contains(&"skip_slowlog") {
        let client = &context.session.client;
        let peer = client.peer();
        let name = client.labels().name.clone();
        slow_log.add(context.arguments, secret_from(command, context.arguments), duration, peer, name);
    }
    outcome
}

/// From which argument on a request has passwords, which are not kept.
fn secret_from(command: &'static Command, arguments: Arguments<'_>) -> usize {
    match full_name(number_of(command)) {
        "auth" => 1,
        "hello" | "acl|setuser" => 2,
        "config|set" if arguments.iter().any(|word| word.eq_ignore_ascii_case(b"requirepass")) => 3,
        _ => usize::MAX,
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
        None if name.eq_ignore_ascii_case(b"help") && arguments.len() == 2 => Ok(&help::COMMAND),
        None if name.eq_ignore_ascii_case(b"help") => Err(Failure::arity(&format!("{}|help", command.name))),
        None => Err(Failure::Text(format!(
            "ERR unknown subcommand '{}'. Try {} HELP.",
            text(name, 128),
            command.name.to_ascii_uppercase()
        ))),
    }
}

/// The command or subcommand that the arguments name; their number is not checked.
pub(crate) fn resolve_name(arguments: Arguments<'_>) -> Option<&'static Command> {
    let command = find(&arguments[0])?;
    let (false, Some(name)) = (command.subcommands.is_empty(), arguments.get(1)) else {
        return Some(command);
    };
    subcommands(command).into_iter().find(|subcommand| subcommand.name.as_bytes().eq_ignore_ascii_case(name))
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
