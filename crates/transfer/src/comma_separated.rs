//! CSV (RFC 4180) under a header. Bytes that are not text are stored in the columns `key_base64` and `value_base64`.

use std::io::{self, BufRead, Seek, SeekFrom, Write};

use csv::ErrorKind;
use csv_core::ReadRecordResult;

use crate::byte_order_mark;
use crate::error::{Mismatch, Place, ReadError, Result};
use crate::reader::Position;
use crate::record::{Record, TEXT_BYTES_MAX};
use crate::text;

const COLUMNS: [&str; 7] =
    ["keyspace", "key", "key_base64", "value", "value_base64", "flags", "expires_at_ms"];

pub fn writer<W: Write>(out: W) -> io::Result<csv::Writer<W>> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(COLUMNS).map_err(io_error)?;
    Ok(writer)
}

pub fn write(record: &Record, out: &mut csv::Writer<impl Write>) -> io::Result<()> {
    let (key, key_base64) = text::encode(&record.key);
    let (value, value_base64) = text::encode(&record.value);
    let flags = if record.flags == 0 { String::new() } else { record.flags.to_string() };
    let expires_at_ms = record.expires_at_ms.map(|ms| ms.to_string()).unwrap_or_default();
    out.write_record([
        &record.keyspace,
        key.unwrap_or_default(),
        key_base64.as_deref().unwrap_or_default(),
        value.unwrap_or_default(),
        value_base64.as_deref().unwrap_or_default(),
        &flags,
        &expires_at_ms,
    ])
    .map_err(io_error)
}

/// Keeps the kind of the operating system's error, so that a closed pipe is recognised as one.
fn io_error(error: csv::Error) -> io::Error {
    match error.into_kind() {
        ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// Reads rows with the state machine of `csv`, so that each line is counted and no row can fill the memory.
#[derive(Debug)]
pub struct CsvReader<R> {
    input: R,
    pub file: String,
    pub position: Position,
    machine: csv_core::Reader,
    /// For each column of the file, which of [`COLUMNS`] it is.
    columns: Vec<usize>,
    row: Row,
}

/// The cells of a row, one after the other, and where each ends.
#[derive(Debug, Default)]
struct Row {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    cells: usize,
}

impl Row {
    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends[..self.cells]).map(|(start, &end)| &self.bytes[start..end])
    }
}

impl<R: BufRead> CsvReader<R> {
    pub fn new(input: R, file: String) -> Result<Self> {
        let (machine, position, row) = (csv_core::Reader::new(), Position::default(), Row::default());
        let mut reader = Self { input, file, position, machine, columns: Vec::new(), row };
        let skipped = byte_order_mark::skip(&mut reader.input);
        let skipped = skipped.map_err(|source| ReadError::Io { file: reader.file.clone(), source })?;
        let half =
            || Mismatch::new("text in UTF-8", "half a byte order mark").at(&reader.file, Place::Line(1));
        reader.position.offset += skipped.ok_or_else(half)?;
        reader.skip_line_ends()?;
        let place = reader.place();
        reader.read_row()?;
        reader.columns = columns(&reader.row).map_err(|mismatch| mismatch.at(&reader.file, place))?;
        Ok(reader)
    }

    pub fn next_record(&mut self) -> Result<Option<Record>> {
        let place = self.place();
        if !self.read_row()? {
            return Ok(None);
        }
        let record = parse(&self.columns, &self.row).map_err(|mismatch| mismatch.at(&self.file, place))?;
        self.position.records += 1;
        Ok(Some(record))
    }

    fn place(&self) -> Place {
        Place::Line(self.position.lines + 1)
    }

    /// Reads a row and the line ends after it; returns `false` at the end of the file.
    fn read_row(&mut self) -> Result<bool> {
        let start = self.position;
        let Row { bytes, ends, cells } = &mut self.row;
        *cells = 0;
        let mut bytes_len = 0;
        loop {
            let input = match self.input.fill_buf() {
                Ok(input) => input,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(ReadError::Io { file: self.file.clone(), source }),
            };
            // At the end of the file a line end is added, so that the last row is read like the others. Only within
            // quotes is it content.
            let is_at_end = input.is_empty();
            let piece = if is_at_end { b"\n" } else { input };
            let (outcome, taken, written, ended) =
                self.machine.read_record(piece, &mut bytes[bytes_len..], &mut ends[*cells..]);
            bytes_len += written;
            *cells += ended;
            if !is_at_end {
                self.position.offset += taken as u64;
                self.position.lines += count(&input[..taken], b'\n');
                self.input.consume(taken);
            }
            match outcome {
                ReadRecordResult::InputEmpty if is_at_end && written == 0 => return Ok(false),
                ReadRecordResult::InputEmpty if is_at_end => {
                    let mismatch = Mismatch::new("a closing quote", "the end of the file");
                    return Err(mismatch.at(&self.file, Place::Line(start.lines + 1)));
                }
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull => bytes.resize((2 * bytes.len()).max(1024), 0),
                ReadRecordResult::OutputEndsFull => ends.resize((2 * ends.len()).max(16), 0),
                ReadRecordResult::Record => break,
                ReadRecordResult::End => return Ok(false),
            }
            if self.position.offset - start.offset >= TEXT_BYTES_MAX {
                let expected = format!("a row of fewer than {TEXT_BYTES_MAX} bytes");
                let place = Place::Line(start.lines + 1);
                return Err(Mismatch::new(expected, "a longer one").at(&self.file, place));
            }
        }
        self.skip_line_ends()?;
        Ok(true)
    }

