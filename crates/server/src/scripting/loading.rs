//! Loading libraries: their sources are executed, and register functions.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mlua::{Function, Result, Table, Value, Variadic};

use super::convert::format_number;
use super::interpreter::{Interpreter, Stop, error_text, first_line, text_of, with_interpreter};
use super::libraries::{BYTES_MAX, FUNCTIONS_MAX, Libraries, LibrarySet};
use super::library::{Description, Library, LibraryFunction};
use super::program::LIBRARY_CHUNK;
use super::{TIME_MAX, shebang, thrown};
use crate::shared::Shared;
use crate::store::{Store, StoreError};

/// How long `FUNCTION LOAD` may execute a source, as in Redis.
pub(crate) const LOAD_TIME_MAX: Duration = Duration::from_millis(500);

/// Functions that a source has registered.
struct Registered {
    descriptions: BTreeMap<Box<str>, Description>,
    /// Bytes of the descriptions.
    bytes: usize,
    /// The functions by their names. An interpreter has no room for a handle of each.
    functions: Table,
}

/// The name of the library of this source.
///
/// # Errors
/// A whole error text, with its code.
pub(crate) fn library_name(source: &[u8]) -> std::result::Result<String, String> {
    shebang::of_library(source).map(|(name, _)| name)
}

/// Loads the library of this source.
///
/// # Errors
/// A whole error text, with its code.
pub(crate) fn load(
    shared: &Shared,
    source: &[u8],
    deadline: Instant,
) -> std::result::Result<Library, String> {
    with_interpreter(shared, |interpreter| Ok(interpreter.load_library(source, deadline, &shared.libraries)))?
}

/// Loads the libraries that the store has. Those that cannot be loaded are kept, and their functions are missing.
pub(crate) fn load_stored(libraries: &Libraries, store: &dyn Store) -> std::result::Result<(), StoreError> {
    let sources = store.libraries()?;
    if sources.is_empty() {
        return Ok(());
    }
    let interpreter = Interpreter::new().map_err(|error| error.to_string())?;
    let load = |(name, source): (Vec<u8>, Vec<u8>)| {
        let loaded = interpreter.load_library(&source, Instant::now() + TIME_MAX, libraries);
        loaded.unwrap_or_else(|text| {
            let name = String::from_utf8_lossy(&name);
            tracing::error!(library = &*name, reason = text, "a library of functions cannot be loaded");
            Library {
                name: name.into(),
                source: source.into(),
                functions: BTreeMap::new(),
                failure: Some(text),
                version: libraries.next_version(),
            }
        })
    };
    libraries.begin_with(sources.into_iter().map(load).collect());
    Ok(())
}

impl Interpreter {
    fn load_library(
        &self,
        source: &[u8],
        deadline: Instant,
        libraries: &Libraries,
    ) -> std::result::Result<Library, String> {
        let (name, _) = shebang::of_library(source)?;
        let registered = self.load_functions(source, deadline)?;
        Ok(Library {
            name: name.into(),
            source: source.into(),
            functions: registered.descriptions,
            failure: None,
            version: libraries.next_version(),
        })
    }

    /// A function of a library, which is loaded if this interpreter has not done so yet.
    pub(super) fn library_function(
        &mut self,
        function: &LibraryFunction,
        deadline: Instant,
        current: &LibrarySet,
    ) -> std::result::Result<Function, String> {
        if std::mem::replace(&mut self.generation, current.generation) != current.generation {
            self.libraries.retain(|version, (name, _)| current.has_version(name, *version));
        }
        let library = &function.library;
        if !self.libraries.contains_key(&library.version) {
            let functions = self.load_functions(&library.source, deadline)?.functions;
            self.libraries.insert(library.version, (library.name.clone(), functions));
        }
        match self.libraries[&library.version].1.raw_get(&*function.name) {
            Ok(Value::Function(function)) => Ok(function),
            _ => Err("ERR Function not found".to_owned()),
        }
    }

    /// Executes a source, and returns the functions that it registers.
    fn load_functions(&self, source: &[u8], deadline: Instant) -> std::result::Result<Registered, String> {
        let (_, body) = shebang::of_library(source)?;
        let body = self
            .compile(body, LIBRARY_CHUNK, &self.prelude.library_environment)
            .map_err(|text| format!("ERR Error compiling function: {text}"))?;
        let functions = self.lua.create_table().map_err(|error| error_text(&error))?;
        let registered = Registered { descriptions: BTreeMap::new(), bytes: 0, functions };
        let registered = RefCell::new(registered);
        let stop = Stop::default();
        let loaded = self.execute_body(&body, &registered, &stop, deadline);
        self.lua.remove_hook();
        let left = self
            .host
            .raw_set("register", Value::Nil)
            .and_then(|()| self.prelude.set_loading.call::<()>(false));
        if stop.get().is_some() {
            return Err("ERR Error registering functions: FUNCTION LOAD timeout".to_owned());
        }
        let (is_done, thrown) =
            loaded.and_then(|loaded| left.map(|()| loaded)).map_err(|error| error_text(&error))?;
        if !is_done {
            let thrown = thrown::caught(&self.lua, thrown).map_err(|error| error_text(&error))?;
            return Err(format!("ERR Error registering functions: {}", thrown_text(&thrown)));
        }
        let registered = registered.into_inner();
        if registered.descriptions.is_empty() {
            return Err("ERR No functions registered".to_owned());
        }
        Ok(registered)
    }

