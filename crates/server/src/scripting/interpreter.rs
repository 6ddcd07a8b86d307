//! The interpreter of a worker.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

use alluvium_protocol::Arguments;
use mlua::chunk::ChunkMode;
use mlua::{Error, Function, HookTriggers, Lua, LuaOptions, Result, StdLib, Table, Value, VmState};

use super::api::RequestSlot;
use super::convert::format_number;
use super::program::SCRIPT_CHUNK;
use super::running::{KillWatch, Kind};
use super::scripts::Digest;
use super::{api, bits, json, msgpack, shebang, structs, thrown};
use crate::commands::REDIS_VERSION;
use crate::shared::Shared;

/// Maximum bytes of memory of an interpreter. A script that needs more fails.
const MEMORY_BYTES_MAX: usize = 256 << 20;
/// They are never fewer than this.
const MEMORY_BYTES_MIN: usize = 512 << 10;
/// Maximum number of scripts that an interpreter keeps compiled.
const SCRIPTS_MAX: usize = 1000;
/// Instructions between two looks at the clock.
const INSTRUCTIONS: u32 = 10_000;

pub(super) struct Interpreter {
    pub(super) lua: Lua,
    pub(super) host: Table,
    pub(super) prelude: Prelude,
    /// The request that a script makes.
    pub(super) request: RequestSlot,
    /// What the script has set for JSON.
    pub(super) json: Rc<Cell<json::Settings>>,
    /// Where the last error occurred that a script did not catch.
    pub(super) place: Rc<Cell<Option<Place>>>,
    scripts: HashMap<Digest, Function>,
    /// How often scripts had been flushed when these were compiled.
    flushes: u64,
    /// Libraries that were loaded here, by their versions: their names, and a table of their functions.
    pub(super) libraries: HashMap<u64, (Box<str>, Table)>,
    /// The generation of libraries when old ones were last removed here.
    pub(super) generation: u64,
    /// Bytes of memory that clients were charged for it: all that it may take.
    charged: usize,
}

/// What `prelude.lua` returns.
pub(super) struct Prelude {
    script_environment: Table,
    pub(super) library_environment: Table,
    /// Sets the keys and arguments of scripts.
    pub(super) set: Function,
    /// Says whether a library is being loaded.
    pub(super) set_loading: Function,
    /// Executes a function with a number of arguments, and returns whether it succeeded, and what it has returned or
    /// thrown.
    pub(super) run: Function,
}

/// Why a script was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    Killed,
    TooLong,
}

/// Set when a script is stopped.
pub(super) type Stop = Rc<Cell<Option<StopReason>>>;

impl StopReason {
    /// A whole error text, with its code.
    pub(super) fn text(self, kind: Kind) -> String {
        let (command, noun) = match kind {
            Kind::Script => ("SCRIPT KILL", "script"),
            Kind::Function => ("FUNCTION KILL", "function"),
        };
        match self {
            Self::Killed => format!("ERR Error running script: Script killed by user with {command}."),
            Self::TooLong => format!("ERR the {noun} was stopped after 5 seconds. It has written nothing"),
        }
    }
}

/// The source and the line where an error occurred.
pub(super) type Place = (String, usize);

/// Maximum number of calls in which the place of an error is looked for.
const PLACE_LEVELS_MAX: usize = 10;

/// Where the script is that has caused the error which is being handled.
fn place_of_error(lua: &Lua) -> Option<Place> {
    (1..PLACE_LEVELS_MAX).find_map(|level| {
        let place = lua.inspect_stack(level, |debug| {
            let (source, line) = (debug.source(), debug.current_line());
            let source = source.source.filter(|source| source != PRELUDE_CHUNK && source != "=[C]")?;
            Some((source.into_owned(), line?))
        });
        place.flatten()
    })
}

/// How Lua calls the source of `prelude.lua`.
const PRELUDE_CHUNK: &str = "=prelude";

