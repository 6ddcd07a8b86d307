//! The library `struct`: values in the layout of C structures.

use mlua::{Error, Lua, MultiValue, Result, Table, Value, Variadic};

/// Maximum bytes of an integer.
const INTEGER_BYTES_MAX: usize = 32;
/// Default alignment after `!`, as of C on machines of 64 bits.
const ALIGNMENT: usize = 8;
/// Maximum bytes of what is packed.
const PACKED_BYTES_MAX: usize = 64 << 20;

/// Maximum number of values that a function of Lua can return.
const VALUES_MAX: usize = 7_900;

/// A part of a format, with the bytes that it takes, 0 if that depends on the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    option: u8,
    bytes: usize,
    is_little_endian: bool,
    /// Zeros in front.
    padding: usize,
}

/// The parts of a format.
struct Format<'a> {
    rest: &'a [u8],
    is_little_endian: bool,
    alignment: usize,
}

impl<'a> Format<'a> {
    fn new(format: &'a [u8]) -> Self {
        // As strings of C, formats end at a zero.
        let rest = format.split(|byte| *byte == 0).next().unwrap_or_default();
        Self { rest, is_little_endian: cfg!(target_endian = "little"), alignment: 1 }
    }

    /// The next part, which begins at `position` unless it is aligned.
    fn next(&mut self, position: usize) -> Result<Option<Part>> {
        while let Some((&option, rest)) = self.rest.split_first() {
            self.rest = rest;
            let bytes = match option {
                b'b' | b'B' | b'x' => 1,
                b'h' | b'H' => 2,
                b'f' => 4,
                b'l' | b'L' | b'T' | b'd' => 8,
                b'c' => self.number(1)?,
                b'i' | b'I' => {
                    let bytes = self.number(4)?;
                    if bytes > INTEGER_BYTES_MAX {
                        return Err(Error::runtime(format!(
                            "integral size {bytes} is larger than limit of {INTEGER_BYTES_MAX}"
                        )));
                    }
                    bytes
                }
                b's' => 0,
                b' ' => continue,
                b'<' | b'>' => {
                    self.is_little_endian = option == b'<';
                    continue;
                }
                b'!' => {
                    self.alignment = self.number(ALIGNMENT)?;
                    if !self.alignment.is_power_of_two() {
                        let text = format!("alignment {} is not a power of 2", self.alignment);
                        return Err(Error::runtime(text));
                    }
                    continue;
                }
                other => {
                    let text = format!("invalid format option '{}'", char::from(other));
                    return Err(Error::runtime(text));
                }
            };
            let aligned = if matches!(option, b'c' | b's') { 0 } else { bytes.min(self.alignment) };
            // Sizes that are no power of two are aligned as in the original library.
            let padding =
                if aligned == 0 { 0 } else { aligned.wrapping_sub(position & (aligned - 1)) & (aligned - 1) };
            return Ok(Some(Part { option, bytes, is_little_endian: self.is_little_endian, padding }));
        }
        Ok(None)
    }

    fn number(&mut self, default: usize) -> Result<usize> {
        let digits = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(digits);
        if digits.is_empty() {
            return Ok(default);
        }
        self.rest = rest;
        let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<i32>().ok());
        number.map(|number| number as usize).ok_or_else(|| Error::runtime("integral size overflow"))
    }
}

pub(super) fn library(lua: &Lua) -> Result<Table> {
    let library = lua.create_table()?;
    let pack_all = |lua: &Lua, (format, values): (mlua::LuaString, Variadic<Value>)| {
        lua.create_string(pack(lua, &format.as_bytes(), &values)?)
    };
    library.set("pack", lua.create_function(pack_all)?)?;
    let unpack_all = |lua: &Lua, (format, packed, start): (mlua::LuaString, mlua::LuaString, Option<i64>)| {
        let start = usize::try_from(start.unwrap_or(1)).ok().and_then(|start| start.checked_sub(1));
        let start = start.ok_or_else(|| Error::runtime("offset must be 1 or greater"))?;
        unpack(lua, &format.as_bytes(), &packed.as_bytes(), start).map(MultiValue::from_vec)
    };
    library.set("unpack", lua.create_function(unpack_all)?)?;
    library.set("size", lua.create_function(|_, format: mlua::LuaString| size(&format.as_bytes()))?)?;
    Ok(library)
}

