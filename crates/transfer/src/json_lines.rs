//! JSON lines: one object a line, `{"keyspace":"default","key":"apple","value":"red"}`.

use std::borrow::Cow;
use std::io::{self, BufRead, Read, Write};

use alluvium_base::PrefixRule;
use serde::{Deserialize, Serialize};

use crate::byte_order_mark;
use crate::entry::Entry;
use crate::error::{Mismatch, Place, ReadError, Result};
use crate::keyspace_head::{KeyspaceHead, OrderName};
use crate::reader::Position;
use crate::record::{Record, TEXT_BYTES_MAX};
use crate::text;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    keyspace: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_base64: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_base64: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flags: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at_ms: Option<u64>,
    /// If present, the line is the head of a keyspace and not an item.
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<OrderName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefix: Option<PrefixRule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lists_prefixes: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<Cow<'a, str>>,
}

pub fn write(record: &Record, out: &mut impl Write) -> io::Result<()> {
    let (key, key_base64) = text::encode(&record.key);
    let (value, value_base64) = text::encode(&record.value);
    let line = Line {
        keyspace: (!record.keyspace.is_empty()).then_some(Cow::Borrowed(&record.keyspace)),
        key: key.map(Cow::Borrowed),
        key_base64: key_base64.map(Cow::Owned),
        value: value.map(Cow::Borrowed),
        value_base64: value_base64.map(Cow::Owned),
        flags: (record.flags != 0).then_some(record.flags),
        expires_at_ms: record.expires_at_ms,
        order: None,
        prefix: None,
        lists_prefixes: None,
        plan: None,
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")
}

pub fn write_head(json: &[u8], out: &mut impl Write) -> io::Result<()> {
    out.write_all(json)?;
    out.write_all(b"\n")
}

#[derive(Debug)]
pub struct JsonLinesReader<R> {
    pub input: R,
    pub file: String,
    pub position: Position,
    line: Vec<u8>,
}

impl<R: BufRead> JsonLinesReader<R> {
    pub fn new(input: R, file: String) -> Self {
        Self { input, file, position: Position::default(), line: Vec::new() }
    }

    pub fn next_entry(&mut self) -> Result<Option<Entry>> {
        if self.position.offset == 0 {
            self.skip_byte_order_mark()?;
        }
        loop {
            self.line.clear();
            let place = Place::Line(self.position.lines + 1);
            let read = (&mut self.input).take(TEXT_BYTES_MAX).read_until(b'\n', &mut self.line);
            let len = read.map_err(|source| ReadError::Io { file: self.file.clone(), source })? as u64;
            if len == 0 {
                return Ok(None);
            }
            if len == TEXT_BYTES_MAX {
                let mismatch =
                    Mismatch::new(format!("a line of fewer than {TEXT_BYTES_MAX} bytes"), "a longer one");
                return Err(mismatch.at(&self.file, place));
            }
            let entry = match self.line.trim_ascii() {
                [] => None,
                line => Some(parse(line).map_err(|mismatch| mismatch.at(&self.file, place))?),
            };
            self.position.offset += len;
            self.position.lines += 1;
            if let Some(entry) = entry {
                self.position.records += u64::from(entry.is_record());
                return Ok(Some(entry));
            }
        }
    }

    fn skip_byte_order_mark(&mut self) -> Result<()> {
        let skipped = byte_order_mark::skip(&mut self.input);
        let skipped = skipped.map_err(|source| ReadError::Io { file: self.file.clone(), source })?;
        let half = || Mismatch::new("text in UTF-8", "half a byte order mark").at(&self.file, Place::Line(1));
        self.position.offset += skipped.ok_or_else(half)?;
        Ok(())
    }
}

fn parse(line: &[u8]) -> std::result::Result<Entry, Mismatch> {
    let line: Line<'_> = serde_json::from_slice(line)
        .map_err(|error| Mismatch::new("one JSON object with key and value", reason(&error)))?;
    match line.order {
        Some(order) => parse_head(line, order).map(Entry::Keyspace),
        None => parse_record(line).map(Entry::Record),
    }
}

fn parse_head(line: Line<'_>, order: OrderName) -> std::result::Result<KeyspaceHead, Mismatch> {
    let Line { keyspace, key, key_base64, value, value_base64, flags, expires_at_ms, .. } = line;
    let texts = [key, key_base64, value, value_base64];
    if texts.iter().any(Option::is_some) || flags.is_some() || expires_at_ms.is_some() {
        return Err(Mismatch::new("a keyspace's order or an item", "both"));
    }
    let Some(name) = keyspace else { return Err(Mismatch::new("the name of the keyspace", "none")) };
    let plan = line.plan.map(Cow::into_owned);
    KeyspaceHead::from_fields(name.into_owned(), order, line.prefix, line.lists_prefixes, plan)
}

fn parse_record(line: Line<'_>) -> std::result::Result<Record, Mismatch> {
    if line.prefix.is_some() || line.lists_prefixes.is_some() || line.plan.is_some() {
        return Err(Mismatch::new("a keyspace's order beside what else is said of it", "none"));
    }
    Ok(Record {
        keyspace: line.keyspace.unwrap_or_default().into_owned(),
        key: bytes("key", line.key, line.key_base64)?,
        value: bytes("value", line.value, line.value_base64)?,
        flags: line.flags.unwrap_or_default(),
        expires_at_ms: line.expires_at_ms,
    })
}

fn bytes(
    name: &str,
    text: Option<Cow<'_, str>>,
    base64: Option<Cow<'_, str>>,
) -> std::result::Result<Vec<u8>, Mismatch> {
    match (text, base64) {
        (Some(text), None) => Ok(text.into_owned().into_bytes()),
        (None, Some(base64)) => text::decode(name, base64.as_bytes()),
        (None, None) => Err(Mismatch::new(format!("{name} or {name}_base64"), "neither")),
        (Some(_), Some(_)) => Err(Mismatch::new(format!("{name} or {name}_base64"), "both")),
    }
}

/// The parser knows one line only, so only the column of its position counts.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    format!("{} (column {})", text.strip_suffix(&place).unwrap_or(&text), error.column())
}
