//! Framed bytes: a header, one frame per keyspace and one per record, an end frame. `docs/format.md` describes each
//! byte.
//!
//! The checksum of a frame is seeded with the number of the frame, and the last frame says that it is the last: so a
//! frame that is damaged, lost, doubled or moved is detected, and so is a file that was cut short.

use std::io::{self, Read, Write};

use alluvium_base::checksum::checksum64;
use alluvium_base::varint;

use crate::entry::Entry;
use crate::error::{Mismatch, Place, ReadError, Result};
use crate::keyspace_head::KeyspaceHead;
use crate::reader::Position;
use crate::record::{KEY_BYTES_MAX, Record, VALUE_BYTES_MAX};

const MAGIC: &[u8; 8] = b"ALVMEXP\0";
/// Version 2 added frames of keyspaces. Files of version 1 are read.
const MAJOR: u16 = 2;
const MINOR: u16 = 0;
pub const HEADER_BYTES: usize = 24;

// Kinds of frames. On disk: do not renumber.
const END: u8 = 0;
const ITEM: u8 = 1;
const KEYSPACE: u8 = 2;
// Bits of an item's first byte, as in the engine's items; with bit 0 or 1 it would not be a value.
const HAS_FLAGS: u8 = 1 << 2;
const HAS_EXPIRY: u8 = 1 << 3;

const KEYSPACE_BYTES_MAX: usize = 255;
/// Kind, lengths, flags and expiry take less than the last term.
const PAYLOAD_BYTES_MAX: u64 = (KEY_BYTES_MAX + VALUE_BYTES_MAX + KEYSPACE_BYTES_MAX + 64) as u64;

#[derive(Debug)]
pub struct BinaryWriter<W> {
    pub out: W,
    frames: u64,
    payload: Vec<u8>,
    frame: Vec<u8>,
}

impl<W: Write> BinaryWriter<W> {
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&header())?;
        Ok(Self { out, frames: 0, payload: Vec::new(), frame: Vec::new() })
    }

    pub fn write(&mut self, record: &Record) -> io::Result<()> {
        self.payload.clear();
        encode(record, &mut self.payload);
        self.write_frame()
    }

    pub fn write_head(&mut self, json: &[u8]) -> io::Result<()> {
        self.payload.clear();
        self.payload.push(KEYSPACE);
        self.payload.extend_from_slice(json);
        self.write_frame()
    }

    pub fn write_end(&mut self) -> io::Result<()> {
        self.payload.clear();
        self.payload.push(END);
        self.write_frame()
    }

    fn write_frame(&mut self) -> io::Result<()> {
        self.frame.clear();
        frame(self.frames, &self.payload, &mut self.frame);
        self.frames += 1;
        self.out.write_all(&self.frame)
    }
}

