//! The library `cmsgpack`: MessagePack from and to Lua values.

use mlua::{Error, Lua, MultiValue, Result, Table, Value, Variadic};

/// Tables that are nested deeper are packed as nil, so that a table may contain itself.
const PACK_DEPTH_MAX: usize = 16;
/// Maximum depth of nested tables that are unpacked.
const UNPACK_DEPTH_MAX: usize = 512;
/// Maximum number of values and of bytes that are packed: a few tables that contain each other would give any number.
const PACKED_VALUES_MAX: usize = 1 << 22;
const PACKED_BYTES_MAX: usize = 64 << 20;

/// Maximum number of values that a function of Lua can return.
const VALUES_MAX: usize = 7_900;

pub(super) fn library(lua: &Lua) -> Result<Table> {
    let library = lua.create_table()?;
    let pack = |lua: &Lua, values: Variadic<Value>| {
        if values.is_empty() {
            return Err(Error::runtime("MessagePack pack needs input."));
        }
        lua.create_string(pack_all(&values)?)
    };
    library.set("pack", lua.create_function(pack)?)?;
    let unpack_all = |lua: &Lua, packed: mlua::LuaString| {
        let (values, _) = unpack_some(lua, &packed.as_bytes(), usize::MAX)?;
        Ok(MultiValue::from_vec(values))
    };
    library.set("unpack", lua.create_function(unpack_all)?)?;
    let unpack_one = |lua: &Lua, (packed, offset): (mlua::LuaString, Option<i64>)| {
        unpack_from(lua, &packed.as_bytes(), 1, offset.unwrap_or(0))
    };
    library.set("unpack_one", lua.create_function(unpack_one)?)?;
    let unpack_limit = |lua: &Lua, (packed, limit, offset): (mlua::LuaString, i64, Option<i64>)| {
        unpack_from(lua, &packed.as_bytes(), limit, offset.unwrap_or(0))
    };
    library.set("unpack_limit", lua.create_function(unpack_limit)?)?;
    library.set("_NAME", "cmsgpack")?;
    Ok(library)
}

fn pack_all(values: &[Value]) -> Result<Vec<u8>> {
    let (mut out, mut left) = (Vec::new(), PACKED_VALUES_MAX);
    values.iter().try_for_each(|value| pack(value, &mut out, 0, &mut left))?;
    Ok(out)
}

/// Packs a value; `left` more may come.
fn pack(value: &Value, out: &mut Vec<u8>, depth: usize, left: &mut usize) -> Result<()> {
    if *left == 0 || out.len() > PACKED_BYTES_MAX {
        let text = format!("more than {PACKED_VALUES_MAX} values or {PACKED_BYTES_MAX} bytes of MessagePack");
        return Err(Error::runtime(text));
    }
    *left -= 1;
    match value {
        Value::Boolean(flag) => out.push(if *flag { 0xc3 } else { 0xc2 }),
        Value::Integer(number) => pack_integer(*number, out),
        Value::Number(number) => pack_number(*number, out),
        Value::String(text) => {
            let text = text.as_bytes();
            match text.len() {
                len @ ..32 => out.push(0xa0 | len as u8),
                len @ ..0x100 => out.extend_from_slice(&[0xd9, len as u8]),
                len => pack_length(len, 0xda, out),
            }
            out.extend_from_slice(&text);
        }
        Value::Table(table) if depth < PACK_DEPTH_MAX => pack_table(table, out, depth, left)?,
        _ => out.push(0xc0),
    }
    Ok(())
}

