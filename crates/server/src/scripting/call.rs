//! `redis.call`: a command that a script executes.

use alluvium_protocol::{Arguments, Parser, Progress, Reply, Value as Answer, Version, request};
use mlua::{Lua, Result, Value};

use super::convert::{format_number, to_lua};
use super::thrown::COUNTED;
use crate::commands::{self, Context};
use crate::mail::Outbox;
use crate::session::Session;
use crate::shared::Shared;
use crate::store::Databases;

/// What a script works with: its own session, and the transaction.
pub(super) struct Caller<'a> {
    pub(super) session: Session,
    /// The keys that the request has named.
    pub(super) keys: Arguments<'a>,
    pub(super) shared: &'a Shared,
    pub(super) databases: &'a dyn Databases,
    pub(super) outbox: &'a mut Outbox,
    /// Whether commands that write are refused.
    pub(super) is_read_only: bool,
}

impl Caller<'_> {
    /// Executes the command of a request; an error is a table with a field `err`.
    pub(super) fn call(&mut self, lua: &Lua, frame: &[u8]) -> Result<Value> {
        let answer = self.execute(frame);
        let value = to_lua(lua, &answer, self.session.version)?;
        if let (Answer::Error(_), Value::Table(table)) = (&answer, &value) {
            table.raw_set(COUNTED, true)?;
        }
        Ok(value)
    }

    /// Whether the user may execute the command of a request; `None` if there is no such command.
    pub(super) fn is_allowed(&self, frame: &[u8]) -> Option<bool> {
        let mut parser = Parser::new(self.shared.options.limits);
        let Ok(Progress::Complete { .. }) = parser.parse(frame) else { return None };
        commands::is_allowed(&self.session.user, parser.arguments(frame))
    }

    fn execute(&mut self, frame: &[u8]) -> Answer {
        let mut parser = Parser::new(self.shared.options.limits);
        let Ok(Progress::Complete { .. }) = parser.parse(frame) else {
            return Answer::Error(b"ERR the command exceeds the limits of a request".to_vec());
        };
        let arguments = parser.arguments(frame);
        if let Some(refusal) = self.refusal(arguments) {
            self.shared.error_counts.add(refusal);
            return Answer::Error(refusal.into());
        }
        let is_read = |command: &commands::Command| command.flags.contains(&"readonly");
        if self.session.registers_reads() && commands::find(&arguments[0]).is_some_and(is_read) {
            // Besides the keys that the command reads, as in Redis: the client looks for the result under them.
            self.shared.tracking.remember(self.session.id, self.keys.iter(), &self.shared.connected);
        }
        let mut output = Vec::new();
        let reply = Reply::new(&mut output, self.session.version);
        let mut context = Context {
            arguments,
            reply,
            session: &mut self.session,
            shared: self.shared,
            databases: self.databases,
            outbox: &mut *self.outbox,
            room: None,
            is_in_transaction: true,
        };
        commands::execute(&mut context);
        match Answer::decode(&output) {
            Ok(Some((answer, _))) => answer,
            _ => Answer::Null,
        }
    }

    /// Why a script may not execute a command.
    fn refusal(&self, arguments: Arguments<'_>) -> Option<&'static str> {
        let Some(command) = commands::resolve_name(arguments) else {
            return Some("ERR Unknown Redis command called from script");
        };
        if !command.accepts(arguments.len()) {
            return Some("ERR Wrong number of args calling Redis command from script");
        }
        if command.flags.contains(&"noscript") {
            return Some("ERR This Redis command is not allowed from script");
        }
        if self.is_read_only && command.is_write() {
            return Some("ERR Write commands are not allowed from read-only scripts.");
        }
        None
    }
}

pub(super) fn request_of(words: &[Value]) -> std::result::Result<Vec<u8>, &'static str> {
    if words.is_empty() {
        return Err("Please specify at least one argument for this redis lib call");
    }
    let mut texts: Vec<Vec<u8>> = Vec::with_capacity(words.len());
    for word in words {
        texts.push(match word {
            Value::String(text) => text.as_bytes().to_vec(),
            Value::Integer(number) => number.to_string().into_bytes(),
            Value::Number(number) => format_number(*number, 17).into_bytes(),
            _ => return Err("Lua redis lib command arguments must be strings or integers"),
        });
    }
    let mut frame = Vec::new();
    request::encode(&texts, &mut frame);
    Ok(frame)
}

/// The version of the protocol that a script has chosen for its replies.
pub(super) fn version(number: i64) -> Option<Version> {
    match number {
        2 => Some(Version::Resp2),
        3 => Some(Version::Resp3),
        _ => None,
    }
}
