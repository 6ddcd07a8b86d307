//! Executing a script or a function.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alluvium_protocol::{Arguments, Reply, Version};
use mlua::{Function, Lua, Result, Table, Value};

use super::call::{Caller, version};
use super::interpreter::{Interpreter, Place, Stop, error_text, text_of, with_interpreter};
use super::program::Program;
use super::running::Kind;
use super::thrown::COUNTED;
use super::{convert, shebang, thrown};
use crate::acl::User;
use crate::client::Client;
use crate::mail::Outbox;
use crate::session::Session;
use crate::shared::Shared;
use crate::slow_log;
use crate::store::{DatabaseNumber, Databases};
use crate::tracking::Reading;

/// How long a script may take. Other clients of the worker wait for it.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(5);

/// A script or a function with its keys and arguments, and what it works with.
pub(crate) struct Request<'a> {
    pub(crate) program: Program<'a>,
    /// The request of the client as a whole.
    pub(crate) command: Arguments<'a>,
    pub(crate) keys: Arguments<'a>,
    pub(crate) arguments: Arguments<'a>,
    pub(crate) is_read_only: bool,
    pub(crate) database: DatabaseNumber,
    pub(crate) session_id: u64,
    /// Whose permissions the commands of the script need.
    pub(crate) user: Arc<User>,
    /// How the client is told about keys that the script reads, if it is.
    pub(crate) tracking: Option<Reading>,
    pub(crate) shared: &'a Shared,
    pub(crate) databases: &'a dyn Databases,
    pub(crate) outbox: &'a mut Outbox,
}

/// How a script or a function has ended.
pub(crate) enum Outcome {
    /// Its reply was written. If that is an error which was not counted yet, this is its text.
    Done { uncounted: Option<String> },
    /// It failed, with this error text; what it has written before takes effect, as in Redis.
    Failed { text: String, is_counted: bool },
    /// It was stopped, with this error text; nothing that it has written may take effect.
    Stopped(String),
}

/// Executes a script or a function, and writes its reply.
pub(crate) fn run(request: Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    let shared = request.shared;
    let outcome = with_interpreter(shared, |interpreter| interpreter.execute(request, reply));
    outcome.unwrap_or_else(Outcome::failed)
}

impl Outcome {
    fn failed(text: String) -> Self {
        Self::Failed { text, is_counted: false }
    }
}

impl Interpreter {
    fn execute(&mut self, request: Request<'_>, reply: &mut Reply<'_>) -> Result<Outcome> {
        let Request { program, shared, command, .. } = request;
        let deadline = Instant::now() + TIME_MAX;
        let flags = match program {
            Program::Script { source, .. } => match shebang::of_script(source) {
                Ok((flags, _)) => flags,
                Err(text) => return Ok(Outcome::failed(text)),
            },
            Program::Function(function) => Some(function.flags),
        };
        if request.is_read_only && flags.is_some_and(|flags| flags.writes()) {
            let text = "ERR Can not execute a script with write flag using *_ro command.";
            return Ok(Outcome::failed(text.to_owned()));
        }
        let found = match program {
            Program::Script { digest, source } => self.script(digest, source, shared.scripts.flushes()),
            Program::Function(function) => {
                self.library_function(function, deadline, &shared.libraries.current())
            }
        };
        let function = match found {
            Ok(function) => function,
            Err(text) => return Ok(Outcome::failed(text)),
        };
        let (keys, arguments) = (self.list(request.keys)?, self.list(request.arguments)?);
        let is_read_only = request.is_read_only || flags.is_some_and(|flags| !flags.writes());
        let _execution = shared.running.begin(&program, || slow_log::shown(command, usize::MAX));
        let kills = shared.running.kill_watch(program.kind());
        let stop = Stop::default();
        self.watch(&stop, deadline, Some(kills))?;
        let called = self.call(&function, (keys, arguments), Request { is_read_only, ..request });
        self.lua.remove_hook();
        // A script may catch the error that stops it, and end as if nothing had happened.
        if let Some(reason) = stop.get() {
            return Ok(Outcome::Stopped(reason.text(program.kind())));
        }
        let (is_done, value) = called?;
        if is_done {
            let start = reply.buffered_bytes();
            if let Err(error) = convert::write_all(&value, reply) {
                reply.rewind(start);
                return Ok(Outcome::failed(error_text(&error)));
            }
            return Ok(Outcome::Done { uncounted: uncounted_error(&value)? });
        }
        let (text, is_counted) = failure(&self.lua, value, &program, self.place.take())?;
        Ok(Outcome::Failed { text, is_counted })
    }

    fn call(
        &self,
        function: &Function,
        (keys, arguments): (Table, Table),
        request: Request<'_>,
    ) -> Result<(bool, Value)> {
        let mut session = Session::new(Client::new(request.session_id, None, request.user));
        session.is_authenticated = true;
        session.database = request.database;
        session.version = Version::Resp2;
        session.tracking = request.tracking;
        session.is_script = true;
        let caller = Caller {
            session,
            keys: request.keys,
            shared: request.shared,
            databases: request.databases,
            outbox: request.outbox,
            is_read_only: request.is_read_only,
        };
        let caller = RefCell::new(caller);
        self.lua.scope(|scope| {
            let call = scope.create_function(|lua, ()| {
                let frame = self.request.take();
                caller.borrow_mut().call(lua, &frame)
            })?;
            let check =
                scope.create_function(|_, ()| Ok(caller.borrow().is_allowed(&self.request.take())))?;
            let set_version = scope.create_function(|_, number: i64| {
                let version = version(number);
                if let Some(version) = version {
                    caller.borrow_mut().session.version = version;
                }
                Ok(version.is_some())
            })?;
            self.host.raw_set("call", call)?;
            self.host.raw_set("is_allowed", check)?;
            self.host.raw_set("setresp", set_version)?;
            self.place.take();
            self.json.take();
            match request.program.kind() {
                Kind::Script => {
                    self.prelude.set.call::<()>((keys, arguments))?;
                    self.prelude.run.call((function, 0))
                }
                Kind::Function => self.prelude.run.call((function, 2, keys, arguments)),
            }
        })
    }
}

/// The text of an error that a script returns, unless that was counted.
fn uncounted_error(value: &Value) -> Result<Option<String>> {
    let Value::Table(table) = value else { return Ok(None) };
    let Value::String(text) = table.raw_get("err")? else { return Ok(None) };
    let is_counted = table.raw_get::<Value>(COUNTED)? == Value::Boolean(true);
    Ok((!is_counted).then(|| text.to_string_lossy()))
}

/// The error reply for what a script has thrown: a reply of a command, or a text with the place in front. Also returns
/// whether it was counted.
fn failure(lua: &Lua, thrown: Value, program: &Program<'_>, place: Option<Place>) -> Result<(String, bool)> {
    let (text, is_counted) = match thrown::caught(lua, thrown)? {
        Value::Table(table) => {
            let text: Option<mlua::LuaString> = table.raw_get("err")?;
            let text = text.map_or_else(|| "ERR unknown error".to_owned(), |text| text.to_string_lossy());
            (text, table.raw_get::<Value>(COUNTED)? == Value::Boolean(true))
        }
        other => (format!("ERR {}", text_of(&other)), false),
    };
    let text = match place {
        Some((source, line)) => format!("{text} script: {}, on {source}:{line}.", program.name()),
        None => text,
    };
    Ok((text, is_counted))
}