    /// Skips the rest of a line end of two bytes, and empty lines, which are not rows.
    fn skip_line_ends(&mut self) -> Result<()> {
        loop {
            let input = match self.input.fill_buf() {
                Ok(input) => input,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(source) => return Err(ReadError::Io { file: self.file.clone(), source }),
            };
            let taken = input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            let is_over = taken < input.len() || taken == 0;
            self.position.offset += taken as u64;
            self.position.lines += count(&input[..taken], b'\n');
            self.input.consume(taken);
            if is_over {
                return Ok(());
            }
        }
    }
}

impl<R: BufRead + Seek> CsvReader<R> {
    pub fn seek(&mut self, to: Position) -> Result<()> {
        let sought = self.input.seek(SeekFrom::Start(to.offset));
        sought.map_err(|source| ReadError::Io { file: self.file.clone(), source })?;
        self.position = to;
        Ok(())
    }
}

fn count(bytes: &[u8], sought: u8) -> u64 {
    bytes.iter().filter(|&&byte| byte == sought).count() as u64
}

fn columns(header: &Row) -> std::result::Result<Vec<usize>, Mismatch> {
    let mut columns = Vec::new();
    for cell in header.iter() {
        let column = COLUMNS.iter().position(|column| column.as_bytes() == cell.trim_ascii());
        let column = column.filter(|column| !columns.contains(column)).ok_or_else(|| {
            let expected = format!("a header of columns among {}, each once", COLUMNS.join(", "));
            Mismatch::new(expected, format!("{:?}", excerpt(cell)))
        })?;
        columns.push(column);
    }
    for name in ["key", "value"] {
        let is_of_name = |&column: &usize| COLUMNS[column].strip_suffix("_base64").unwrap_or(COLUMNS[column]);
        if !columns.iter().any(|column| is_of_name(column) == name) {
            return Err(Mismatch::new(format!("a header with {name} or {name}_base64"), "neither"));
        }
    }
    Ok(columns)
}

fn parse(columns: &[usize], row: &Row) -> std::result::Result<Record, Mismatch> {
    if row.cells != columns.len() {
        let expected = format!("{} cells, as in the header", columns.len());
        return Err(Mismatch::new(expected, row.cells.to_string()));
    }
    let mut cells: [&[u8]; COLUMNS.len()] = [&[]; COLUMNS.len()];
    for (&column, cell) in columns.iter().zip(row.iter()) {
        cells[column] = cell;
    }
    let [keyspace, key, key_base64, value, value_base64, flags, expires_at_ms] = cells;
    let keyspace = String::from_utf8(keyspace.to_vec())
        .map_err(|_| Mismatch::new("a keyspace name in UTF-8", format!("{:?}", excerpt(keyspace))))?;
    Ok(Record {
        keyspace,
        key: bytes("key", key, key_base64)?,
        value: bytes("value", value, value_base64)?,
        flags: number("flags", "32 bits", flags)?.unwrap_or_default(),
        expires_at_ms: number("expires_at_ms", "64 bits", expires_at_ms)?,
    })
}

/// Two empty cells stand for zero bytes.
fn bytes(name: &str, text: &[u8], base64: &[u8]) -> std::result::Result<Vec<u8>, Mismatch> {
    match (text, base64) {
        (text, []) => Ok(text.to_vec()),
        ([], base64) => text::decode(name, base64),
        _ => Err(Mismatch::new(format!("{name} or {name}_base64"), "both")),
    }
}

fn number<N: std::str::FromStr>(
    name: &str,
    width: &str,
    cell: &[u8],
) -> std::result::Result<Option<N>, Mismatch> {
    if cell.is_empty() {
        return Ok(None);
    }
    let parsed = std::str::from_utf8(cell).ok().and_then(|text| text.parse().ok());
    parsed.map(Some).ok_or_else(|| {
        Mismatch::new(format!("a whole number of {width} in {name}"), format!("{:?}", excerpt(cell)))
    })
}

/// The beginning of a cell, for messages.
fn excerpt(cell: &[u8]) -> String {
    String::from_utf8_lossy(&cell[..cell.len().min(40)]).into_owned()
}
