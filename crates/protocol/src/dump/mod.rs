//! What `DUMP` returns and `RESTORE` takes: a value in the format of Redis' snapshot files, version 10.
//!
//! ```text
//! type: 1 byte │ content │ version: 2 bytes │ CRC-64 of all before: 8 bytes
//! ```
//!
//! Both footers are little-endian. A string is a length and its bytes, or an integer, or text compressed by LZF. The
//! first two bits of a length say how long it is: 6 bits, 14 bits, or 32 or 64 bits in the bytes after it; 3 instead
//! marks an integer of 8, 16 or 32 bits or compressed text. The content of a hash is the number of its fields and then
//! fields and values, that of a set the number of its members and these. Redis stores small ones packed into one
//! string, which is read, but not written.

mod crc64;
mod libraries;
mod packed;
mod reader;

use std::collections::HashSet;

use crate::{Limits, integer};
use crc64::crc64;
pub use libraries::{decode_libraries, encode_libraries};
use reader::{INTEGER_8, INTEGER_16, INTEGER_32, LENGTH_32, LENGTH_64, Reader};

/// Version of the format in Redis 7.0.
const VERSION: u16 = 10;
const FOOTER_BYTES: usize = 10;

const STRING: u8 = 0;
const SET: u8 = 2;
const HASH: u8 = 4;
const SET_OF_INTEGERS: u8 = 11;
const HASH_IN_ZIPLIST: u8 = 13;
const HASH_IN_LISTPACK: u8 = 16;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dumped {
    /// A string of bytes.
    String(Vec<u8>),
    /// Fields, all different, with their values; at least one.
    Hash(Vec<(Vec<u8>, Vec<u8>)>),
    /// Members, all different; at least one.
    Set(Vec<Vec<u8>>),
}

/// Why a payload gives no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpError {
    /// It has a later version, or was damaged.
    Footer,
    /// It is of a type that is not known, broken, or larger than allowed.
    Content,
    /// It is of a value where libraries are expected.
    Kind,
}

/// The payload of a string. Nothing is compressed; integers that fit in 32 bits are stored as such, as in Redis.
pub fn encode_string(value: &[u8]) -> Vec<u8> {
    let mut payload = Vec::with_capacity(value.len() + FOOTER_BYTES + 10);
    payload.push(STRING);
    string(value, &mut payload);
    finish(payload)
}

/// The payload of a hash.
pub fn encode_hash<'a>(fields: impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])>) -> Vec<u8> {
    let mut payload = vec![HASH];
    length(fields.len() as u64, &mut payload);
    for (field, value) in fields {
        string(field, &mut payload);
        string(value, &mut payload);
    }
    finish(payload)
}

/// The payload of a set.
pub fn encode_set<'a>(members: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut payload = vec![SET];
    length(members.len() as u64, &mut payload);
    members.for_each(|member| string(member, &mut payload));
    finish(payload)
}

fn string(value: &[u8], out: &mut Vec<u8>) {
    match integer::parse(value) {
        Some(number) if i8::try_from(number).is_ok() => out.extend_from_slice(&[INTEGER_8, number as u8]),
        Some(number) if i16::try_from(number).is_ok() => {
            out.push(INTEGER_16);
            out.extend_from_slice(&(number as i16).to_le_bytes());
        }
        Some(number) if i32::try_from(number).is_ok() => {
            out.push(INTEGER_32);
            out.extend_from_slice(&(number as i32).to_le_bytes());
        }
        _ => {
            length(value.len() as u64, out);
            out.extend_from_slice(value);
        }
    }
}

