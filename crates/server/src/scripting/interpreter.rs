//! The interpreter of a worker.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alluvium_protocol::{Arguments, Reply, Version};
use mlua::chunk::ChunkMode;
use mlua::{Function, HookTriggers, Lua, LuaOptions, Result, StdLib, Table, Value, Variadic, VmState};

use super::call::{Caller, version};
use super::scripts::{self, Digest};
use super::{bits, convert, json};
use crate::acl::User;
use crate::client::Client;
use crate::commands::REDIS_VERSION;
use crate::mail::Outbox;
use crate::session::Session;
use crate::shared::Shared;
use crate::store::{DatabaseNumber, Databases};
use crate::tracking::Reading;

/// Maximum bytes of memory of an interpreter. A script that needs more fails.
const MEMORY_BYTES_MAX: usize = 256 << 20;
/// They are never fewer than this.
const MEMORY_BYTES_MIN: usize = 512 << 10;
/// Maximum number of functions that an interpreter keeps compiled.
const FUNCTIONS_MAX: usize = 1000;
/// Instructions between two looks at the clock.
const INSTRUCTIONS: u32 = 10_000;
/// How long a script may take. Other clients of the worker wait for it.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(5);

/// A script with its keys and arguments, and what it works with.
pub(crate) struct Request<'a> {
    pub(crate) digest: Digest,
    pub(crate) source: &'a [u8],
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

/// How a script has ended.
pub(crate) enum Outcome {
    /// Its reply was written.
    Done,
    /// It failed, with this error text; what it has written before takes effect, as in Redis.
    Failed(String),
    /// It was stopped, with this error text; nothing that it has written may take effect.
    Stopped(String),
}

struct Interpreter {
    lua: Lua,
    host: Table,
    environment: Table,
    set: Function,
    run: Function,
    functions: HashMap<Digest, Function>,
    /// How often scripts had been flushed when the functions were compiled.
    flushes: u64,
    /// Bytes of memory that clients were charged for it: all that it may take.
    charged: usize,
}

thread_local! {
    static INTERPRETER: RefCell<Option<Interpreter>> = const { RefCell::new(None) };
}

/// Executes a script and writes its reply.
pub(crate) fn run(request: Request<'_>, reply: &mut Reply<'_>) -> Outcome {
    INTERPRETER.with_borrow_mut(|interpreter| {
        let (memory, workers) = (&request.shared.memory, request.shared.options.workers);
        // Each worker has one, and all of them together take a quarter of what clients may.
        let bytes_max = MEMORY_BYTES_MAX.min(memory.one_bytes_max() / 2 / workers).max(MEMORY_BYTES_MIN);
        let outcome = prepared(interpreter).and_then(|interpreter| {
            if interpreter.charged == 0 {
                interpreter.lua.set_memory_limit(bytes_max)?;
                memory.charge(bytes_max);
                interpreter.charged = bytes_max;
            }
            interpreter.execute(request, reply)
        });
        outcome.unwrap_or_else(|error| {
            // Its state is unknown, so the next script gets a fresh one.
            memory.release(interpreter.take().map_or(0, |interpreter| interpreter.charged));
            Outcome::Failed(format!("ERR {}", first_line(&error.to_string())))
        })
    })
}

/// Why a script cannot be compiled; `None` if it can.
pub(crate) fn compile_error(source: &[u8]) -> Option<String> {
    INTERPRETER.with_borrow_mut(|interpreter| {
        let compiled = prepared(interpreter).map(|interpreter| interpreter.compile(source));
        match compiled {
            Ok(compiled) => compiled.err(),
            Err(error) => Some(format!("ERR {}", first_line(&error.to_string()))),
        }
    })
}

fn prepared(interpreter: &mut Option<Interpreter>) -> Result<&mut Interpreter> {
    Ok(match interpreter {
        Some(interpreter) => interpreter,
        none => none.insert(Interpreter::new()?),
    })
}

