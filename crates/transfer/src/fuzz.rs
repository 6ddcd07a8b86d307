//! Entry points for fuzzing: any bytes go in, a broken promise is a panic.

use std::io::Cursor;

use alluvium_base::PrefixRule;

use crate::binary;
use crate::{Entry, Format, KeyspaceHead, KeyspaceOrder, Record, RecordReader, RecordWriter};

/// Reads `bytes` as a binary file, and as the payload of a frame in a sound one, so that the fuzzer gets past the
/// checksums.
///
/// # Panics
/// When records that were read and written again are not read back the same. Never otherwise, whatever the bytes.
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
    let head = KeyspaceHead {
        name: "fruit".to_owned(),
        order: KeyspaceOrder::SemiSorted { prefix: PrefixRule::Length { bytes: 1 }, lists_prefixes: true },
        plan: None,
    };
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
    let heads = format.carries_keyspaces().then_some(Entry::Keyspace(head));
    let entries: Vec<Entry> = heads.into_iter().chain(records.map(Entry::Record)).collect();
    written(format, &entries)
}

/// Sound payloads of frames to start from: of a keyspace and of an item.
pub fn binary_samples() -> Vec<Vec<u8>> {
    let sample = sample(Format::Binary);
    let mut frames = &sample[binary::HEADER_BYTES..];
    let mut samples = vec![sample.clone()];
    for _ in 0..2 {
        let (frame, rest) = frames.split_at(9 + usize::from(frames[0]));
        samples.push(frame[9..].to_vec());
        frames = rest;
    }
    samples
}

fn check(format: Format, bytes: &[u8]) {
    let entries = read(format, bytes);
    assert_eq!(read(format, &written(format, &entries)), entries, "{format}");
}

/// The entries before the first error, if any.
fn read(format: Format, bytes: &[u8]) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    if let Ok(mut reader) = RecordReader::new(format, Cursor::new(bytes), "fuzz") {
        while let Ok(Some(entry)) = reader.next_entry() {
            entries.push(entry);
        }
        assert!(reader.position().offset <= bytes.len() as u64);
        let records = entries.iter().filter(|entry| entry.is_record()).count();
        assert_eq!(reader.position().records, records as u64);
    }
    entries
}

pub(crate) fn written(format: Format, entries: &[Entry]) -> Vec<u8> {
    let write = || -> std::io::Result<Vec<u8>> {
        let mut writer = RecordWriter::new(format, Vec::new())?;
        entries.iter().try_for_each(|entry| match entry {
            Entry::Keyspace(head) => writer.write_keyspace(head),
            Entry::Record(record) => writer.write(record),
        })?;
        writer.finish()
    };
    write().expect("memory takes every byte")
}