/// The head of what has `len` parts: `kind` if 16 bits suffice, otherwise the next kind.
fn pack_length(len: usize, kind: u8, out: &mut Vec<u8>) {
    match u16::try_from(len) {
        Ok(len) => {
            out.push(kind);
            out.extend_from_slice(&len.to_be_bytes());
        }
        Err(_) => {
            out.push(kind + 1);
            // Lua has no longer strings and tables than memory for scripts.
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
    }
}

fn pack_integer(number: i64, out: &mut Vec<u8>) {
    if let Ok(number) = u64::try_from(number) {
        match number {
            0..0x80 => out.push(number as u8),
            0x80..0x100 => out.extend_from_slice(&[0xcc, number as u8]),
            0x100..0x1_0000 => {
                out.push(0xcd);
                out.extend_from_slice(&(number as u16).to_be_bytes());
            }
            0x1_0000..0x1_0000_0000 => {
                out.push(0xce);
                out.extend_from_slice(&(number as u32).to_be_bytes());
            }
            _ => {
                out.push(0xcf);
                out.extend_from_slice(&number.to_be_bytes());
            }
        }
        return;
    }
    match number {
        -32.. => out.push(number as u8),
        -0x80.. => out.extend_from_slice(&[0xd0, number as u8]),
        -0x8000.. => {
            out.push(0xd1);
            out.extend_from_slice(&(number as i16).to_be_bytes());
        }
        -0x8000_0000.. => {
            out.push(0xd2);
            out.extend_from_slice(&(number as i32).to_be_bytes());
        }
        _ => {
            out.push(0xd3);
            out.extend_from_slice(&number.to_be_bytes());
        }
    }
}

/// Integers are packed as such, and other numbers in 32 bits if these suffice.
fn pack_number(number: f64, out: &mut Vec<u8>) {
    const INTEGERS: std::ops::Range<f64> = -9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0;
    if INTEGERS.contains(&number) && number.fract() == 0.0 {
        pack_integer(number as i64, out);
    } else if f64::from(number as f32) == number {
        out.push(0xca);
        out.extend_from_slice(&(number as f32).to_be_bytes());
    } else {
        out.push(0xcb);
        out.extend_from_slice(&number.to_be_bytes());
    }
}

fn pack_table(table: &Table, out: &mut Vec<u8>, depth: usize, left: &mut usize) -> Result<()> {
    let (mut entries, mut last, mut is_array) = (0_usize, 0_usize, true);
    for pair in table.pairs::<Value, Value>() {
        entries += 1;
        match pair?.0 {
            Value::Integer(position) if position >= 1 => last = last.max(position as usize),
            Value::Number(position) if position >= 1.0 && position.fract() == 0.0 => {
                last = last.max(position as usize);
            }
            _ => is_array = false,
        }
    }
    if is_array && last == entries {
        match entries {
            ..16 => out.push(0x90 | entries as u8),
            _ => pack_length(entries, 0xdc, out),
        }
        return (1..=entries).try_for_each(|position| pack(&table.raw_get(position)?, out, depth + 1, left));
    }
    match entries {
        ..16 => out.push(0x80 | entries as u8),
        _ => pack_length(entries, 0xde, out),
    }
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        pack(&key, out, depth + 1, left)?;
        pack(&value, out, depth + 1, left)?;
    }
    Ok(())
}

/// Up to `limit` values from `offset` on, behind the offset of the next one, or -1 at the end.
fn unpack_from(lua: &Lua, packed: &[u8], limit: i64, offset: i64) -> Result<MultiValue> {
    let len = packed.len();
    let (Ok(limit), Ok(offset)) = (usize::try_from(limit), usize::try_from(offset)) else {
        let text = format!("Invalid request to unpack with offset of {offset} and limit of {len}.");
        return Err(Error::runtime(text));
    };
    let Some(rest) = packed.get(offset..) else {
        return Err(Error::runtime(format!("Start offset {offset} greater than input length {len}.")));
    };
    // As in Redis: no limit and no offset mean all, and no offset is returned.
    if limit == 0 && offset == 0 {
        return Ok(MultiValue::from_vec(unpack_some(lua, rest, usize::MAX)?.0));
    }
    let (mut values, rest) = unpack_some(lua, rest, limit)?;
    let next = if rest == 0 { -1.0 } else { (len - rest) as f64 };
    values.insert(0, Value::Number(next));
    Ok(MultiValue::from_vec(values))
}

/// Up to `limit` values, and the number of bytes behind them.
fn unpack_some(lua: &Lua, packed: &[u8], limit: usize) -> Result<(Vec<Value>, usize)> {
    let (mut values, mut bytes) = (Vec::new(), packed);
    while !bytes.is_empty() && values.len() < limit {
        if values.len() >= VALUES_MAX {
            let text = "too many return values at once; use unpack_one or unpack_limit instead.";
            return Err(Error::runtime(text));
        }
        values.push(unpack(lua, &mut bytes, 0)?);
    }
    Ok((values, bytes.len()))
}

