//! The library `cjson`: JSON from and to Lua values.

use std::cell::Cell;
use std::rc::Rc;

use mlua::{Error, Lua, Result, Table, Value};

/// What scripts may set. Each script begins with the defaults, so none depends on another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Settings {
    /// Maximum depth of nested tables.
    encode_depth_max: usize,
    decode_depth_max: usize,
    /// What becomes of numbers that JSON does not have.
    invalid_numbers: InvalidNumbers,
    /// Digits of a number.
    digits: usize,
    /// A table with integer keys is an array if at least one of this many positions is used, or it is short. With a
    /// ratio of 0, it always is.
    sparse_ratio: usize,
    sparse_safe: usize,
    /// Whether other tables with integer keys become objects, instead of being refused.
    converts_sparse: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InvalidNumbers {
    Refused,
    Written,
    Null,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            encode_depth_max: 1000,
            decode_depth_max: 1000,
            invalid_numbers: InvalidNumbers::Refused,
            digits: 14,
            sparse_ratio: 2,
            sparse_safe: 10,
            converts_sparse: false,
        }
    }
}

/// Maximum depth of nested tables that a script may set.
const DEPTH_MAX: usize = 1000;
/// Maximum number of values and of bytes that are encoded: a few tables that contain each other would give any number.
const ENCODED_VALUES_MAX: usize = 1 << 22;
const ENCODED_BYTES_MAX: usize = 64 << 20;

pub(super) fn library(lua: &Lua, settings: &Rc<Cell<Settings>>) -> Result<Table> {
    let library = lua.create_table()?;
    let of_encode = Rc::clone(settings);
    library.set(
        "encode",
        lua.create_function(move |lua, value: Value| {
            let mut out = Encoded { bytes: Vec::new(), left: ENCODED_VALUES_MAX, settings: of_encode.get() };
            encode(&value, &mut out, 0)?;
            lua.create_string(&out.bytes)
        })?,
    )?;
    let of_decode = Rc::clone(settings);
    library.set(
        "decode",
        lua.create_function(move |lua, text: mlua::LuaString| {
            let json: serde_json::Value = serde_json::from_slice(&text.as_bytes())
                .map_err(|error| Error::runtime(format!("cannot decode JSON: {error}")))?;
            decode(lua, &json, 0, of_decode.get().decode_depth_max)
        })?,
    )?;
    type Field = fn(&mut Settings) -> &mut usize;
    let numbers: [(&str, std::ops::RangeInclusive<i64>, Field); 3] = [
        ("encode_max_depth", 1..=DEPTH_MAX as i64, |settings| &mut settings.encode_depth_max),
        ("decode_max_depth", 1..=DEPTH_MAX as i64, |settings| &mut settings.decode_depth_max),
        ("encode_number_precision", 1..=14, |settings| &mut settings.digits),
    ];
    for (name, range, field) in numbers {
        let settings = Rc::clone(settings);
        let set = move |_: &Lua, number: Option<i64>| {
            let mut changed = settings.get();
            if let Some(number) = number {
                *field(&mut changed) = within(number, &range)?;
                settings.set(changed);
            }
            Ok(*field(&mut changed))
        };
        library.set(name, lua.create_function(set)?)?;
    }
    let sparse = Rc::clone(settings);
    let set_sparse = move |_: &Lua, (converts, ratio, safe): (Option<bool>, Option<i64>, Option<i64>)| {
        let mut changed = sparse.get();
        changed.converts_sparse = converts.unwrap_or(changed.converts_sparse);
        if let Some(ratio) = ratio {
            changed.sparse_ratio = within(ratio, &(0..=i64::from(i32::MAX)))?;
        }
        if let Some(safe) = safe {
            changed.sparse_safe = within(safe, &(0..=i64::from(i32::MAX)))?;
        }
        sparse.set(changed);
        Ok((changed.converts_sparse, changed.sparse_ratio, changed.sparse_safe))
    };
    library.set("encode_sparse_array", lua.create_function(set_sparse)?)?;
    let invalid = Rc::clone(settings);
    let set_invalid = move |lua: &Lua, value: Value| {
        let mut changed = invalid.get();
        changed.invalid_numbers = match value {
            Value::Nil => changed.invalid_numbers,
            Value::Boolean(false) => InvalidNumbers::Refused,
            Value::Boolean(true) => InvalidNumbers::Written,
            Value::String(text) if *text.as_bytes() == *b"null" => InvalidNumbers::Null,
            _ => return Err(Error::runtime("invalid option: true, false and 'null' are possible")),
        };
        invalid.set(changed);
        Ok(match changed.invalid_numbers {
            InvalidNumbers::Refused => Value::Boolean(false),
            InvalidNumbers::Written => Value::Boolean(true),
            InvalidNumbers::Null => Value::String(lua.create_string("null")?),
        })
    };
    library.set("encode_invalid_numbers", lua.create_function(set_invalid)?)?;
    // Lua CJSON may keep its buffer between calls, which scripts cannot notice.
    library.set("encode_keep_buffer", lua.create_function(|_, _: mlua::Variadic<Value>| Ok(()))?)?;
    library.set("null", Value::NULL)?;
    Ok(library)
}