    fn execute_body(
        &self,
        body: &Function,
        registered: &RefCell<Registered>,
        stop: &Stop,
        deadline: Instant,
    ) -> Result<(bool, Value)> {
        self.lua.scope(|scope| {
            let register = scope.create_function(|_, arguments: Variadic<Value>| {
                Ok(register(&arguments, &mut registered.borrow_mut()).err())
            })?;
            self.host.raw_set("register", register)?;
            self.prelude.set_loading.call::<()>(true)?;
            self.watch(stop, deadline, None)?;
            self.prelude.run.call((body, 0))
        })
    }
}

/// What a source has thrown, as Redis writes it.
fn thrown_text(thrown: &Value) -> String {
    if let Value::Table(table) = thrown {
        return match table.raw_get("err") {
            Ok(Value::String(text)) => text.to_string_lossy(),
            _ => "ERR unknown error".to_owned(),
        };
    }
    format!("ERR {}", text_of(thrown))
}

/// Notes the function that `redis.register_function` was given.
fn register(arguments: &[Value], registered: &mut Registered) -> std::result::Result<(), String> {
    let (name, description, function) = match arguments {
        [Value::Table(named)] => named_arguments(named)?,
        [_] => {
            return Err(
                "calling redis.register_function with a single argument is only applicable to Lua table \
                        (representing named arguments)."
                    .to_owned(),
            );
        }
        [name, function] => {
            let name = text(name).ok_or("first argument to redis.register_function must be a string")?;
            let Value::Function(function) = function else {
                return Err("second argument to redis.register_function must be a function".to_owned());
            };
            (name, Description::default(), function.clone())
        }
        _ => return Err("wrong number of arguments to redis.register_function".to_owned()),
    };
    let name = shebang::checked_name(&name).map_err(|text| text.trim_start_matches("ERR ").to_owned())?;
    if registered.descriptions.contains_key(&name[..]) {
        return Err("Function already exists in the library".to_owned());
    }
    registered.bytes += description.bytes(&name);
    if registered.descriptions.len() >= FUNCTIONS_MAX || registered.bytes > BYTES_MAX {
        return Err(format!(
            "a server has at most {FUNCTIONS_MAX} functions and {BYTES_MAX} bytes of libraries"
        ));
    }
    let noted = registered.functions.raw_set(&name[..], function);
    noted.map_err(|error| first_line(&error.to_string()).to_owned())?;
    registered.descriptions.insert(name.into(), description);
    Ok(())
}

fn named_arguments(named: &Table) -> std::result::Result<(Vec<u8>, Description, Function), String> {
    let (mut name, mut description, mut function) = (None, Description::default(), None);
    for pair in named.pairs::<Value, Value>() {
        let (key, value) = pair.map_err(|error| first_line(&error.to_string()).to_owned())?;
        let key = text(&key).ok_or("named argument key given to redis.register_function is not a string")?;
        match &key.to_ascii_lowercase()[..] {
            b"function_name" => {
                let given = text(&value);
                name = Some(
                    given
                        .ok_or("function_name argument given to redis.register_function must be a string")?,
                );
            }
            b"description" => {
                let given = text(&value)
                    .ok_or("description argument given to redis.register_function must be a string")?;
                description.text = Some(given.into());
            }
            b"callback" => match value {
                Value::Function(given) => function = Some(given),
                _ => {
                    return Err(
                        "callback argument given to redis.register_function must be a function".to_owned()
                    );
                }
            },
            b"flags" => {
                let Value::Table(flags) = value else {
                    return Err(
                        "flags argument to redis.register_function must be a table representing function \
                                flags"
                            .to_owned(),
                    );
                };
                add_flags(&flags, &mut description)?;
            }
            _ => return Err("unknown argument given to redis.register_function".to_owned()),
        }
    }
    let name = name.ok_or("redis.register_function must get a function name argument")?;
    let function = function.ok_or("redis.register_function must get a callback argument")?;
    Ok((name, description, function))
}

fn add_flags(flags: &Table, description: &mut Description) -> std::result::Result<(), String> {
    for position in 1.. {
        let flag = flags.raw_get(position).map_err(|error| first_line(&error.to_string()).to_owned())?;
        if matches!(flag, Value::Nil) {
            break;
        }
        let is_known = text(&flag).is_some_and(|flag| description.flags.add(&flag));
        if !is_known {
            return Err("unknown flag given".to_owned());
        }
    }
    Ok(())
}

/// A value as Lua takes it for a string: numbers are, too.
fn text(value: &Value) -> Option<Vec<u8>> {
    match value {
        Value::String(text) => Some(text.as_bytes().to_vec()),
        Value::Integer(number) => Some(number.to_string().into_bytes()),
        Value::Number(number) => Some(format_number(*number, 14).into_bytes()),
        _ => None,
    }
}