fn pack(lua: &Lua, format: &[u8], values: &[Value]) -> Result<Vec<u8>> {
    let (mut format, mut values, mut out) = (Format::new(format), values.iter(), Vec::new());
    while let Some(part) = format.next(out.len())? {
        out.resize(out.len() + part.padding, 0);
        if part.option == b'x' {
            out.push(0);
            continue;
        }
        let value = values.next().ok_or_else(|| Error::runtime("bad argument: got no value"))?;
        if matches!(part.option, b'c' | b's') {
            let text = lua.coerce_string(value.clone())?.ok_or_else(|| Error::runtime("string expected"))?;
            let text = text.as_bytes();
            let bytes = if part.bytes == 0 { text.len() } else { part.bytes };
            out.extend_from_slice(text.get(..bytes).ok_or_else(|| Error::runtime("string too short"))?);
            if part.option == b's' {
                out.push(0);
            }
        } else {
            let number =
                lua.coerce_number(value.clone())?.ok_or_else(|| Error::runtime("number expected"))?;
            let start = out.len();
            match part.option {
                b'f' => out.extend_from_slice(&(number as f32).to_be_bytes()),
                b'd' => out.extend_from_slice(&number.to_be_bytes()),
                _ => pack_integer(number, part.bytes, &mut out),
            }
            if part.is_little_endian {
                out[start..].reverse();
            }
        }
        if out.len() > PACKED_BYTES_MAX {
            return Err(Error::runtime(format!("more than {PACKED_BYTES_MAX} bytes")));
        }
    }
    Ok(out)
}

/// The lowest bytes of a number, the highest of them first.
fn pack_integer(number: f64, bytes: usize, out: &mut Vec<u8>) {
    let low = if number < 0.0 { (number as i64).cast_unsigned() } else { number as u64 };
    let low = low.to_be_bytes();
    // The original library has nothing but zeros above.
    out.resize(out.len() + bytes.saturating_sub(low.len()), 0);
    out.extend_from_slice(&low[low.len().saturating_sub(bytes)..]);
}

fn unpack(lua: &Lua, format: &[u8], packed: &[u8], start: usize) -> Result<Vec<Value>> {
    let too_short = || Error::runtime("data string too short");
    let (mut format, mut position, mut values) = (Format::new(format), start, Vec::new());
    while let Some(part) = format.next(position)? {
        if values.len() >= VALUES_MAX {
            return Err(Error::runtime("too many results"));
        }
        position += part.padding;
        let mut bytes = part.bytes;
        if part.option == b's' {
            let rest = packed.get(position..).ok_or_else(too_short)?;
            let len = rest.iter().position(|byte| *byte == 0);
            let len = len.ok_or_else(|| Error::runtime("unfinished string in data"))?;
            values.push(Value::String(lua.create_string(&rest[..len])?));
            position += len + 1;
            continue;
        }
        if part.option == b'c' && bytes == 0 {
            let size = values.pop().map(|size| lua.coerce_number(size)).transpose()?.flatten();
            bytes = size.ok_or_else(|| Error::runtime("format 'c0' needs a previous size"))? as usize;
        }
        let end = position.checked_add(bytes).ok_or_else(too_short)?;
        let found = packed.get(position..end).ok_or_else(too_short)?;
        position = end;
        let mut ordered = [0; INTEGER_BYTES_MAX];
        let number = match part.option {
            b'x' => continue,
            b'c' => {
                values.push(Value::String(lua.create_string(found)?));
                continue;
            }
            _ => &mut ordered[..bytes],
        };
        number.copy_from_slice(found);
        if part.is_little_endian {
            number.reverse();
        }
        values.push(Value::Number(match part.option {
            b'f' => number.try_into().map(f32::from_be_bytes).map_or(0.0, f64::from),
            b'd' => number.try_into().map_or(0.0, f64::from_be_bytes),
            option => unpack_integer(number, option.is_ascii_lowercase()),
        }));
    }
    values.push(Value::Number((position + 1) as f64));
    Ok(values)
}