thread_local! {
    static INTERPRETER: RefCell<Option<Interpreter>> = const { RefCell::new(None) };
}

/// Calls `work` with the interpreter of this worker.
///
/// # Errors
/// A whole error text, with its code. The interpreter's state is unknown then, so the next script gets a fresh one.
pub(super) fn with_interpreter<T>(
    shared: &Shared,
    work: impl FnOnce(&mut Interpreter) -> Result<T>,
) -> std::result::Result<T, String> {
    INTERPRETER.with_borrow_mut(|interpreter| {
        let memory = &shared.memory;
        // Each worker has one, and all of them together take a quarter of what clients may.
        let bytes_max = memory.one_bytes_max() / 2 / shared.options.workers;
        let bytes_max = MEMORY_BYTES_MAX.min(bytes_max).max(MEMORY_BYTES_MIN);
        let outcome = prepared(interpreter).and_then(|interpreter| {
            if interpreter.charged == 0 {
                interpreter.lua.set_memory_limit(bytes_max)?;
                memory.charge(bytes_max);
                interpreter.charged = bytes_max;
            }
            work(interpreter)
        });
        outcome.map_err(|error| {
            memory.release(interpreter.take().map_or(0, |interpreter| interpreter.charged));
            error_text(&error)
        })
    })
}

fn prepared(interpreter: &mut Option<Interpreter>) -> Result<&mut Interpreter> {
    Ok(match interpreter {
        Some(interpreter) => interpreter,
        none => none.insert(Interpreter::new()?),
    })
}

/// Why a script cannot be compiled; `None` if it can.
pub(crate) fn compile_error(shared: &Shared, source: &[u8]) -> Option<String> {
    with_interpreter(shared, |interpreter| Ok(interpreter.compile_script(source).err())).unwrap_or_else(Some)
}

impl Interpreter {
    pub(super) fn new() -> Result<Self> {
        let lua = Lua::new_with(StdLib::STRING | StdLib::TABLE | StdLib::MATH, LuaOptions::default())?;
        lua.set_memory_limit(MEMORY_BYTES_MAX)?;
        let host = lua.create_table()?;
        host.set("version", REDIS_VERSION)?;
        let parts = REDIS_VERSION.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
        host.set("version_number", parts.fold(0, |number, part| (number << 8) | part))?;
        let json = Rc::default();
        host.set("cjson", json::library(&lua, &json)?)?;
        host.set("cmsgpack", msgpack::library(&lua)?)?;
        host.set("struct", structs::library(&lua)?)?;
        host.set("bit", bits::library(&lua)?)?;
        host.set("tostring", lua.globals().get::<Function>("tostring")?)?;
        let (request, place) = (RequestSlot::default(), Rc::new(Cell::default()));
        host.set("api", api::library(&lua, &host, &request)?)?;
        host.set("caught", lua.create_function(thrown::caught)?)?;
        let noted = Rc::clone(&place);
        let note_place = move |lua: &Lua, thrown: Value| {
            noted.set(place_of_error(lua));
            Ok(thrown)
        };
        host.set("note_place", lua.create_function(note_place)?)?;
        let (script_environment, library_environment, set, set_loading, run) = lua
            .load(include_str!("prelude.lua"))
            .set_name(PRELUDE_CHUNK)
            .call::<(Table, Table, Function, Function, Function)>(host.clone())?;
        let prelude = Prelude { script_environment, library_environment, set, set_loading, run };
        let load = |environment: &Table| {
            let environment = environment.clone();
            lua.create_function(move |lua, (text, name): (mlua::LuaString, Option<String>)| {
                let text = text.as_bytes().to_vec();
                let name = name.unwrap_or_else(|| String::from_utf8_lossy(&text).into_owned());
                let chunk = lua.load(text).set_mode(ChunkMode::Text);
                let chunk = chunk.set_name(name);
                match chunk.set_environment(environment.clone()).into_function() {
                    Ok(function) => Ok((Some(function), None)),
                    Err(error) => Ok((None, Some(first_line(&error.to_string()).to_owned()))),
                }
            })
        };
        host.set("loadstring", load(&prelude.script_environment)?)?;
        host.set("loadstring_of_library", load(&prelude.library_environment)?)?;
        Ok(Self {
            lua,
            host,
            prelude,
            request,
            place,
            json,
            scripts: HashMap::new(),
            flushes: 0,
            libraries: HashMap::new(),
            generation: 0,
            charged: 0,
        })
    }

