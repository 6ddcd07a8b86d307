//! The library `cjson`: JSON from and to Lua values.

use mlua::{Error, Lua, Result, Table, Value};

/// Maximum depth of nested tables, in both directions.
const DEPTH_MAX: usize = 1000;
/// A table with integer keys is an array if at least one of this many positions is used, or it is short.
const SPARSE_RATIO: usize = 2;
const SPARSE_SAFE: usize = 10;

pub(super) fn library(lua: &Lua) -> Result<Table> {
    let library = lua.create_table()?;
    library.set(
        "encode",
        lua.create_function(|lua, value: Value| {
            let mut out = Vec::new();
            encode(&value, &mut out, 0)?;
            lua.create_string(&out)
        })?,
    )?;
    library.set(
        "decode",
        lua.create_function(|lua, text: mlua::LuaString| {
            let json: serde_json::Value = serde_json::from_slice(&text.as_bytes())
                .map_err(|error| Error::runtime(format!("cannot decode JSON: {error}")))?;
            decode(lua, &json, 0)
        })?,
    )?;
    // Lua CJSON may keep its buffer between calls, which scripts cannot notice.
    library.set("encode_keep_buffer", lua.create_function(|_, _: mlua::Variadic<Value>| Ok(()))?)?;
    library.set("null", Value::NULL)?;
    Ok(library)
}

fn encode(value: &Value, out: &mut Vec<u8>, depth: usize) -> Result<()> {
    if depth > DEPTH_MAX {
        return Err(Error::runtime("Cannot serialise, excessive depth"));
    }
    match value {
        Value::Nil => out.extend_from_slice(b"null"),
        Value::LightUserData(pointer) if pointer.0.is_null() => out.extend_from_slice(b"null"),
        Value::Boolean(flag) => out.extend_from_slice(if *flag { b"true" } else { b"false" }),
        Value::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Number(number) => encode_number(*number, out)?,
        Value::String(text) => encode_text(&text.as_bytes(), out),
        Value::Table(table) => encode_table(table, out, depth)?,
        other => {
            let kind = other.type_name();
            return Err(Error::runtime(format!("Cannot serialise {kind}: type not supported")));
        }
    }
    Ok(())
}

fn encode_number(number: f64, out: &mut Vec<u8>) -> Result<()> {
    if !number.is_finite() {
        return Err(Error::runtime("Cannot serialise number: must not be NaN or Inf"));
    }
    out.extend_from_slice(super::convert::format_number(number, 14).as_bytes());
    Ok(())
}

fn encode_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' | b'\\' | b'/' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            0..32 | 127 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

fn encode_table(table: &Table, out: &mut Vec<u8>, depth: usize) -> Result<()> {
    match array_len(table)? {
        Some(len) => {
            out.push(b'[');
            for position in 1..=len {
                if position > 1 {
                    out.push(b',');
                }
                encode(&table.raw_get(position)?, out, depth + 1)?;
            }
            out.push(b']');
        }
        None => {
            out.push(b'{');
            let mut is_first = true;
            for pair in table.pairs::<Value, Value>() {
                let (key, value) = pair?;
                if !std::mem::take(&mut is_first) {
                    out.push(b',');
                }
                match key {
                    Value::String(text) => encode_text(&text.as_bytes(), out),
                    Value::Integer(number) => encode_text(number.to_string().as_bytes(), out),
                    Value::Number(number) => {
                        encode_text(super::convert::format_number(number, 14).as_bytes(), out);
                    }
                    _ => {
                        return Err(Error::runtime(
                            "Cannot serialise table: table key must be a number or string",
                        ));
                    }
                }
                out.push(b':');
                encode(&value, out, depth + 1)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

/// The length of a table whose keys are positions; `None` for any other, an empty one included.
fn array_len(table: &Table) -> Result<Option<usize>> {
    let (mut entries, mut last) = (0_usize, 0_usize);
    for pair in table.pairs::<Value, Value>() {
        let position = match pair?.0 {
            Value::Integer(number) if number >= 1 => number as usize,
            Value::Number(number) if number >= 1.0 && number.fract() == 0.0 => number as usize,
            _ => return Ok(None),
        };
        entries += 1;
        last = last.max(position);
    }
    if last > SPARSE_SAFE && last > entries.saturating_mul(SPARSE_RATIO) {
        return Err(Error::runtime("Cannot serialise table: excessively sparse array"));
    }
    Ok((entries > 0).then_some(last))
}

fn decode(lua: &Lua, json: &serde_json::Value, depth: usize) -> Result<Value> {
    if depth > DEPTH_MAX {
        return Err(Error::runtime("Found too many nested data structures"));
    }
    Ok(match json {
        serde_json::Value::Null => Value::NULL,
        serde_json::Value::Bool(flag) => Value::Boolean(*flag),
        serde_json::Value::Number(number) => Value::Number(number.as_f64().unwrap_or(f64::NAN)),
        serde_json::Value::String(text) => Value::String(lua.create_string(text)?),
        serde_json::Value::Array(values) => {
            let table = lua.create_table_with_capacity(values.len(), 0)?;
            for (position, value) in values.iter().enumerate() {
                table.raw_set(position + 1, decode(lua, value, depth + 1)?)?;
            }
            Value::Table(table)
        }
        serde_json::Value::Object(members) => {
            let table = lua.create_table_with_capacity(0, members.len())?;
            for (name, value) in members {
                table.raw_set(name.as_str(), decode(lua, value, depth + 1)?)?;
            }
            Value::Table(table)
        }
    })
}
