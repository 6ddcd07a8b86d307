//! Entry points for fuzzers: every parser of stored bytes, on arbitrary bytes. None may panic or loop.

use alluvium_base::{BlobId, KeyHash, KeyspaceId, SegmentId};

use alluvium_base::checksum::{checksum32, checksum64};

pub use crate::table::fuzz::{directory, header as table_header, index, page, trailer};

use super::manifest;
use crate::blob::{LargeValue, Reference, frame};
use crate::chained::saved_bytes as chained;
use crate::chained::{Address, linked_of};
use crate::item::{Item, Link};
use crate::log::identity::Identities;
use crate::log::linked_record::LinkedBatch;
use crate::log::record::{Parsed, Record};
use crate::log::salvage::{Piece, Pieces, proven_durable};
use crate::log::{SegmentHeader, record};

/// An item.
pub fn item(bytes: &[u8]) {
    if let Some((item, len)) = Item::decode(bytes) {
        assert_eq!(Item::skip(bytes), Some(len));
        assert!(item.key.len() + item.value.len() <= len);
    }
}

/// A log record as given, and again with its checksum corrected, so that the fuzzer passes the check.
pub fn log_record(bytes: &[u8]) {
    let _ = record::decode(7, bytes, true);
    let mut sound = bytes.to_vec();
    if sound.len() > 4 {
        let checksum = checksum32(&sound[4..], 7);
        sound[..4].copy_from_slice(&checksum.to_le_bytes());
    }
    for check in [true, false] {
        if let Parsed::Record(record, len) = record::decode(7, &sound, check) {
            assert!(len <= sound.len());
            for start in [4096, 4097, usize::MAX / 2] {
                let _ = linked_of(SegmentId(3), &sound[..len], &record, start, |_| Ok(()));
            }
            if let Record::Batch(items) = record {
                items.for_each(drop);
            }
        }
    }
}

/// The header of a log segment.
pub fn log_header(bytes: &[u8]) {
    let _ = SegmentHeader::parse("fuzz", bytes);
}

/// A manifest, and the file that names it.
pub fn manifest(bytes: &[u8]) {
    let _ = manifest::parse("fuzz", bytes, None);
    let _ = manifest::parse_current(bytes);
    let _ = manifest::salvage(bytes);
}

/// The records left in a damaged log segment, and what its marks prove.
pub fn log_salvage(bytes: &[u8]) {
    let _ = proven_durable(SegmentId(3), 7, bytes, 0);
    let identities = Identities { seed: 5, manifest: 2, log_start: SegmentId(1), newest: SegmentId(2) };
    if let Some((id, seed)) = identities.find(bytes, &std::collections::BTreeMap::<SegmentId, ()>::new()) {
        let _ = proven_durable(id, seed, bytes, bytes.len() / 2);
    }
    let mut seen = 0;
    for piece in Pieces::new(7, bytes, 0) {
        match piece {
            Piece::Record { start, .. } => assert!(start < bytes.len()),
            Piece::Gap { bytes } => seen += bytes,
        }
    }
    assert!(seen <= bytes.len());
}

/// A file of device figures as given, and again with its checksum corrected.
pub fn device(bytes: &[u8]) {
    let _ = crate::device::parse("fuzz", bytes);
    let mut sound = bytes.to_vec();
    if sound.len() > 24 {
        let checksum = checksum64(&sound[24..], checksum64(&sound[..16], 0));
        sound[16..24].copy_from_slice(&checksum.to_le_bytes());
    }
    if let Ok(figures) = crate::device::parse("fuzz", &sound) {
        assert!(figures.validate().is_ok());
    }
}

/// The file that identifies a directory of young levels as given, and again with its checksum corrected.
pub fn young_directory(bytes: &[u8]) {
    let _ = crate::young_directory::parse(bytes);
    let mut sound = bytes.to_vec();
    if sound.len() >= 32 {
        let checksum = checksum64(&sound[..24], 0);
        sound[24..32].copy_from_slice(&checksum.to_le_bytes());
    }
    let _ = crate::young_directory::parse(&sound);
}