pub fn header() -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(MAGIC);
    header[8..10].copy_from_slice(&MAJOR.to_le_bytes());
    header[10..12].copy_from_slice(&MINOR.to_le_bytes());
    let checksum = checksum64(&header[..16], 0);
    header[16..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Appends the frame of this number around `payload`.
pub fn frame(number: u64, payload: &[u8], out: &mut Vec<u8>) {
    varint::write(payload.len() as u64, out);
    out.extend_from_slice(&checksum64(payload, number).to_le_bytes());
    out.extend_from_slice(payload);
}

fn encode(record: &Record, out: &mut Vec<u8>) {
    out.push(ITEM);
    varint::write(record.keyspace.len() as u64, out);
    out.extend_from_slice(record.keyspace.as_bytes());
    let flags = if record.flags != 0 { HAS_FLAGS } else { 0 };
    let expiry = if record.expires_at_ms.is_some() { HAS_EXPIRY } else { 0 };
    out.push(flags | expiry);
    varint::write(record.key.len() as u64, out);
    varint::write(record.value.len() as u64, out);
    if record.flags != 0 {
        out.extend_from_slice(&record.flags.to_le_bytes());
    }
    if let Some(ms) = record.expires_at_ms {
        out.extend_from_slice(&ms.to_le_bytes());
    }
    out.extend_from_slice(&record.key);
    out.extend_from_slice(&record.value);
}

#[derive(Debug)]
pub struct BinaryReader<R> {
    pub input: R,
    pub file: String,
    pub position: Position,
    payload: Vec<u8>,
}

impl<R: Read> BinaryReader<R> {
    /// Reads and checks the header.
    pub fn new(mut input: R, file: String) -> Result<Self> {
        let mut header = [0; HEADER_BYTES];
        let io_error = |source| ReadError::Io { file: file.clone(), source };
        let len = read_up_to(&mut input, &mut header).map_err(io_error)?;
        check_header(&file, &header[..len])?;
        let position = Position { offset: HEADER_BYTES as u64, ..Position::default() };
        Ok(Self { input, file, position, payload: Vec::new() })
    }

    /// Returns `None` at the end frame, which is not passed: the position stays after the last record.
    pub fn next_entry(&mut self) -> Result<Option<Entry>> {
        let mismatch = |reader: &Self, mismatch: Mismatch| {
            mismatch.at(&reader.file, Place::Offset(reader.position.offset))
        };
        let (len, len_bytes) = self.read_len()?;
        let mut checksum = [0; 8];
        let found = read_up_to(&mut self.input, &mut checksum).map_err(|error| self.io_error(error))?;
        self.payload.clear();
        // Grows with the bytes that are there, not with the length that was announced.
        let read = (&mut self.input).take(len).read_to_end(&mut self.payload);
        let found = found + read.map_err(|error| self.io_error(error))?;
        if found as u64 != 8 + len {
            let expected = format!("a frame of {} bytes", len_bytes + 8 + len);
            let found = format!("the end of the file after {}", len_bytes + found as u64);
            return Err(mismatch(self, Mismatch::new(expected, found)));
        }
        let expected = u64::from_le_bytes(checksum);
        let found = checksum64(&self.payload, self.position.frames());
        if found != expected {
            let (expected, found) = (format!("checksum {expected:016x}"), format!("{found:016x}"));
            return Err(mismatch(self, Mismatch::new(expected, found)));
        }
        match decode(&self.payload).map_err(|reason| mismatch(self, reason))? {
            Some(entry) => {
                self.position.offset += len_bytes + 8 + len;
                self.position.records += u64::from(entry.is_record());
                self.position.lines += u64::from(!entry.is_record());
                Ok(Some(entry))
            }
            None => {
                let mut behind = [0];
                let len = read_up_to(&mut self.input, &mut behind).map_err(|error| self.io_error(error))?;
                if len == 0 {
                    return Ok(None);
                }
                Err(mismatch(self, Mismatch::new("the end of the file behind the end frame", "more bytes")))
            }
        }
    }

    /// The length of the next payload, and the number of bytes that encode it.
    fn read_len(&mut self) -> Result<(u64, u64)> {
        let mut bytes = [0; varint::LEN_MAX];
        for at in 0..varint::LEN_MAX {
            let read =
                read_up_to(&mut self.input, &mut bytes[at..=at]).map_err(|error| self.io_error(error))?;
            if read == 0 {
                let mismatch = Mismatch::new("a frame", "the end of the file: it was cut short");
                return Err(mismatch.at(&self.file, Place::Offset(self.position.offset)));
            }
            if let Some((len, taken)) =
                varint::read(&bytes[..=at]).filter(|(len, _)| *len <= PAYLOAD_BYTES_MAX)
            {
                return Ok((len, taken as u64));
            }
            if bytes[at] < 0x80 {
                break;
            }
        }
        let mismatch =
            Mismatch::new(format!("a payload of at most {PAYLOAD_BYTES_MAX} bytes"), "a longer one");
        Err(mismatch.at(&self.file, Place::Offset(self.position.offset)))
    }

    fn io_error(&self, source: io::Error) -> ReadError {
        ReadError::Io { file: self.file.clone(), source }
    }
}

fn check_header(file: &str, found: &[u8]) -> Result<()> {
    let malformed =
        |expected: &str, found: String| Err(Mismatch::new(expected, found).at(file, Place::Offset(0)));
    let Some((magic, rest)) = found.split_first_chunk::<8>().filter(|_| found.len() == HEADER_BYTES) else {
        return malformed("a header of 24 bytes", format!("{} bytes", found.len()));
    };
    if magic != MAGIC {
        return malformed(
            "the magic ALVMEXP of a binary export",
            format!("{:?}", magic.escape_ascii().to_string()),
        );
    }
    let checksum = checksum64(&found[..16], 0);
    if found[16..] != checksum.to_le_bytes() {
        return malformed("a header that fits its checksum", "another checksum".to_owned());
    }
    let major = u16::from_le_bytes([rest[0], rest[1]]);
    if major > MAJOR {
        return Err(ReadError::NewerFormat { file: file.to_owned(), found: major, supported: MAJOR });
    }
    Ok(())
}

/// Decodes a payload; returns `None` for the payload of the end frame.
fn decode(payload: &[u8]) -> std::result::Result<Option<Entry>, Mismatch> {
    let mut rest = Rest(payload);
    match rest.byte("a kind of frame")? {
        END if rest.0.is_empty() => return Ok(None),
        END => return Err(Mismatch::new("an empty end frame", format!("{} bytes", rest.0.len()))),
        ITEM => {}
        KEYSPACE => return KeyspaceHead::from_json(rest.0).map(|head| Some(Entry::Keyspace(head))),
        kind => return Err(Mismatch::new("kind 0, 1 or 2 of a frame", kind.to_string())),
    }
    let len = rest.len("keyspace name", KEYSPACE_BYTES_MAX)?;
    let keyspace = String::from_utf8(rest.take("keyspace name", len)?.to_vec())
        .map_err(|_| Mismatch::new("a keyspace name in UTF-8", "other bytes"))?;
    let bits = rest.byte("an item")?;
    if bits & !(HAS_FLAGS | HAS_EXPIRY) != 0 {
        return Err(Mismatch::new("a value with known parts", format!("an item of first byte {bits:02x}")));
    }
    let key_len = rest.len("key", KEY_BYTES_MAX)?;
    let value_len = rest.len("value", VALUE_BYTES_MAX)?;
    let flags = if bits & HAS_FLAGS != 0 { u32::from_le_bytes(rest.array("flags")?) } else { 0 };
    let expires_at_ms =
        if bits & HAS_EXPIRY != 0 { Some(u64::from_le_bytes(rest.array("expiry")?)) } else { None };
    let key = rest.take("key", key_len)?.to_vec();
    let value = rest.take("value", value_len)?.to_vec();
    if !rest.0.is_empty() {
        let found = format!("{} bytes more", rest.0.len());
        return Err(Mismatch::new("the end of the frame behind the value", found));
    }
    Ok(Some(Entry::Record(Record { keyspace, key, value, flags, expires_at_ms })))
}

/// The rest of a payload.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, what: &str, len: usize) -> std::result::Result<&'a [u8], Mismatch> {
        let Some((taken, rest)) = self.0.split_at_checked(len) else {
            let expected = format!("{len} bytes of {what}");
            return Err(Mismatch::new(expected, format!("{} to the end of the frame", self.0.len())));
        };
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &str) -> std::result::Result<[u8; N], Mismatch> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(what, N)?);
        Ok(array)
    }

    fn byte(&mut self, what: &str) -> std::result::Result<u8, Mismatch> {
        let [byte] = self.array(what)?;
        Ok(byte)
    }

    fn len(&mut self, what: &str, max: usize) -> std::result::Result<usize, Mismatch> {
        let parsed = varint::read(self.0).and_then(|(len, taken)| Some((usize::try_from(len).ok()?, taken)));
        let Some((len, taken)) = parsed.filter(|(len, _)| *len <= max) else {
            let found = parsed.map_or("none".to_owned(), |(len, _)| len.to_string());
            return Err(Mismatch::new(format!("a length of the {what} of at most {max}"), found));
        };
        self.0 = &self.0[taken..];
        Ok(len)
    }
}

/// Fills `buffer` as far as the input goes; returns the number of bytes read.
fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < buffer.len() {
        match input.read(&mut buffer[len..]) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}