/// The number in these bytes, the highest of them first.
fn unpack_integer(bytes: &[u8], is_signed: bool) -> f64 {
    let number = bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let unused = 64 - 8 * bytes.len().min(8) as u32;
    match number.cast_signed().checked_shl(unused) {
        Some(shifted) if is_signed => (shifted >> unused) as f64,
        _ => number as f64,
    }
}

fn size(format: &[u8]) -> Result<usize> {
    let (mut format, mut position) = (Format::new(format), 0);
    while let Some(part) = format.next(position)? {
        if part.bytes == 0 && matches!(part.option, b'c' | b's') {
            let option = if part.option == b's' { "s" } else { "c0" };
            return Err(Error::runtime(format!("option '{option}' has no fixed size")));
        }
        position += part.padding + part.bytes;
    }
    Ok(position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn values_are_packed_as_in_redis() {
        let lua = Lua::new();
        lua.globals().set("struct", library(&lua).unwrap()).unwrap();
        for (expression, expected) in [
            ("struct.pack('>I2i4', 1, -2)", &b"\0\x01\xff\xff\xff\xfe"[..]),
            ("struct.pack('<I2i4', 1, -2)", b"\x01\0\xfe\xff\xff\xff"),
            ("struct.pack('>!4bi4', 1, 2)", b"\x01\0\0\0\0\0\0\x02"),
            ("struct.pack('sc2x', 'ab', 'cde')", b"ab\0cd\0"),
            ("struct.pack('>fd', 0.5, 0.5)", b"\x3f\0\0\0\x3f\xe0\0\0\0\0\0\0"),
            ("struct.pack('>I10', 258)", b"\0\0\0\0\0\0\0\0\x01\x02"),
            ("table.concat({struct.unpack('>bI2', '\\255\\1\\2')}, ' ')", b"-1 258 4"),
            ("table.concat({struct.unpack('>Bc0s', '\\2abcd\\0')}, ' ')", b"ab cd 7"),
            ("table.concat({struct.unpack('>i3', '\\255\\255\\254')}, ' ')", b"-2 4"),
            ("tostring(struct.size('>!8bd'))", b"16"),
        ] {
            let found: mlua::LuaString = lua.load(expression).eval().unwrap();
            assert_eq!(*found.as_bytes(), *expected, "{expression}");
        }
        for expression in [
            "struct.pack('i33', 1)",
            "struct.pack('!3i', 1)",
            "struct.pack('c5', 'a')",
            "struct.pack('i')",
            "struct.pack('y', 1)",
            "struct.pack('i99999999999', 1)",
            "struct.unpack('c0', 'a')",
            "struct.unpack('s', 'a')",
            "struct.unpack('i', 'abc')",
            "struct.unpack('i', 'abcd', 0)",
            "struct.unpack('Bc0', '\\9a')",
            "struct.size('s')",
        ] {
            assert!(lua.load(expression).eval::<Value>().is_err(), "{expression}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_formats_never_panic(format in "[bBhHlLTfdcxsiI<>! 0-9]{0,20}", packed: Vec<u8>, start: usize) {
            let lua = Lua::new();
            if let Ok(mut values) = unpack(&lua, format.as_bytes(), &packed, start % 8) {
                values.pop();
                let _ = pack(&lua, format.as_bytes(), &values);
            }
            let _ = size(format.as_bytes());
            let _ = unpack(&lua, format.as_bytes(), &packed, start / 2);
        }
    }
}