impl Interpreter {
    fn new() -> Result<Self> {
        let lua = Lua::new_with(StdLib::STRING | StdLib::TABLE | StdLib::MATH, LuaOptions::default())?;
        lua.set_memory_limit(MEMORY_BYTES_MAX)?;
        let host = lua.create_table()?;
        host.set("version", REDIS_VERSION)?;
        let parts = REDIS_VERSION.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        host.set("version_number", parts.fold(0, |number, part| (number << 8) | part))?;
        host.set("cjson", json::library(&lua)?)?;
        host.set("bit", bits::library(&lua)?)?;
        host.set("tostring", lua.globals().get::<Function>("tostring")?)?;
        host.set(
            "sha1hex",
            lua.create_function(|lua, text: mlua::LuaString| {
                lua.create_string(scripts::digest(&text.as_bytes()))
            })?,
        )?;
        let (environment, set, run) =
            lua.load(include_str!("prelude.lua"))
                .set_name("=prelude")
                .call::<(Table, Function, Function)>(host.clone())?;
        let globals = environment.clone();
        let load = move |lua: &Lua, (text, name): (mlua::LuaString, Option<String>)| {
            let text = text.as_bytes().to_vec();
            let chunk = lua.load(text).set_mode(ChunkMode::Text);
            let chunk = chunk.set_name(name.unwrap_or_else(|| "=loadstring".to_owned()));
            match chunk.set_environment(globals.clone()).into_function() {
                Ok(function) => Ok((Some(function), None)),
                Err(error) => Ok((None, Some(first_line(&error.to_string()).to_owned()))),
            }
        };
        host.set("loadstring", lua.create_function(load)?)?;
        Ok(Self { lua, host, environment, set, run, functions: HashMap::new(), flushes: 0, charged: 0 })
    }

    fn execute(&mut self, request: Request<'_>, reply: &mut Reply<'_>) -> Result<Outcome> {
        let flushes = request.shared.scripts.flushes();
        if std::mem::replace(&mut self.flushes, flushes) != flushes || self.functions.len() >= FUNCTIONS_MAX {
            self.functions.clear();
        }
        let Request { digest, source, .. } = request;
        let is_read_only = match head(source) {
            Ok((is_read_only, _)) => is_read_only,
            Err(error) => return Ok(Outcome::Failed(error)),
        };
        let function = match self.functions.get(&digest) {
            Some(function) => function.clone(),
            None => match self.compile(source) {
                Ok(function) => self.functions.entry(digest).or_insert(function).clone(),
                Err(error) => return Ok(Outcome::Failed(error)),
            },
        };
        self.set.call::<()>((self.list(request.keys)?, self.list(request.arguments)?))?;
        let request = Request { is_read_only: request.is_read_only || is_read_only, ..request };
        let _running = request.shared.scripts.begin();
        let stop = Rc::new(Cell::new(None));
        self.watch(&stop, Instant::now() + TIME_MAX, request.shared)?;
        let called = self.call(&function, request);
        self.lua.remove_hook();
        // A script may catch the error that stops it, and end as if nothing had happened.
        if let Some(text) = stop.get() {
            return Ok(Outcome::Stopped(text.to_owned()));
        }
        let (is_done, value) = called?;
        if is_done {
            let start = reply.buffered_bytes();
            if let Err(error) = convert::write(&value, reply, 0) {
                reply.rewind(start);
                return Ok(Outcome::Failed(format!("ERR {}", first_line(&error.to_string()))));
            }
            return Ok(Outcome::Done);
        }
        Ok(Outcome::Failed(failure(&value, &digest)?))
    }

    /// The function of a script.
    fn compile(&self, source: &[u8]) -> std::result::Result<Function, String> {
        let (_, source) = head(source)?;
        let chunk = self.lua.load(source).set_name("@user_script").set_environment(self.environment.clone());
        chunk.set_mode(ChunkMode::Text).into_function().map_err(|error| {
            let text = error.to_string();
            let text = text.strip_prefix("syntax error: ").unwrap_or(&text);
            format!("ERR Error compiling script (new function): {}", first_line(text))
        })
    }

    fn list(&self, arguments: Arguments<'_>) -> Result<Table> {
        let list = self.lua.create_table_with_capacity(arguments.len(), 0)?;
        for (position, argument) in arguments.iter().enumerate() {
            list.raw_set(position + 1, self.lua.create_string(argument)?)?;
        }
        Ok(list)
    }