    /// The function of a script, which is compiled if that has not happened since `flushes`.
    pub(super) fn script(
        &mut self,
        digest: Digest,
        source: &[u8],
        flushes: u64,
    ) -> std::result::Result<Function, String> {
        if std::mem::replace(&mut self.flushes, flushes) != flushes || self.scripts.len() >= SCRIPTS_MAX {
            self.scripts.clear();
        }
        if let Some(function) = self.scripts.get(&digest) {
            return Ok(function.clone());
        }
        let function = self.compile_script(source)?;
        self.scripts.insert(digest, function.clone());
        Ok(function)
    }

    fn compile_script(&self, source: &[u8]) -> std::result::Result<Function, String> {
        let (_, source) = shebang::of_script(source)?;
        self.compile(source, SCRIPT_CHUNK, &self.prelude.script_environment)
            .map_err(|text| format!("ERR Error compiling script (new function): {text}"))
    }

    /// The function of a source that errors call `chunk`.
    pub(super) fn compile(
        &self,
        source: &[u8],
        chunk: &str,
        environment: &Table,
    ) -> std::result::Result<Function, String> {
        let chunk = self.lua.load(source).set_name(format!("@{chunk}")).set_environment(environment.clone());
        chunk.set_mode(ChunkMode::Text).into_function().map_err(|error| {
            let text = error.to_string();
            first_line(text.strip_prefix("syntax error: ").unwrap_or(&text)).to_owned()
        })
    }

    pub(super) fn list(&self, arguments: Arguments<'_>) -> Result<Table> {
        let list = self.lua.create_table_with_capacity(arguments.len(), 0)?;
        for (position, argument) in arguments.iter().enumerate() {
            list.raw_set(position + 1, self.lua.create_string(argument)?)?;
        }
        Ok(list)
    }

    /// Stops what is executed at the deadline, or when it is killed. From then on each instruction fails, so that a
    /// script that catches errors ends, too.
    pub(super) fn watch(&self, stop: &Stop, deadline: Instant, kills: Option<KillWatch>) -> Result<()> {
        let stop = stop.clone();
        self.lua.set_hook(HookTriggers::new().every_nth_instruction(INSTRUCTIONS), move |lua, _| {
            let reason = if kills.as_ref().is_some_and(KillWatch::is_killed) {
                StopReason::Killed
            } else if Instant::now() >= deadline {
                StopReason::TooLong
            } else {
                return Ok(VmState::Continue);
            };
            stop.set(Some(reason));
            let error = || Error::runtime("the script was stopped");
            lua.set_hook(HookTriggers::new().every_nth_instruction(1), move |_, _| Err(error()))?;
            Err(error())
        })
    }
}

/// What was thrown, as a text.
pub(super) fn text_of(thrown: &Value) -> String {
    let text = match thrown {
        Value::String(text) => text.to_string_lossy(),
        Value::Error(error) => first_line(&error.to_string()).to_owned(),
        Value::Nil => "nil".to_owned(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Integer(number) => number.to_string(),
        Value::Number(number) => format_number(*number, 14),
        other => other.type_name().to_owned(),
    };
    text.strip_prefix("runtime error: ").unwrap_or(&text).to_owned()
}

/// A whole error text, with its code.
pub(super) fn error_text(error: &Error) -> String {
    format!("ERR {}", first_line(&error.to_string()))
}

pub(super) fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
