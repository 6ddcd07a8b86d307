//! Tests of all formats: what is written is read back, and malformed files are refused.

mod format_document;
mod keyspaces;
mod malformed;
mod round_trip;

use std::io::Cursor;

use crate::{Entry, Format, ReadError, Record, RecordReader};

/// What is in a file, or why it can't be read.
fn read(format: Format, bytes: &[u8]) -> Result<Vec<Entry>, ReadError> {
    let mut reader = RecordReader::new(format, Cursor::new(bytes), "items")?;
    let mut entries = Vec::new();
    while let Some(entry) = reader.next_entry()? {
        entries.push(entry);
    }
    Ok(entries)
}

/// A text item without a keyspace's name.
fn plain(key: &str, value: &str) -> Entry {
    Entry::Record(Record {
        key: key.as_bytes().to_vec(),
        value: value.as_bytes().to_vec(),
        ..Record::default()
    })
}
