//! The library `bit`: operations on 32-bit numbers, as in Lua BitOp.

use mlua::{Lua, Result, Table, Variadic};

/// A number as its lowest 32 bits, rounded to the nearest integer.
fn bits(number: f64) -> u32 {
    if !number.is_finite() {
        return 0;
    }
    let rounded = number.round_ties_even().rem_euclid(4_294_967_296.0);
    rounded as u64 as u32
}

fn number(bits: u32) -> f64 {
    f64::from(bits.cast_signed())
}

pub(super) fn library(lua: &Lua) -> Result<Table> {
    let library = lua.create_table()?;
    type Unary = fn(u32) -> u32;
    let unary: [(&str, Unary); 3] =
        [("tobit", |bits| bits), ("bnot", |bits| !bits), ("bswap", u32::swap_bytes)];
    for (name, function) in unary {
        library.set(name, lua.create_function(move |_, value: f64| Ok(number(function(bits(value)))))?)?;
    }
    type Binary = fn(u32, u32) -> u32;
    let shifts: [(&str, Binary); 5] = [
        ("lshift", |bits, count| bits << (count & 31)),
        ("rshift", |bits, count| bits >> (count & 31)),
        ("arshift", |bits, count| (bits.cast_signed() >> (count & 31)).cast_unsigned()),
        ("rol", |bits, count| bits.rotate_left(count & 31)),
        ("ror", |bits, count| bits.rotate_right(count & 31)),
    ];
    for (name, function) in shifts {
        let shift = move |_: &Lua, (value, count): (f64, f64)| Ok(number(function(bits(value), bits(count))));
        library.set(name, lua.create_function(shift)?)?;
    }
    let folds: [(&str, Binary); 3] = [
        ("band", |left, right| left & right),
        ("bor", |left, right| left | right),
        ("bxor", |left, right| left ^ right),
    ];
    for (name, function) in folds {
        let fold = move |_: &Lua, (first, others): (f64, Variadic<f64>)| {
            Ok(number(others.iter().fold(bits(first), |all, other| function(all, bits(*other)))))
        };
        library.set(name, lua.create_function(fold)?)?;
    }
    let hexadecimal = |_: &Lua, (value, digits): (f64, Option<f64>)| {
        let digits = digits.unwrap_or(8.0);
        let width = (digits.abs() as usize).clamp(1, 8);
        let text = format!("{:08x}", bits(value));
        let text = &text[8 - width..];
        Ok(if digits < 0.0 { text.to_ascii_uppercase() } else { text.to_owned() })
    };
    library.set("tohex", lua.create_function(hexadecimal)?)?;
    Ok(library)
}
