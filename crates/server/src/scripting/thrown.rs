//! [`Thrown`]: errors of the server's functions, as scripts see them.

use std::fmt;

use mlua::{Error, Lua, Result, Value};

use super::interpreter::text_of;

/// An error that a function of the server throws: a table with a field `err` for scripts that catch it.
#[derive(Debug)]
pub(super) struct Thrown {
    /// A whole error text, with its code.
    pub(super) text: String,
    /// Whether the error was counted when it occurred.
    pub(super) is_counted: bool,
}

/// The field of an error's table that says that it was counted, as in Redis.
pub(super) const COUNTED: &str = "ignore_error_stats_update";

impl Thrown {
    /// The error with this text, which has no code.
    pub(super) fn error(text: impl fmt::Display) -> Error {
        Error::external(Self { text: format!("ERR {text}"), is_counted: false })
    }

    /// The error with this text, which has a code and was counted.
    pub(super) fn counted(text: String) -> Error {
        Error::external(Self { text, is_counted: true })
    }
}

impl fmt::Display for Thrown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl std::error::Error for Thrown {}

/// What a script gets that catches `thrown`: never an object of the server.
pub(super) fn caught(lua: &Lua, thrown: Value) -> Result<Value> {
    let Value::Error(error) = &thrown else { return Ok(thrown) };
    let Some(Thrown { text, is_counted }) = error.downcast_ref() else {
        return Ok(Value::String(lua.create_string(text_of(&thrown))?));
    };
    let table = lua.create_table()?;
    table.raw_set("err", &text[..])?;
    if *is_counted {
        table.raw_set(COUNTED, true)?;
    }
    Ok(Value::Table(table))
}
