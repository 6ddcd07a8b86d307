//! What `DUMP` returns and `RESTORE` takes: a string in the format of Redis' snapshot files, version 10.
//!
//! ```text
//! type: 1 byte, 0 for a string │ string │ version: 2 bytes │ CRC-64 of all before: 8 bytes
//! ```
//!
//! Both footers are little-endian. A string is a length and its bytes, or an integer, or text compressed by LZF. The
//! first two bits of a length say how long it is: 6 bits, 14 bits, or 32 or 64 bits in the bytes after it; 3 instead
//! marks an integer of 8, 16 or 32 bits or compressed text.

use alluvium_protocol::integer;

/// Version of the format in Redis 7.0.
const VERSION: u16 = 10;
const TYPE_STRING: u8 = 0;
const FOOTER_BYTES: usize = 10;

const LENGTH_32: u8 = 0x80;
const LENGTH_64: u8 = 0x81;
const INTEGER_8: u8 = 0xc0;
const INTEGER_16: u8 = 0xc1;
const INTEGER_32: u8 = 0xc2;
const COMPRESSED: u8 = 0xc3;

/// Why a payload gives no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PayloadError {
    /// It has a later version, or was damaged.
    Footer,
    /// It is no string, or a broken one.
    Content,
}

/// The payload of a value. Nothing is compressed; integers that fit in 32 bits are stored as such, as in Redis.
pub(crate) fn encode(value: &[u8]) -> Vec<u8> {
    let mut payload = Vec::with_capacity(value.len() + FOOTER_BYTES + 10);
    payload.push(TYPE_STRING);
    match integer::parse(value) {
        Some(number) if i8::try_from(number).is_ok() => {
            payload.extend_from_slice(&[INTEGER_8, number as u8]);
        }
        Some(number) if i16::try_from(number).is_ok() => {
            payload.push(INTEGER_16);
            payload.extend_from_slice(&(number as i16).to_le_bytes());
        }
        Some(number) if i32::try_from(number).is_ok() => {
            payload.push(INTEGER_32);
            payload.extend_from_slice(&(number as i32).to_le_bytes());
        }
        _ => {
            encode_length(value.len() as u64, &mut payload);
            payload.extend_from_slice(value);
        }
    }
    payload.extend_from_slice(&VERSION.to_le_bytes());
    let checksum = crc64(&payload);
    payload.extend_from_slice(&checksum.to_le_bytes());
    payload
}

fn encode_length(length: u64, out: &mut Vec<u8>) {
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

/// The value of a payload, if that has at most `bytes_max` bytes. Bytes after the string are ignored, as in Redis.
pub(crate) fn decode(payload: &[u8], bytes_max: usize) -> Result<Vec<u8>, PayloadError> {
    let (content, checksum) = payload.split_last_chunk().ok_or(PayloadError::Footer)?;
    let (body, version) = content.split_last_chunk().ok_or(PayloadError::Footer)?;
    if u16::from_le_bytes(*version) > VERSION || crc64(content) != u64::from_le_bytes(*checksum) {
        return Err(PayloadError::Footer);
    }
    let mut reader = Reader(body);
    let value = reader.byte().filter(|kind| *kind == TYPE_STRING).and_then(|_| reader.string(bytes_max));
    value.ok_or(PayloadError::Content)
}

/// The bytes that are left. Its methods return `None` if these do not suffice or are wrong.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn array<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn length(&mut self, first: u8) -> Option<usize> {
        let length = match first {
            ..0x40 => first.into(),
            0x40..0x80 => u64::from(first & 0x3f) << 8 | u64::from(self.byte()?),
            LENGTH_32 => u32::from_be_bytes(self.array()?).into(),
            LENGTH_64 => u64::from_be_bytes(self.array()?),
            _ => return None,
        };
        usize::try_from(length).ok()
    }

    fn string(&mut self, bytes_max: usize) -> Option<Vec<u8>> {
        let number = match self.byte()? {
            INTEGER_8 => i64::from(i8::from_le_bytes(self.array()?)),
            INTEGER_16 => i16::from_le_bytes(self.array()?).into(),
            INTEGER_32 => i32::from_le_bytes(self.array()?).into(),
            COMPRESSED => {
                let first = self.byte()?;
                let compressed = self.length(first)?;
                let first = self.byte()?;
                let length = self.length(first).filter(|length| *length <= bytes_max)?;
                return decompress(self.bytes(compressed)?, length);
            }
            first => {
                let length = self.length(first).filter(|length| *length <= bytes_max)?;
                return self.bytes(length).map(<[u8]>::to_vec);
            }
        };
        Some(number.to_string().into_bytes())
    }
}