/// A file with a directory of chains as given, and again with its checksums corrected.
pub fn chain_directory(bytes: &[u8]) {
    for bytes in [bytes.to_vec(), chained::sealed(bytes)] {
        if let Some(directory) = chained::read_bytes(&bytes) {
            for high in [0, 1 << 40, u64::MAX] {
                let hash = KeyHash::from_halves(high, !high);
                let heads = directory.heads(hash);
                assert!(heads.iter().all(|head| *head < Address::end_of(directory.last_segment())));
            }
            directory.clear_before(Address::start_of(SegmentId(2)));
        }
    }
}

/// Sound files of this kind as seeds.
pub fn chain_directory_samples() -> Vec<Vec<u8>> {
    chained::samples()
}

/// A sound file of this kind as a seed.
pub fn young_directory_sample() -> Vec<u8> {
    crate::young_directory::sample()
}

/// The files `SHARD` and `BUILD` as given, and the value behind their header with a sound header.
pub fn build(bytes: &[u8]) {
    crate::build::fuzz(bytes);
}

/// Sound files of these kinds as seeds.
pub fn build_samples() -> Vec<Vec<u8>> {
    crate::build::fuzz_samples()
}

/// A sound file of device figures as a seed.
pub fn device_sample() -> Vec<u8> {
    crate::device::to_bytes(&crate::device::DeviceFigures::default())
}

/// The parts of a blob file, and the references to them.
pub fn blob(bytes: &[u8]) {
    let _ = frame::check_file_header(bytes, BlobId(7), "fuzz");
    let mut sound = bytes.to_vec();
    if sound.len() >= frame::RECORD_HEADER_BYTES {
        let checksum = checksum64(&sound[8..frame::RECORD_HEADER_BYTES], 5 ^ 40);
        sound[..8].copy_from_slice(&checksum.to_le_bytes());
    }
    for bytes in [bytes, &sound] {
        if let Some(header) = frame::RecordHeader::decode(bytes, 5, 40) {
            assert!(header.end(40) > header.body(40));
        }
        let _ = frame::chunk_content(bytes, 5, 64);
    }
    if let Some(large) = LargeValue::decode(bytes) {
        let encoded = large.encode();
        assert_eq!(LargeValue::decode(&encoded), Some(large));
    }
    if let Some(reference) = Reference::decode(bytes) {
        assert_eq!(Reference::decode(&reference.encode()), Some(reference));
        assert!(reference.stored_bytes() > reference.content_len());
    }
}

/// Sound parts as seeds.
pub fn blob_samples() -> Vec<Vec<u8>> {
    let header =
        frame::RecordHeader { keyspace: KeyspaceId(1), key_len: 3, value_len: 5000, is_aligned: false };
    let reference = Reference { file: BlobId(7), body: 64, key_len: 3, value_len: 5000 };
    vec![frame::encode_file_header(BlobId(7)).to_vec(), header.encode(5, 40).to_vec(), reference.encode()]
}

/// A sound manifest as a seed.
pub fn manifest_sample() -> Vec<u8> {
    manifest::sample()
}

/// A sound mark of a log, and a record after it, as a seed.
pub fn log_salvage_sample() -> Vec<u8> {
    let mut bytes = record::encode_mark(7, record::Mark { segments_back: 1, offset: 5000 });
    bytes.extend_from_slice(&log_record_sample());
    bytes
}

/// A sound log record as a seed.
pub fn log_record_sample() -> Vec<u8> {
    let mut bytes = Vec::new();
    let (one, other) = (Item::value(b"key", b"value"), Item::tombstone(b"gone"));
    let mut batch = LinkedBatch::default();
    batch.push(KeyspaceId(0), &one);
    let link = Link { pointer: 1 << 24, is_long: true, is_in_second: true };
    batch.push_linked(7, KeyspaceId(3), &other, link);
    batch.finish(7, &mut bytes);
    bytes
}
