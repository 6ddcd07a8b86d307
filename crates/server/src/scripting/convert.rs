//! Replies to Lua values, and Lua values to replies.

use alluvium_protocol::{Reply, Value as Answer, Version};
use mlua::{Lua, Result, Table, Value};

/// Maximum depth of nested tables in the reply of a script.
const DEPTH_MAX: usize = 128;

/// What a command has answered, as a script sees it.
pub(super) fn to_lua(lua: &Lua, answer: &Answer, version: Version) -> Result<Value> {
    Ok(match answer {
        Answer::Simple(text) => Value::Table(marked(lua, "ok", Value::String(lua.create_string(text)?))?),
        Answer::Error(text) => Value::Table(marked(lua, "err", Value::String(lua.create_string(text)?))?),
        Answer::Integer(number) => Value::Number(*number as f64),
        Answer::Bulk(bytes) | Answer::Verbatim(bytes) => Value::String(lua.create_string(bytes)?),
        Answer::Null => match version {
            Version::Resp2 => Value::Boolean(false),
            Version::Resp3 => Value::Nil,
        },
        Answer::Array(answers) | Answer::Push(answers) => {
            let table = lua.create_table_with_capacity(answers.len(), 0)?;
            for (position, answer) in answers.iter().enumerate() {
                table.raw_set(position + 1, to_lua(lua, answer, version)?)?;
            }
            Value::Table(table)
        }
        Answer::Set(answers) => {
            let set = lua.create_table_with_capacity(0, answers.len())?;
            for answer in answers {
                set.raw_set(to_lua(lua, answer, version)?, true)?;
            }
            Value::Table(marked(lua, "set", Value::Table(set))?)
        }
        Answer::Map(pairs) => {
            let map = lua.create_table_with_capacity(0, pairs.len())?;
            for (key, value) in pairs {
                map.raw_set(to_lua(lua, key, version)?, to_lua(lua, value, version)?)?;
            }
            Value::Table(marked(lua, "map", Value::Table(map))?)
        }
    })
}

/// A table with one field that says what it is.
fn marked(lua: &Lua, name: &str, value: Value) -> Result<Table> {
    let table = lua.create_table()?;
    table.raw_set(name, value)?;
    Ok(table)
}

/// Maximum number of values in the reply of a script. Some tables that contain each other have any number.
const VALUES_MAX: usize = 1 << 22;
/// How many values a table counts as, beside those in it.
const TABLE_VALUES: usize = 16;

/// Writes what a script has returned.
pub(super) fn write_all(value: &Value, reply: &mut Reply<'_>) -> Result<()> {
    let mut left = VALUES_MAX;
    write(value, reply, 0, &mut left)
}

/// Writes a value; `left` more may come.
fn write(value: &Value, reply: &mut Reply<'_>, depth: usize, left: &mut usize) -> Result<()> {
    let values = if value.is_table() { TABLE_VALUES } else { 1 };
    *left =
        left.checked_sub(values).ok_or_else(|| mlua::Error::runtime("the script returns too many values"))?;
    if depth > DEPTH_MAX {
        reply.error("ERR reached lua stack limit");
        return Ok(());
    }
    match value {
        Value::Boolean(true) => reply.integer(1),
        Value::Boolean(false) | Value::Nil => reply.null(),
        Value::Integer(number) => reply.integer(*number),
        Value::Number(number) => reply.integer(*number as i64),
        Value::String(text) => reply.bulk(&text.as_bytes()),
        Value::Table(table) => write_table(table, reply, depth, left)?,
        _ => reply.null(),
    }
    Ok(())
}

fn write_table(table: &Table, reply: &mut Reply<'_>, depth: usize, left: &mut usize) -> Result<()> {
    if let Value::String(text) = table.raw_get("err")? {
        reply.error(&*text.as_bytes());
        return Ok(());
    }
    if let Value::String(text) = table.raw_get("ok")? {
        reply.simple(&*text.as_bytes());
        return Ok(());
    }
    if let Value::Number(number) = table.raw_get("double")? {
        reply.bulk(format_number(number, 17).as_bytes());
        return Ok(());
    }
    if let Value::Table(map) = table.raw_get("map")? {
        let pairs: Vec<(Value, Value)> = map.pairs().collect::<Result<_>>()?;
        reply.map(pairs.len());
        for (key, value) in &pairs {
            write(key, reply, depth + 1, left)?;
            write(value, reply, depth + 1, left)?;
        }
        return Ok(());
    }
    if let Value::Table(set) = table.raw_get("set")? {
        let pairs: Vec<(Value, Value)> = set.pairs().collect::<Result<_>>()?;
        reply.set(pairs.len());
        return pairs.iter().try_for_each(|(member, _)| write(member, reply, depth + 1, left));
    }
    // An array ends before its first nil.
    let mut members: Vec<Value> = Vec::new();
    loop {
        match table.raw_get(members.len() + 1)? {
            Value::Nil => break,
            member => members.push(member),
        }
    }
    reply.array(members.len());
    members.iter().try_for_each(|member| write(member, reply, depth + 1, left))
}

/// A number as C's `%.{digits}g` formats it.
pub(super) fn format_number(number: f64, digits: usize) -> String {
    if number.fract() == 0.0 && number.abs() < 1e15 {
        return format!("{}", number as i64);
    }
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{:.*e}", digits - 1, number);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-5..digits as i32).contains(&exponent) {
        let decimals = usize::try_from(digits as i32 - 1 - exponent).unwrap_or(0);
        return without_zeros(&format!("{number:.decimals$}")).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs())
}

fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::format_number;

    #[test]
    fn numbers_are_formatted_as_in_c() {
        for (number, digits, expected) in [
            (0.0, 17, "0"),
            (-3.0, 17, "-3"),
            (0.1, 14, "0.1"),
            (0.1, 17, "0.10000000000000001"),
            (1e20, 17, "1e+20"),
            (1.5e-7, 14, "1.5e-07"),
            (123_456.789, 14, "123456.789"),
            (f64::INFINITY, 17, "inf"),
        ] {
            assert_eq!(format_number(number, digits), expected);
        }
    }
}
