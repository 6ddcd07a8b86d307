//! Requests as bytes, and whether bytes are the reply to a request.

use super::Operation;
use crate::error::BenchError;
use crate::random::mix;

/// What is spoken with the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Protocol {
    /// That of Redis.
    Resp,
    /// memcached's meta protocol.
    Meta,
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// What it does.
    pub operation: Operation,
    /// With which item, or counter.
    pub item: u64,
}

/// What the bytes of a reply say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// It is not whole.
    Incomplete,
    /// It has this length. The item was there, or the operation took effect.
    Present(usize),
    /// It has this length. There was no item, or nothing was done.
    Absent(usize),
}

impl Protocol {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Resp => "resp",
            Self::Meta => "meta",
        }
    }

    /// Appends a request.
    #[inline]
    pub fn encode(self, Request { operation, item }: Request, value_bytes: usize, out: &mut Vec<u8>) {
        let key = key(operation, item);
        if self == Self::Meta {
            match operation {
                Operation::Get => append(out, &[b"mg ", &key, b" v\r\n"]),
                _ => {
                    append(out, &[b"ms ", &key, b" ", value_bytes.to_string().as_bytes(), b"\r\n"]);
                    append_value(item, value_bytes, out);
                    out.extend_from_slice(b"\r\n");
                }
            }
            return;
        }
        match operation {
            Operation::Get => append(out, &[b"*2\r\n$3\r\nGET\r\n$16\r\n", &key, b"\r\n"]),
            Operation::Exists => append(out, &[b"*2\r\n$6\r\nEXISTS\r\n$16\r\n", &key, b"\r\n"]),
            Operation::Delete => append(out, &[b"*2\r\n$3\r\nDEL\r\n$16\r\n", &key, b"\r\n"]),
            Operation::Increment => append(out, &[b"*2\r\n$4\r\nINCR\r\n$16\r\n", &key, b"\r\n"]),
            Operation::SetCounter => {
                append(out, &[b"*3\r\n$3\r\nSET\r\n$16\r\n", &key, b"\r\n$1\r\n1\r\n"]);
            }
            Operation::Echo => {
                let value_len = value_bytes.to_string();
                append(out, &[b"*2\r\n$4\r\nECHO\r\n$", value_len.as_bytes(), b"\r\n"]);
                append_value(item, value_bytes, out);
                out.extend_from_slice(b"\r\n");
            }
            Operation::Set | Operation::SetIfAbsent => {
                let is_conditional = operation == Operation::SetIfAbsent;
                let head: &[u8] = if is_conditional { b"*4" } else { b"*3" };
                append(out, &[head, b"\r\n$3\r\nSET\r\n$16\r\n", &key, b"\r\n$"]);
                append(out, &[value_bytes.to_string().as_bytes(), b"\r\n"]);
                append_value(item, value_bytes, out);
                append(out, &[if is_conditional { b"\r\n$2\r\nNX\r\n" } else { b"\r\n" }]);
            }
        }
    }

    /// Reads the reply to `request` at the front of `bytes`.
    ///
    /// # Errors
    /// A reply that is none to this request.
    #[inline]
    pub fn reply(self, request: Request, value_bytes: usize, bytes: &[u8]) -> Result<Reply, BenchError> {
        let Some(line_bytes) = bytes.iter().take(64).position(|byte| *byte == b'\n') else {
            return if bytes.len() < 64 { Ok(Reply::Incomplete) } else { Err(wrong(request, bytes)) };
        };
        let line = &bytes[..line_bytes + 1];
        let reply = match (self, line[0]) {
            (Self::Resp, b'$') | (Self::Meta, b'V') => {
                let digits = line.get(if self == Self::Resp { 1 } else { 3 }..).unwrap_or_default();
                let length = digits.iter().map_while(|byte| byte.is_ascii_digit().then(|| byte - b'0'));
                let announced = length.fold(0, |sum, digit| sum * 10 + usize::from(digit));
                if digits.first() == Some(&b'-') {
                    Reply::Absent(line.len())
                } else if !request.operation.returns_value() || announced != value_bytes {
                    return Err(wrong(request, bytes));
                } else if bytes.len() < line.len() + value_bytes + 2 {
                    Reply::Incomplete
                } else if !is_value(request.item, &bytes[line.len()..][..value_bytes]) {
                    return Err(wrong(request, bytes));
                } else {
                    Reply::Present(line.len() + value_bytes + 2)
                }
            }
            (Self::Resp, b'+') | (Self::Meta, b'H') => Reply::Present(line.len()),
            (Self::Meta, b'E') if line == b"EN\r\n" => Reply::Absent(line.len()),
            (Self::Resp, b':') if line[1] == b'0' => Reply::Absent(line.len()),
            (Self::Resp, b':') if line[1].is_ascii_digit() => Reply::Present(line.len()),
            _ => return Err(wrong(request, bytes)),
        };
        Ok(reply)
    }
}

fn wrong(request: Request, bytes: &[u8]) -> BenchError {
    let shown = bytes[..bytes.len().min(80)].escape_ascii();
    BenchError::WrongAnswer(format!("{:?} of item {}: {shown}", request.operation, request.item))
}

#[inline]
fn append(out: &mut Vec<u8>, parts: &[&[u8]]) {
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

/// The key of an item, or of a counter.
#[inline]
fn key(operation: Operation, item: u64) -> [u8; 16] {
    let is_counter = matches!(operation, Operation::Increment | Operation::SetCounter);
    let mut key = if is_counter { *b"counter:00000000" } else { *b"item:00000000000" };
    let mut rest = item;
    for digit in key[8..].iter_mut().rev() {
        *digit = b"0123456789abcdef"[(rest & 15) as usize];
        rest >>= 4;
    }
    key
}

/// The words of an item's value: all are the same, so that a client takes little time to verify them.
#[inline]
fn word(item: u64) -> [u8; 8] {
    mix(item).to_le_bytes()
}

#[inline]
fn append_value(item: u64, value_bytes: usize, out: &mut Vec<u8>) {
    let word = word(item);
    for _ in 0..value_bytes / 8 {
        out.extend_from_slice(&word);
    }
    out.extend_from_slice(&word[..value_bytes % 8]);
}

#[inline]
fn is_value(item: u64, value: &[u8]) -> bool {
    let word = word(item);
    let chunks = value.chunks_exact(8);
    let rest = chunks.remainder();
    rest == &word[..rest.len()] && chunks.into_iter().all(|chunk| chunk == word)
}
