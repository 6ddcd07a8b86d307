//! The functions of the table `redis` that need the server.
//!
//! They are made once, so that scripts and functions may keep them. What belongs to a script in execution is behind
//! functions of the table `host`, which are replaced for each. They are no Lua functions: those would hide the line
//! that calls them in `return redis.call(…)`.

use std::cell::RefCell;
use std::rc::Rc;

use mlua::{Function, Lua, Result, Table, Value, Variadic};

use super::call::request_of;
use super::thrown::Thrown;
use super::{scripts, thrown};

/// The request that the script makes, for the function of `host` that is called next.
pub(super) type RequestSlot = Rc<RefCell<Vec<u8>>>;

/// Flags of `redis.set_repl`: to all replicas and to the log.
const REPLICATION_FLAGS: i64 = 3;
/// Levels of `redis.log`.
const LOG_LEVELS: std::ops::RangeInclusive<i64> = 0..=3;

pub(super) fn library(lua: &Lua, host: &Table, slot: &RequestSlot) -> Result<Table> {
    let library = lua.create_table()?;
    let requesting = |name: &'static str| {
        let (host, slot) = (host.clone(), slot.clone());
        move |words: &[Value]| -> Result<Value> {
            let frame = request_of(words).map_err(Thrown::error)?;
            *slot.borrow_mut() = frame;
            of_script(&host, name)?.call(())
        }
    };
    let call = requesting("call");
    let call = move |_: &Lua, words: Variadic<Value>| match call(&words)? {
        Value::Table(table) => match table.raw_get("err")? {
            Value::String(text) => Err(Thrown::counted(text.to_string_lossy())),
            _ => Ok(Value::Table(table)),
        },
        value => Ok(value),
    };
    library.set("call", lua.create_function(call)?)?;
    let call = requesting("call");
    let call = move |lua: &Lua, words: Variadic<Value>| {
        call(&words).or_else(|error| thrown::caught(lua, Value::Error(Box::new(error))))
    };
    library.set("pcall", lua.create_function(call)?)?;
    let check = requesting("is_allowed");
    let check = move |_: &Lua, words: Variadic<Value>| match check(&words)? {
        Value::Nil => Err(Thrown::error("Invalid command passed to redis.acl_check_cmd()")),
        is_allowed => Ok(is_allowed),
    };
    library.set("acl_check_cmd", lua.create_function(check)?)?;
    let scripts = host.clone();
    let set_version = move |_: &Lua, arguments: Variadic<Value>| {
        let [version] = &arguments[..] else {
            return Err(Thrown::error("redis.setresp() requires one argument."));
        };
        match of_script(&scripts, "setresp")?.call(integer(version))? {
            true => Ok(()),
            false => Err(Thrown::error("RESP version must be 2 or 3.")),
        }
    };
    library.set("setresp", lua.create_function(set_version)?)?;
    let libraries = host.clone();
    let register = move |_: &Lua, arguments: Variadic<Value>| {
        let Value::Function(register) = libraries.raw_get("register")? else {
            return Err(Thrown::error("redis.register_function can only be called on FUNCTION LOAD command"));
        };
        match register.call(arguments)? {
            None::<String> => Ok(()),
            Some(refusal) => Err(Thrown::error(refusal)),
        }
    };
    library.set("register_function", lua.create_function(register)?)?;
    library.set("log", lua.create_function(|_, arguments: Variadic<Value>| log(&arguments))?)?;
    let set_replication = |_: &Lua, arguments: Variadic<Value>| match &arguments[..] {
        [flags] if integer(flags) & !REPLICATION_FLAGS == 0 => Ok(()),
        [_] => Err(Thrown::error(
            "Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.",
        )),
        _ => Err(Thrown::error("redis.set_repl() requires two arguments.")),
    };
    library.set("set_repl", lua.create_function(set_replication)?)?;
    let digest = |lua: &Lua, arguments: Variadic<mlua::Value>| match &arguments[..] {
        [text] => {
            let text = lua.coerce_string(text.clone())?;
            lua.create_string(scripts::digest(&text.map_or_else(Vec::new, |text| text.as_bytes().to_vec())))
        }
        _ => Err(Thrown::error("wrong number of arguments")),
    };
    library.set("sha1hex", lua.create_function(digest)?)?;
    Ok(library)
}

/// The function of `host` for the script in execution.
fn of_script(host: &Table, name: &str) -> Result<Function> {
    match host.raw_get(name)? {
        Value::Function(function) => Ok(function),
        _ => Err(Thrown::error("this function can only be called inside a script invocation")),
    }
}

/// A number without its fraction; 0 for what is none.
fn integer(value: &Value) -> i64 {
    match value {
        Value::Integer(number) => *number,
        Value::Number(number) => *number as i64,
        Value::String(text) => text.to_string_lossy().trim().parse::<f64>().map_or(0, |number| number as i64),
        _ => 0,
    }
}

/// The log is the operator's: what scripts say is checked, and not written there.
fn log(arguments: &[Value]) -> Result<()> {
    let [level, _, ..] = arguments else {
        return Err(Thrown::error("redis.log() requires two arguments or more."));
    };
    let is_number = match level {
        Value::Integer(_) | Value::Number(_) => true,
        Value::String(text) => text.to_string_lossy().trim().parse::<f64>().is_ok(),
        _ => false,
    };
    match () {
        () if !is_number => Err(Thrown::error("First argument must be a number (log level).")),
        () if !LOG_LEVELS.contains(&integer(level)) => Err(Thrown::error("Invalid debug level.")),
        () => Ok(()),
    }
}
