//! [`RecordWriter`]: records to bytes, in any format.

use std::io::{self, Write};

use crate::binary::BinaryWriter;
use crate::format::Format;
use crate::keyspace_head::KeyspaceHead;
use crate::record::Record;
use crate::{comma_separated, json_lines};

/// Writes records to `W`, which it expects to be buffered.
pub struct RecordWriter<W: Write>(Body<W>);

enum Body<W: Write> {
    JsonLines(W),
    Csv(Box<csv::Writer<W>>),
    Binary(BinaryWriter<W>),
}

impl<W: Write> RecordWriter<W> {
    /// Writes what precedes the first record.
    pub fn new(format: Format, out: W) -> io::Result<Self> {
        Ok(Self(match format {
            Format::JsonLines => Body::JsonLines(out),
            Format::Csv => Body::Csv(Box::new(comma_separated::writer(out)?)),
            Format::Binary => Body::Binary(BinaryWriter::new(out)?),
        }))
    }

    /// Writes one record. Fails for a key or value that is too long for a reader.
    pub fn write(&mut self, record: &Record) -> io::Result<()> {
        if let Some((expected, found)) = record.excess() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("expected {expected}, found {found}"),
            ));
        }
        match &mut self.0 {
            Body::JsonLines(out) => json_lines::write(record, out),
            Body::Csv(out) => comma_separated::write(record, out),
            Body::Binary(out) => out.write(record),
        }
    }

    /// Writes the description of a keyspace, before its items. Fails in CSV, which has no place for it
    /// ([`Format::carries_keyspaces`]), and if it is too long for a reader.
    pub fn write_keyspace(&mut self, head: &KeyspaceHead) -> io::Result<()> {
        if let Some((expected, found)) = head.excess() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("expected {expected}, found {found}"),
            ));
        }
        let json = head.to_json()?;
        match &mut self.0 {
            Body::JsonLines(out) => json_lines::write_head(&json, out),
            Body::Csv(_) => Err(io::Error::new(io::ErrorKind::Unsupported, "CSV has no place for keyspaces")),
            Body::Binary(out) => out.write_head(&json),
        }
    }

    /// Writes what follows the last record, flushes, and returns `W`. Without it a binary file counts as cut short.
    pub fn finish(self) -> io::Result<W> {
        let mut out = match self.0 {
            Body::JsonLines(out) => out,
            Body::Csv(out) => out
                .into_inner()
                .map_err(|error| io::Error::new(error.error().kind(), error.error().to_string()))?,
            Body::Binary(mut writer) => {
                writer.write_end()?;
                writer.out
            }
        };
        out.flush()?;
        Ok(out)
    }
}
