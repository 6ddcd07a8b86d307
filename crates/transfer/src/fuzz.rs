//! Entry points for fuzzing: any bytes go in, a broken promise is a panic.

use std::io::Cursor;

use crate::binary;
use crate::{Format, Record, RecordReader, RecordWriter};

/// Reads `bytes` as a binary file; and as the payload of a frame in a sound one, so that the fuzzer gets behind the
/// checksums.
///
/// # Panics
/// When records that were read are not read again from what is written of them. Never otherwise, whatever the bytes.
pub fn binary(bytes: &[u8]) {
    check(Format::Binary, bytes);
    let mut framed = binary::header().to_vec();
    binary::frame(0, bytes, &mut framed);
    binary::frame(1, &[0], &mut framed);
    check(Format::Binary, &framed);
}

/// Reads `bytes` as JSON lines. Panics as [`binary()`] does.
pub fn json_lines(bytes: &[u8]) {
    check(Format::JsonLines, bytes);
}

/// Reads `bytes` as CSV, as they are and under a header. Panics as [`binary()`] does.
pub fn csv(bytes: &[u8]) {
    check(Format::Csv, bytes);
    check(Format::Csv, &[b"key,value,value_base64\n", bytes].concat());
}

/// A sound file to start from.
pub fn sample(format: Format) -> Vec<u8> {
    let records = [
        Record {
            keyspace: "fruit".to_owned(),
            key: b"apple".to_vec(),
            value: b"red".to_vec(),
            ..Record::default()
        },
        Record {
            keyspace: "fruit".to_owned(),
            key: b"pear".to_vec(),
            value: vec![0xff],
            flags: 5,
            expires_at_ms: Some(1_800_000_000_000),
        },
    ];
    written(format, &records)
}

/// Sound payloads of frames to start from.
pub fn binary_samples() -> Vec<Vec<u8>> {
    let sample = sample(Format::Binary);
    let payload = sample[binary::HEADER_BYTES + 9..][..usize::from(sample[binary::HEADER_BYTES])].to_vec();
    vec![sample, payload]
}

fn check(format: Format, bytes: &[u8]) {
    let records = read(format, bytes);
    assert_eq!(read(format, &written(format, &records)), records, "{format}");
}

/// The records up to the first error, if any.
fn read(format: Format, bytes: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    if let Ok(mut reader) = RecordReader::new(format, Cursor::new(bytes), "fuzz") {
        while let Ok(Some(record)) = reader.next_record() {
            records.push(record);
        }
        assert!(reader.position().offset <= bytes.len() as u64);
        assert_eq!(reader.position().records, records.len() as u64);
    }
    records
}

pub(crate) fn written(format: Format, records: &[Record]) -> Vec<u8> {
    let write = || -> std::io::Result<Vec<u8>> {
        let mut writer = RecordWriter::new(format, Vec::new())?;
        records.iter().try_for_each(|record| writer.write(record))?;
        writer.finish()
    };
    write().expect("memory takes every byte")
}