fn within(number: i64, range: &std::ops::RangeInclusive<i64>) -> Result<usize> {
    if !range.contains(&number) {
        return Err(Error::runtime(format!(
            "expected integer between {} and {}",
            range.start(),
            range.end()
        )));
    }
    Ok(number as usize)
}

/// JSON as far as it was written.
struct Encoded {
    bytes: Vec<u8>,
    /// How many values more may come.
    left: usize,
    settings: Settings,
}

fn encode(value: &Value, out: &mut Encoded, depth: usize) -> Result<()> {
    if out.left == 0 || out.bytes.len() > ENCODED_BYTES_MAX {
        let text = format!("more than {ENCODED_VALUES_MAX} values or {ENCODED_BYTES_MAX} bytes of JSON");
        return Err(Error::runtime(text));
    }
    out.left -= 1;
    match value {
        Value::Nil => out.bytes.extend_from_slice(b"null"),
        Value::LightUserData(pointer) if pointer.0.is_null() => out.bytes.extend_from_slice(b"null"),
        Value::Boolean(flag) => out.bytes.extend_from_slice(if *flag { b"true" } else { b"false" }),
        Value::Integer(number) => out.bytes.extend_from_slice(number.to_string().as_bytes()),
        Value::Number(number) => encode_number(*number, out)?,
        Value::String(text) => encode_text(&text.as_bytes(), &mut out.bytes),
        Value::Table(table) => encode_table(table, out, depth + 1)?,
        other => {
            let kind = other.type_name();
            return Err(Error::runtime(format!("Cannot serialise {kind}: type not supported")));
        }
    }
    Ok(())
}

fn encode_number(number: f64, out: &mut Encoded) -> Result<()> {
    if !number.is_finite() && out.settings.invalid_numbers != InvalidNumbers::Written {
        if out.settings.invalid_numbers == InvalidNumbers::Refused {
            return Err(Error::runtime("Cannot serialise number: must not be NaN or Inf"));
        }
        out.bytes.extend_from_slice(b"null");
        return Ok(());
    }
    out.bytes.extend_from_slice(super::convert::format_number(number, out.settings.digits).as_bytes());
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

fn encode_table(table: &Table, out: &mut Encoded, depth: usize) -> Result<()> {
    if depth > out.settings.encode_depth_max {
        return Err(Error::runtime("Cannot serialise, excessive depth"));
    }
    match array_len(table, &out.settings)? {
        Some(len) => {
            out.bytes.push(b'[');
            for position in 1..=len {
                if position > 1 {
                    out.bytes.push(b',');
                }
                encode(&table.raw_get(position)?, out, depth)?;
            }
            out.bytes.push(b']');
        }
        None => {
            out.bytes.push(b'{');
            let mut is_first = true;
            for pair in table.pairs::<Value, Value>() {
                let (key, value) = pair?;
                if !std::mem::take(&mut is_first) {
                    out.bytes.push(b',');
                }
                match key {
                    Value::String(text) => encode_text(&text.as_bytes(), &mut out.bytes),
                    Value::Integer(number) => encode_text(number.to_string().as_bytes(), &mut out.bytes),
                    Value::Number(number) => {
                        encode_text(super::convert::format_number(number, 14).as_bytes(), &mut out.bytes);
                    }
                    _ => {
                        return Err(Error::runtime(
                            "Cannot serialise table: table key must be a number or string",
                        ));
                    }
                }
                out.bytes.push(b':');
                encode(&value, out, depth)?;
            }
            out.bytes.push(b'}');
        }
    }
    Ok(())
}

/// The length of a table whose keys are positions; `None` for any other, an empty one included.
fn array_len(table: &Table, settings: &Settings) -> Result<Option<usize>> {
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
    let is_sparse = settings.sparse_ratio > 0
        && last > settings.sparse_safe
        && last > entries.saturating_mul(settings.sparse_ratio);
    if is_sparse && settings.converts_sparse {
        return Ok(None);
    }
    if is_sparse {
        return Err(Error::runtime("Cannot serialise table: excessively sparse array"));
    }
    Ok((entries > 0).then_some(last))
}

fn decode(lua: &Lua, json: &serde_json::Value, depth: usize, depth_max: usize) -> Result<Value> {
    if depth >= depth_max && (json.is_array() || json.is_object()) {
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
                table.raw_set(position + 1, decode(lua, value, depth + 1, depth_max)?)?;
            }
            Value::Table(table)
        }
        serde_json::Value::Object(members) => {
            let table = lua.create_table_with_capacity(0, members.len())?;
            for (name, value) in members {
                table.raw_set(name.as_str(), decode(lua, value, depth + 1, depth_max)?)?;
            }
            Value::Table(table)
        }
    })
}