    /// Stops the script at the deadline, or when it is killed. From then on each instruction fails, so that a script
    /// that catches errors ends, too.
    fn watch(&self, stop: &Rc<Cell<Option<&'static str>>>, deadline: Instant, shared: &Shared) -> Result<()> {
        let stop = stop.clone();
        let kills = shared.scripts.kill_watch();
        self.lua.set_hook(HookTriggers::new().every_nth_instruction(INSTRUCTIONS), move |lua, _| {
            let reason = if kills.is_killed() {
                "ERR Error running script: Script killed by user with SCRIPT KILL."
            } else if Instant::now() >= deadline {
                "ERR the script was stopped after 5 seconds. It has written nothing"
            } else {
                return Ok(VmState::Continue);
            };
            stop.set(Some(reason));
            lua.set_hook(HookTriggers::new().every_nth_instruction(1), move |_, _| {
                Err(mlua::Error::runtime(reason))
            })?;
            Err(mlua::Error::runtime(reason))
        })
    }

    fn call(&self, function: &Function, request: Request<'_>) -> Result<(bool, Value)> {
        let Request {
            keys,
            database,
            session_id,
            user,
            tracking,
            shared,
            databases,
            outbox,
            is_read_only,
            ..
        } = request;
        let mut session = Session::new(Client::new(session_id, None, user));
        session.is_authenticated = true;
        session.database = database;
        session.version = Version::Resp2;
        session.tracking = tracking;
        session.is_script = true;
        let caller = Caller { session, keys, shared, databases, outbox, is_read_only };
        let caller = RefCell::new(caller);
        self.lua.scope(|scope| {
            let call =
                scope.create_function(|lua, words: Variadic<Value>| caller.borrow_mut().call(lua, &words))?;
            let set_version = scope.create_function(|_, number: f64| match version(number) {
                Some(version) => {
                    caller.borrow_mut().session.version = version;
                    Ok(())
                }
                None => Err(mlua::Error::runtime("RESP version must be 2 or 3.")),
            })?;
            self.host.raw_set("call", call)?;
            self.host.raw_set("setresp", set_version)?;
            self.run.call::<(bool, Value)>(function)
        })
    }
}

/// The error reply for what a script has thrown: a reply of a command, or a text with the place in front.
fn failure(thrown: &Value, digest: &Digest) -> Result<String> {
    let digest = String::from_utf8_lossy(digest);
    let (text, line) = match thrown {
        Value::Table(table) => {
            let text: Option<String> = table.raw_get("err")?;
            let line: Option<usize> = table.raw_get("line")?;
            (text.unwrap_or_else(|| "ERR unknown error".to_owned()), line)
        }
        other => {
            let text = match other {
                Value::String(text) => text.to_string_lossy(),
                Value::Error(error) => first_line(&error.to_string()).to_owned(),
                other => format!("{other:?}"),
            };
            let text = text.strip_prefix("runtime error: ").unwrap_or(&text).to_owned();
            let rest = text.strip_prefix("user_script:").and_then(|rest| rest.split_once(':'));
            let line = rest.and_then(|(line, _)| line.parse().ok());
            (format!("ERR {text}"), line)
        }
    };
    Ok(match line {
        Some(line) => format!("{text} script: {digest}, on @user_script:{line}."),
        None => text,
    })
}

/// What the first line of a script says about it: whether it does not write. Also returns the rest, from the end of
/// that line on, so that lines keep their numbers.
fn head(source: &[u8]) -> std::result::Result<(bool, &[u8]), String> {
    const FLAGS: [&str; 5] = ["no-writes", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys"];
    let Some(rest) = source.strip_prefix(b"#!") else { return Ok((false, source)) };
    let end = rest.iter().position(|byte| *byte == b'\n').ok_or("ERR Invalid script shebang")?;
    let line = String::from_utf8_lossy(&rest[..end]);
    let mut words = line.split_ascii_whitespace();
    if words.next() != Some("lua") {
        return Err(format!("ERR Unexpected engine in script shebang: {}", line.trim()));
    }
    let mut does_not_write = false;
    for word in words {
        let flags =
            word.strip_prefix("flags=").ok_or_else(|| format!("ERR Unknown lua shebang option: {word}"))?;
        for flag in flags.split(',').filter(|flag| !flag.is_empty()) {
            if !FLAGS.contains(&flag) {
                return Err(format!("ERR Unexpected flag in script shebang: {flag}"));
            }
            does_not_write |= flag == FLAGS[0];
        }
    }
    Ok((does_not_write, &rest[end..]))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
