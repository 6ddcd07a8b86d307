//! [`RecordReader`]: bytes to records, in any format.

use std::io::{BufRead, Seek, SeekFrom};

use serde::{Deserialize, Serialize};

use crate::binary::BinaryReader;
use crate::comma_separated::CsvReader;
use crate::entry::Entry;
use crate::error::{Mismatch, Place, ReadError, Result};
use crate::format::Format;
use crate::json_lines::JsonLinesReader;

/// How far a file was read: the position after a record, or before the first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Bytes before it.
    pub offset: u64,
    /// Lines before it; in binary files, frames before it that are no records.
    pub lines: u64,
    /// Records before it.
    pub records: u64,
}

impl Position {
    /// Frames before it in a binary file.
    pub(crate) fn frames(self) -> u64 {
        self.lines + self.records
    }
}

/// Reads records from `R`, one at a time. A record takes at most a few times the memory of the longest value, whatever
/// the bytes say.
#[derive(Debug)]
pub struct RecordReader<R> {
    body: Body<R>,
    /// Where the last record began.
    place: Place,
}

#[derive(Debug)]
enum Body<R> {
    JsonLines(JsonLinesReader<R>),
    Csv(Box<CsvReader<R>>),
    Binary(BinaryReader<R>),
}

impl<R: BufRead> RecordReader<R> {
    /// Reads what precedes the first record. `file` is the name of the input in errors.
    pub fn new(format: Format, input: R, file: impl Into<String>) -> Result<Self> {
        let file = file.into();
        let body = match format {
            Format::JsonLines => Body::JsonLines(JsonLinesReader::new(input, file)),
            Format::Csv => Body::Csv(Box::new(CsvReader::new(input, file)?)),
            Format::Binary => Body::Binary(BinaryReader::new(input, file)?),
        };
        Ok(Self { body, place: Place::Offset(0) })
    }

    /// Returns the next item or keyspace, or `None` at the end. After an error the rest of the file can't be read.
    pub fn next_entry(&mut self) -> Result<Option<Entry>> {
        let before = self.position();
        self.place = match &self.body {
            Body::Binary(_) => Place::Offset(before.offset),
            _ => Place::Line(before.lines + 1),
        };
        let (entry, file) = match &mut self.body {
            Body::JsonLines(body) => (body.next_entry()?, &body.file),
            Body::Csv(body) => (body.next_record()?.map(Entry::Record), &body.file),
            Body::Binary(body) => (body.next_entry()?, &body.file),
        };
        match entry.as_ref().and_then(Entry::excess) {
            Some((expected, found)) => Err(Mismatch::new(expected, found).at(file, self.place)),
            None => Ok(entry),
        }
    }

    /// Where the entry that the last call returned began, for messages about it.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The position after the entry that the last call returned.
    pub fn position(&self) -> Position {
        match &self.body {
            Body::JsonLines(body) => body.position,
            Body::Csv(body) => body.position,
            Body::Binary(body) => body.position,
        }
    }
}

impl<R: BufRead + Seek> RecordReader<R> {
    /// Continues at a position that [`RecordReader::position`] returned for the same file.
    pub fn seek(&mut self, to: Position) -> Result<()> {
        let (input, position, file) = match &mut self.body {
            Body::Csv(body) => return body.seek(to),
            Body::JsonLines(body) => (&mut body.input, &mut body.position, &body.file),
            Body::Binary(body) => (&mut body.input, &mut body.position, &body.file),
        };
        input
            .seek(SeekFrom::Start(to.offset))
            .map_err(|source| ReadError::Io { file: file.clone(), source })?;
        *position = to;
        Ok(())
    }
}