fn unpack(lua: &Lua, bytes: &mut &[u8], depth: usize) -> Result<Value> {
    if depth > UNPACK_DEPTH_MAX {
        return Err(Error::runtime("Found too many nested data structures"));
    }
    let number = |number: f64| Ok(Value::Number(number));
    let [kind] = take(bytes)?;
    match kind {
        0x00..0x80 => number(kind.into()),
        0x80..0x90 => unpack_map(lua, bytes, usize::from(kind & 0xf), depth),
        0x90..0xa0 => unpack_array(lua, bytes, usize::from(kind & 0xf), depth),
        0xa0..0xc0 => unpack_text(lua, bytes, usize::from(kind & 0x1f)),
        0xc0 => Ok(Value::Nil),
        0xc2 | 0xc3 => Ok(Value::Boolean(kind == 0xc3)),
        0xca => number(f32::from_be_bytes(take(bytes)?).into()),
        0xcb => number(f64::from_be_bytes(take(bytes)?)),
        0xcc => number(u8::from_be_bytes(take(bytes)?).into()),
        0xcd => number(u16::from_be_bytes(take(bytes)?).into()),
        0xce => number(u32::from_be_bytes(take(bytes)?).into()),
        0xcf => number(u64::from_be_bytes(take(bytes)?) as f64),
        0xd0 => number(i8::from_be_bytes(take(bytes)?).into()),
        0xd1 => number(i16::from_be_bytes(take(bytes)?).into()),
        0xd2 => number(i32::from_be_bytes(take(bytes)?).into()),
        0xd3 => number(i64::from_be_bytes(take(bytes)?) as f64),
        0xd9 => {
            let [len] = take(bytes)?;
            unpack_text(lua, bytes, len.into())
        }
        0xda | 0xdb => {
            let len = unpack_length(bytes, kind == 0xdb)?;
            unpack_text(lua, bytes, len)
        }
        0xdc | 0xdd => {
            let len = unpack_length(bytes, kind == 0xdd)?;
            unpack_array(lua, bytes, len, depth)
        }
        0xde | 0xdf => {
            let len = unpack_length(bytes, kind == 0xdf)?;
            unpack_map(lua, bytes, len, depth)
        }
        0xe0.. => number(kind.cast_signed().into()),
        _ => Err(Error::runtime("Bad data format in input.")),
    }
}

fn unpack_length(bytes: &mut &[u8], is_long: bool) -> Result<usize> {
    Ok(match is_long {
        true => u32::from_be_bytes(take(bytes)?) as usize,
        false => u16::from_be_bytes(take(bytes)?).into(),
    })
}

fn unpack_text(lua: &Lua, bytes: &mut &[u8], len: usize) -> Result<Value> {
    let (text, rest) = bytes.split_at_checked(len).ok_or_else(missing)?;
    *bytes = rest;
    Ok(Value::String(lua.create_string(text)?))
}

/// What is announced is not reserved: it must come.
fn unpack_array(lua: &Lua, bytes: &mut &[u8], len: usize, depth: usize) -> Result<Value> {
    let table = lua.create_table()?;
    for position in 1..=len {
        table.raw_set(position, unpack(lua, bytes, depth + 1)?)?;
    }
    Ok(Value::Table(table))
}

fn unpack_map(lua: &Lua, bytes: &mut &[u8], len: usize, depth: usize) -> Result<Value> {
    let table = lua.create_table()?;
    for _ in 0..len {
        let key = unpack(lua, bytes, depth + 1)?;
        let value = unpack(lua, bytes, depth + 1)?;
        table.raw_set(key, value)?;
    }
    Ok(Value::Table(table))
}

fn take<const BYTES: usize>(bytes: &mut &[u8]) -> Result<[u8; BYTES]> {
    let (taken, rest) = bytes.split_first_chunk().ok_or_else(missing)?;
    *bytes = rest;
    Ok(*taken)
}

fn missing() -> Error {
    Error::runtime("Missing bytes in input.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packed(expression: &str) -> Result<Vec<u8>> {
        let lua = Lua::new();
        let value: Value = lua.load(expression).eval()?;
        pack_all(&[value])
    }

    #[test]
    fn values_are_packed_as_in_redis() {
        for (expression, expected) in [
            ("nil", &b"\xc0"[..]),
            ("true", b"\xc3"),
            ("127", b"\x7f"),
            ("128", b"\xcc\x80"),
            ("65535", b"\xcd\xff\xff"),
            ("2^40", b"\xcf\0\0\x01\0\0\0\0\0"),
            ("-32", b"\xe0"),
            ("-33", b"\xd0\xdf"),
            ("-40000", b"\xd2\xff\xff\x63\xc0"),
            ("0.5", b"\xca\x3f\0\0\0"),
            ("0.1", b"\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a"),
            ("1/0", b"\xca\x7f\x80\0\0"),
            ("'ab'", b"\xa2ab"),
            ("{}", b"\x90"),
            ("{1, {2}}", b"\x92\x01\x91\x02"),
            ("{a = 1}", b"\x81\xa1a\x01"),
            ("{[2] = 1}", b"\x81\x02\x01"),
            ("print", b"\xc0"),
        ] {
            assert_eq!(packed(expression).unwrap(), expected, "{expression}");
        }
        // Tables that contain one another many times.
        let wide = "(function() local t = {} for i = 1, 15 do t = {t, t, t, t, t, t, t} end return t end)()";
        assert!(packed(wide).is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
            let lua = Lua::new();
            if let Ok((values, _)) = unpack_some(&lua, &bytes, usize::MAX) {
                prop_assert!(pack_all(&values).is_ok());
            }
            let _ = unpack_some(&lua, &[0x91; 10_000], 1);
            let _ = unpack_some(&lua, &[0xc0; 10_000], usize::MAX);
            let _ = unpack_some(&lua, &[&[0xdf, 0xff, 0xff, 0xff, 0xff][..], &bytes].concat(), 1);
        }
    }
}