fn length(length: u64, out: &mut Vec<u8>) {
    match length {
        ..0x40 => out.push(length as u8),
        0x40..0x4000 => out.extend_from_slice(&(0x4000 | length as u16).to_be_bytes()),
        0x4000..0x1_0000_0000 => {
            out.push(LENGTH_32);
            out.extend_from_slice(&(length as u32).to_be_bytes());
        }
        _ => {
            out.push(LENGTH_64);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
}

/// Adds the footers.
pub(crate) fn finish(mut payload: Vec<u8>) -> Vec<u8> {
    payload.extend_from_slice(&VERSION.to_le_bytes());
    let checksum = crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

/// The value of a payload, if its strings together are no longer than an argument may be, and a collection has no more
/// of them than a request. Bytes after the value are ignored, as in Redis.
///
/// # Errors
/// [`DumpError`] if there is none.
pub fn decode(payload: &[u8], limits: Limits) -> Result<Dumped, DumpError> {
    let mut reader = Reader::new(checked(payload)?, limits.bulk_bytes_max);
    read(&mut reader, limits.arguments_max).ok_or(DumpError::Content)
}

/// What is before the footers, if these are right.
fn checked(payload: &[u8]) -> Result<&[u8], DumpError> {
    let (content, checksum) = payload.split_last_chunk().ok_or(DumpError::Footer)?;
    let (body, version) = content.split_last_chunk().ok_or(DumpError::Footer)?;
    if u16::from_le_bytes(*version) > VERSION || crc64(content) != u64::from_le_bytes(*checksum) {
        return Err(DumpError::Footer);
    }
    Ok(body)
}

fn read(reader: &mut Reader<'_>, strings_max: usize) -> Option<Dumped> {
    // What is announced is not reserved: it must come.
    let dumped = match reader.byte()? {
        STRING => return reader.string().map(Dumped::String),
        SET => {
            let count = reader.length().filter(|count| *count <= strings_max)?;
            Dumped::Set((0..count).map(|_| reader.string()).collect::<Option<_>>()?)
        }
        HASH => {
            let count = reader.length().filter(|count| *count <= strings_max / 2)?;
            Dumped::Hash(
                (0..count).map(|_| Some((reader.string()?, reader.string()?))).collect::<Option<_>>()?,
            )
        }
        SET_OF_INTEGERS => Dumped::Set(packed::integers(&reader.string()?, strings_max)?),
        HASH_IN_ZIPLIST => Dumped::Hash(pairs(packed::ziplist(&reader.string()?, strings_max)?)?),
        HASH_IN_LISTPACK => Dumped::Hash(pairs(packed::listpack(&reader.string()?, strings_max)?)?),
        _ => return None,
    };
    let names: Vec<&Vec<u8>> = match &dumped {
        Dumped::String(_) => Vec::new(),
        Dumped::Hash(fields) => fields.iter().map(|(field, _)| field).collect(),
        Dumped::Set(members) => members.iter().collect(),
    };
    let mut known = HashSet::with_capacity(names.len());
    let is_legal = !names.is_empty() && names.into_iter().all(|name| known.insert(name));
    drop(known);
    is_legal.then_some(dumped)
}

fn pairs(strings: Vec<Vec<u8>>) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    if !strings.len().is_multiple_of(2) {
        return None;
    }
    let mut strings = strings.into_iter();
    Some(std::iter::from_fn(|| Some((strings.next()?, strings.next()?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits =
        Limits { bulk_bytes_max: 1 << 20, arguments_max: 1 << 16, inline_bytes_max: 0, frame_bytes_max: 0 };

    fn bytes(hexadecimal: &str) -> Vec<u8> {
        let digits: Vec<char> = hexadecimal.chars().collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(&String::from_iter(pair), 16).unwrap()).collect()
    }

    #[test]
    fn compressed_text_of_redis_is_read() {
        // `DUMP` in Redis 7.0.15 after `SET key` with 100 times "a".
        let payload = finish(b"\x00\xc3\x09\x40\x64\x01\x61\x61\xe0\x57\x00\x01\x61\x61".to_vec());
        assert_eq!(decode(&payload, LIMITS), Ok(Dumped::String(vec![b'a'; 100])));
        let shorter = Limits { bulk_bytes_max: 99, ..LIMITS };
        assert_eq!(decode(&payload, shorter), Err(DumpError::Content));
    }

    /// The fields of a hash that Redis 7.0.15 dumped.
    fn fields(content: &str) -> Vec<(String, String)> {
        let Ok(Dumped::Hash(fields)) = decode(&finish(bytes(content)), LIMITS) else { panic!("no hash") };
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        fields.into_iter().map(|(field, value)| (text(field), text(value))).collect()
    }

    fn members(content: &str) -> Vec<String> {
        let Ok(Dumped::Set(members)) = decode(&finish(bytes(content)), LIMITS) else { panic!("no set") };
        members.into_iter().map(|member| String::from_utf8(member).unwrap()).collect()
    }

    #[test]
    fn hashes_of_redis_are_read() {
        let packed = fields(
            "10c3405c40a41fa400000014008161020101816202f178ec03816302f270110104816402f400a2022f4dff2000020981\
             65200c0c5039278c040000098166029478e00a000615816702e04079e036001142816a026401816b02df9c02816c0200\
             01ff",
        );
        let expected = [
            ("a", "1"),
            ("b", "-5000"),
            ("c", "70000"),
            ("d", "-3000000000"),
            ("e", "5000000000000"),
            ("f", "xxxxxxxxxxxxxxxxxxxx"),
            ("g", &"y".repeat(64)),
            ("j", "100"),
            ("k", "-100"),
            ("l", "0"),
        ];
        let expected = expected.map(|(field, value)| (field.to_owned(), value.to_owned()));
        assert_eq!(packed, expected);
        let long = fields(
            "10c34048507d0e7d1000000200856669656c6406f068200d0076e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0\
             ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0ff00e0e6000220edff",
        );
        assert_eq!(long, [("field".to_owned(), "v".repeat(4200))]);
        let mut table = fields("0402016204746578740161c001");
        table.sort();
        assert_eq!(
            table,
            [("a", "1"), ("b", "text")].map(|(field, value)| (field.to_owned(), value.to_owned()))
        );
        // The example of a ziplist in the source of Redis.
        assert_eq!(fields("0d0f0f0000000c000000020000f302f6ff"), [("2".to_owned(), "5".to_owned())]);
    }

    #[test]
    fn sets_of_redis_are_read() {
        assert_eq!(members("0b0e0200000003000000fdff01000200"), ["-3", "1", "2"]);
        assert_eq!(members("0b10040000000200000090eefeff01000000"), ["-70000", "1"]);
        assert_eq!(members("0b18080000000200000001000000000000000000000000010000"), ["1", "1099511627776"]);
        assert_eq!(members("0203c00c0262630161"), ["12", "bc", "a"]);
    }

    #[test]
    fn what_no_value_can_be_is_refused() {
        for (content, why) in [
            (&b""[..], "nothing"),
            (b"\x01\x01\x01a", "a list"),
            (b"\x02\x00", "an empty set"),
            (b"\x02\x02\x01a\x01a", "a member twice"),
            (b"\x02\x03\x01a\x01b", "a member is missing"),
            (b"\x02\x81\xff\xff\xff\xff\xff\xff\xff\xff\x01a", "more members than there can be"),
            (b"\x04\x01\x01a", "no value"),
            (b"\x04\x02\x01a\x01b\x01a\x01c", "a field twice"),
            (b"\x0b\x0a\x02\0\0\0\x01\0\0\0\x01", "half an integer"),
            (b"\x0b\x0c\x02\0\0\0\x02\0\0\0\x02\0\x01\0", "integers that descend"),
            (b"\x0b\x08\x03\0\0\0\0\0\0\0", "no integers"),
            (b"\x10\x07\x07\0\0\0\0\0\xff", "an empty listpack"),
            (b"\x10\x09\x09\0\0\0\x01\0\x01\x01\xff", "a field without value"),
            (b"\x10\x0b\x0b\0\0\0\x02\0\x01\x01\x01\x02\xff", "a wrong backward length"),
            (b"\x10\x0b\x0b\0\0\0\x03\0\x01\x01\x01\x01\xff", "a wrong count"),
            (b"\x10\x0b\x0c\0\0\0\x02\0\x01\x01\x01\x01\xff", "a wrong size"),
        ] {
            assert_eq!(decode(&finish(content.to_vec()), LIMITS), Err(DumpError::Content), "{why}");
        }
    }

    proptest! {
        #[test]
        fn values_are_read_back(value: Vec<u8>, length in 0usize..70_000, number: i64, shift in 0u32..64) {
            let number = (number >> shift).to_string().into_bytes();
            for value in [value, vec![7; length], number] {
                prop_assert_eq!(decode(&encode_string(&value), LIMITS), Ok(Dumped::String(value)));
            }
        }

        #[test]
        fn collections_are_read_back(fields: std::collections::BTreeMap<Vec<u8>, Vec<u8>>) {
            prop_assume!(!fields.is_empty());
            let hash = encode_hash(fields.iter().map(|(field, value)| (&field[..], &value[..])));
            let set = encode_set(fields.keys().map(|member| &member[..]));
            prop_assert_eq!(decode(&set, LIMITS), Ok(Dumped::Set(fields.keys().cloned().collect())));
            prop_assert_eq!(decode(&hash, LIMITS), Ok(Dumped::Hash(fields.into_iter().collect())));
        }

        #[test]
        fn damage_is_noticed(value: Vec<u8>, at: prop::sample::Index, flip in 1u8..) {
            let mut payload = encode_string(&value);
            let at = at.index(payload.len());
            payload[at] ^= flip;
            prop_assert_eq!(decode(&payload, LIMITS), Err(DumpError::Footer));
        }

        #[test]
        fn arbitrary_content_never_panics(bytes: Vec<u8>, kind in 0u8..20) {
            crate::fuzz::dump(&bytes);
            crate::fuzz::dump(&[&[kind][..], &bytes].concat());
        }
    }
}
