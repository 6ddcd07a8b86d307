//! Tests of all formats: what is written is read back, and what is not sound is refused.

mod format_document;
mod malformed;
mod round_trip;

use std::io::Cursor;

use crate::{Format, ReadError, Record, RecordReader};

/// The records of a file, or why it can't be read.
fn read(format: Format, bytes: &[u8]) -> Result<Vec<Record>, ReadError> {
    let mut reader = RecordReader::new(format, Cursor::new(bytes), "items")?;
    let mut records = Vec::new();
    while let Some(record) = reader.next_record()? {
        records.push(record);
    }
    Ok(records)
}
