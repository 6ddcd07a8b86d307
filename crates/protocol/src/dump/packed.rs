//! Lists of strings packed into one: listpacks, ziplists, which Redis wrote before version 7, and sets of integers.
//!
//! ```text
//! listpack: bytes u32 │ entries u16 │ { encoding │ data │ length of both } │ 0xff
//! ziplist:  bytes u32 │ offset of the last entry u32 │ entries u16 │ { length before │ encoding │ data } │ 0xff
//! integers: bytes of each u32 │ how many u32 │ { integer }, ascending
//! ```
//!
//! All numbers are little-endian, except lengths of strings in ziplists. A count of 65,535 means that it is unknown.

use super::reader::Reader;

const END: u8 = 0xff;
const COUNT_UNKNOWN: usize = 0xffff;

type Strings = Vec<Vec<u8>>;

/// The strings of a listpack; `None` if it is wrong or has more than `strings_max`.
pub(super) fn listpack(packed: &[u8], strings_max: usize) -> Option<Strings> {
    let mut reader = Reader::new(packed, 0);
    let bytes = u32::from_le_bytes(reader.array()?);
    let count = usize::from(u16::from_le_bytes(reader.array()?));
    if bytes as usize != packed.len() {
        return None;
    }
    let mut strings = Strings::new();
    loop {
        let first = reader.byte()?;
        let (string, length) = match first {
            END => break,
            0x00..0x80 => (number(first.into()), 1),
            0x80..0xc0 => text(&mut reader, 1, usize::from(first & 0x3f))?,
            0xc0..0xe0 => {
                let unsigned = i64::from(first & 0x1f) << 8 | i64::from(reader.byte()?);
                (number(if unsigned < 1 << 12 { unsigned } else { unsigned - (1 << 13) }), 2)
            }
            0xe0..0xf0 => {
                let length = usize::from(first & 0x0f) << 8 | usize::from(reader.byte()?);
                text(&mut reader, 2, length)?
            }
            0xf0 => {
                let length = u32::from_le_bytes(reader.array()?) as usize;
                text(&mut reader, 5, length)?
            }
            0xf1 => (number(i16::from_le_bytes(reader.array()?).into()), 3),
            0xf2 => (number(integer_24(reader.array()?)), 4),
            0xf3 => (number(i32::from_le_bytes(reader.array()?).into()), 5),
            0xf4 => (number(i64::from_le_bytes(reader.array()?)), 9),
            0xf5..END => return None,
        };
        if backward_length(&mut reader, length)? != length || strings.len() == strings_max {
            return None;
        }
        strings.push(string);
    }
    is_whole(&reader, &strings, count).then_some(strings)
}

/// The length behind an entry of a listpack: 7 bits in each byte, the last ones first, with the highest bit set in all
/// but the first. There are as many bytes as the length needs.
fn backward_length(reader: &mut Reader<'_>, length: usize) -> Option<usize> {
    let bytes = match length {
        ..=127 => 1,
        128..=16_382 => 2,
        16_383..=2_097_150 => 3,
        2_097_151..=268_435_454 => 4,
        _ => 5,
    };
    let mut found = 0u64;
    for (position, byte) in reader.bytes(bytes)?.iter().enumerate() {
        if (byte & 0x80 != 0) != (position > 0) {
            return None;
        }
        found = found << 7 | u64::from(byte & 0x7f);
    }
    usize::try_from(found).ok()
}

/// The strings of a ziplist; `None` if it is wrong or has more than `strings_max`.
pub(super) fn ziplist(packed: &[u8], strings_max: usize) -> Option<Strings> {
    let mut reader = Reader::new(packed, 0);
    let bytes = u32::from_le_bytes(reader.array()?);
    let last = u32::from_le_bytes(reader.array()?) as usize;
    let count = usize::from(u16::from_le_bytes(reader.array()?));
    if bytes as usize != packed.len() {
        return None;
    }
    let (mut strings, mut offset, mut before, mut last_found) = (Strings::new(), 10, 0, 10);
    loop {
        let (length_before, mut length) = match reader.byte()? {
            END => break,
            0xfe => (u32::from_le_bytes(reader.array()?) as usize, 5),
            short => (usize::from(short), 1),
        };
        if length_before != before || strings.len() == strings_max {
            return None;
        }
        let (string, entry) = match reader.byte()? {
            first @ 0x00..0x40 => text(&mut reader, 1, usize::from(first))?,
            first @ 0x40..0x80 => {
                let length = usize::from(first & 0x3f) << 8 | usize::from(reader.byte()?);
                text(&mut reader, 2, length)?
            }
            0x80 => {
                let length = u32::from_be_bytes(reader.array()?) as usize;
                text(&mut reader, 5, length)?
            }
            0xc0 => (number(i16::from_le_bytes(reader.array()?).into()), 3),
            0xd0 => (number(i32::from_le_bytes(reader.array()?).into()), 5),
            0xe0 => (number(i64::from_le_bytes(reader.array()?)), 9),
            0xf0 => (number(integer_24(reader.array()?)), 4),
            0xfe => (number(i8::from_le_bytes(reader.array()?).into()), 2),
            first @ 0xf1..=0xfd => (number(i64::from(first & 0x0f) - 1), 1),
            _ => return None,
        };
        length += entry;
        (last_found, offset, before) = (offset, offset + length, length);
        strings.push(string);
    }
    (is_whole(&reader, &strings, count) && last == last_found).then_some(strings)
}

/// The integers of a set of them; `None` if it is wrong or has more than `strings_max`.
pub(super) fn integers(packed: &[u8], strings_max: usize) -> Option<Strings> {
    let mut reader = Reader::new(packed, 0);
    let width = u32::from_le_bytes(reader.array()?);
    let count = u32::from_le_bytes(reader.array()?) as usize;
    let (mut strings, mut last) = (Strings::new(), None);
    while !reader.is_empty() {
        let integer = match width {
            2 => i16::from_le_bytes(reader.array()?).into(),
            4 => i32::from_le_bytes(reader.array()?).into(),
            8 => i64::from_le_bytes(reader.array()?),
            _ => return None,
        };
        if last.is_some_and(|last| last >= integer) || strings.len() == strings_max {
            return None;
        }
        last = Some(integer);
        strings.push(number(integer));
    }
    (strings.len() == count).then_some(strings)
}

/// Whether nothing is left, and there are as many strings as announced.
fn is_whole(reader: &Reader<'_>, strings: &Strings, count: usize) -> bool {
    reader.is_empty() && (count == COUNT_UNKNOWN || count == strings.len())
}

/// A string of this length, and the length of its entry, which begins with `head` bytes.
fn text(reader: &mut Reader<'_>, head: usize, length: usize) -> Option<(Vec<u8>, usize)> {
    Some((reader.bytes(length)?.to_vec(), head + length))
}

fn number(number: i64) -> Vec<u8> {
    number.to_string().into_bytes()
}

fn integer_24(bytes: [u8; 3]) -> i64 {
    let [low, middle, high] = bytes;
    (i32::from_le_bytes([0, low, middle, high]) >> 8).into()
}