/// Decompresses LZF: control bytes below 32 precede that many literal bytes and one; others give a length in their
/// first three bits and a distance in their last five and the next byte, and the bytes from there on are copied.
fn decompress(compressed: &[u8], length: usize) -> Option<Vec<u8>> {
    // The length is announced, not yet proven: a byte of input gives at most 264 of output in three.
    let mut out = Vec::with_capacity(length.min(compressed.len().saturating_mul(88)));
    let mut reader = Reader(compressed);
    while let Some(control) = reader.byte() {
        if control < 32 {
            out.extend_from_slice(reader.bytes(usize::from(control) + 1)?);
        } else {
            let mut copied = usize::from(control >> 5) + 2;
            if copied == 9 {
                copied += usize::from(reader.byte()?);
            }
            let distance = (usize::from(control & 31) << 8 | usize::from(reader.byte()?)) + 1;
            let start = out.len().checked_sub(distance)?;
            // Byte by byte: the bytes copied may be among those to copy.
            (start..start + copied).for_each(|at| out.push(out[at]));
        }
        if out.len() > length {
            return None;
        }
    }
    (out.len() == length).then_some(out)
}

/// CRC-64 of Redis: polynomial 0xad93d23594c935a9, reflected, from 0, not inverted.
fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |crc, byte| CRC_TABLE[usize::from(crc as u8 ^ byte)] ^ crc >> 8)
}

static CRC_TABLE: [u64; 256] = {
    const POLYNOMIAL: u64 = 0xad93_d235_94c9_35a9_u64.reverse_bits();
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ POLYNOMIAL } else { crc >> 1 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BYTES_MAX: usize = 1 << 20;

    #[test]
    fn the_checksum_is_that_of_redis() {
        assert_eq!(crc64(b"123456789"), 0xe9c6_d914_c4b8_d9ca);
    }

    #[test]
    fn compressed_text_of_redis_is_read() {
        // `DUMP` in Redis 7.0.15 after `SET key` with 100 times "a".
        let payload = b"\x00\xc3\x09\x40\x64\x01\x61\x61\xe0\x57\x00\x01\x61\x61";
        let mut payload = [&payload[..], &VERSION.to_le_bytes()].concat();
        let checksum = crc64(&payload);
        payload.extend_from_slice(&checksum.to_le_bytes());
        assert_eq!(decode(&payload, BYTES_MAX), Ok(vec![b'a'; 100]));
        assert_eq!(decode(&payload, 99), Err(PayloadError::Content));
    }

    proptest! {
        #[test]
        fn values_are_read_back(value: Vec<u8>, length in 0usize..70_000, number: i64, shift in 0u32..64) {
            let number = (number >> shift).to_string().into_bytes();
            for value in [value, vec![7; length], number] {
                prop_assert_eq!(decode(&encode(&value), BYTES_MAX), Ok(value));
            }
        }

        #[test]
        fn damage_is_noticed(value: Vec<u8>, at: prop::sample::Index, flip in 1u8..) {
            let mut payload = encode(&value);
            let at = at.index(payload.len());
            payload[at] ^= flip;
            prop_assert_eq!(decode(&payload, BYTES_MAX), Err(PayloadError::Footer));
        }

        #[test]
        fn arbitrary_content_never_panics(mut payload: Vec<u8>) {
            payload.extend_from_slice(&VERSION.to_le_bytes());
            let checksum = crc64(&payload);
            payload.extend_from_slice(&checksum.to_le_bytes());
            let _ = decode(&payload, BYTES_MAX);
        }
    }
}
