//! Blob files as bytes, against the documentation and against a list of records.

use std::sync::Arc;

use alluvium_base::{BlobId, KeyspaceId};

use alluvium_base::checksum::checksum64;
use alluvium_io::{FaultPlan, SimulatedStorage, Storage};
use proptest::prelude::*;

use super::file::{BlobFile, GATHER_BYTES};
use super::frame::{CHUNK_BYTES, RecordHeader, check_file_header, chunk_content, encode_file_header};
use super::reader::RecordReader;
use super::walk::walk;
use crate::error::Error;
use crate::level::Reclaimer;

fn reclaimer() -> Arc<Reclaimer> {
    Reclaimer::new(Arc::new(SimulatedStorage::new(1)), Vec::new())
}

fn header(key: &[u8], value: &[u8]) -> RecordHeader {
    let (key_len, value_len) = (key.len() as u32, value.len() as u32);
    RecordHeader { keyspace: KeyspaceId(3), key_len, value_len, is_aligned: false }
}

fn content(storage: &dyn Storage, file: &BlobFile) -> Vec<u8> {
    let opened = storage.open(file.name(), alluvium_io::OpenMode::Read).unwrap();
    let mut bytes = vec![0; file.size() as usize];
    assert_eq!(opened.read_at(&mut bytes, 0).unwrap(), bytes.len());
    bytes
}

#[test]
fn the_example_in_the_documentation_is_true() {
    let documentation = include_str!("../../../../docs/format.md");
    let reclaimer = reclaimer();
    let file = BlobFile::create(&reclaimer, BlobId(7)).unwrap();
    let reference = file.append(header(b"apple", b"red"), [b"apple", b"red"], GATHER_BYTES).unwrap();
    file.sync().unwrap();
    let mut dump = String::new();
    for (number, line) in content(&**reclaimer.storage(), &file).chunks(16).enumerate() {
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let (front, back) = hex.split_at(hex.len().min(8));
        let line = format!("{:08x}  {}  {}", number * 16, front.join(" "), back.join(" "));
        dump += &format!("{}\n", line.trim_end());
    }
    assert!(documentation.contains(&dump), "docs/format.md lacks\n{dump}");
    let hex: Vec<String> = reference.encode().iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(documentation.contains(&format!("`{}`", hex.join(" "))), "docs/format.md lacks {hex:?}");
}

#[test]
fn after_a_failed_sync_none_succeeds() {
    let storage = SimulatedStorage::new(1);
    let reclaimer = Reclaimer::new(Arc::new(storage.clone()), Vec::new());
    let file = BlobFile::create(&reclaimer, BlobId(7)).unwrap();
    file.append(header(b"apple", b"red"), [b"apple", b"red"], GATHER_BYTES).unwrap();
    storage.set_faults(FaultPlan { fail_sync: Some(0), ..FaultPlan::default() });
    assert!(file.sync().is_err());
    storage.set_faults(FaultPlan::default());
    assert!(matches!(file.sync(), Err(Error::Failed { .. })));
    file.append(header(b"pear", b"green"), [b"pear", b"green"], GATHER_BYTES).unwrap();
    assert!(matches!(file.sync(), Err(Error::Failed { .. })));
    assert_eq!(file.synced(), 0);
}

#[test]
fn a_failed_write_leaves_no_gap_between_records() {
    let quota = FaultPlan { quota_bytes: Some(0), ..FaultPlan::default() };
    let fail_write = |number| FaultPlan { fail_write: Some(number), ..FaultPlan::default() };
    let faults = [(true, fail_write(0)), (true, fail_write(1)), (true, quota.clone()), (false, quota)];
    for (is_aligned, faults) in faults {
        let storage = SimulatedStorage::new(1);
        let reclaimer = Reclaimer::new(Arc::new(storage.clone()), Vec::new());
        let file = BlobFile::create(&reclaimer, BlobId(7)).unwrap();
        file.append(header(b"apple", b"red"), [b"apple", b"red"], GATHER_BYTES).unwrap();
        storage.set_faults(faults);
        if is_aligned {
            assert!(file.reserve(RecordHeader { is_aligned, ..header(b"pear", b"green") }).is_err());
        } else {
            assert!(file.sync().is_err());
        }
        storage.set_faults(FaultPlan::default());
        // Another thread's sync may come before the failure is noted.
        file.sync().unwrap();
        let file_bytes = || storage.contents()[file.name()].len() as u64;
        assert!(file.synced() <= file_bytes());
        let reference = file.append(header(b"plum", b"blue"), [b"plum", b"blue"], GATHER_BYTES).unwrap();
        file.sync().unwrap();
        assert_eq!(file.synced(), file.size());
        assert!(file_bytes() >= file.size());
        let mut records = 0;
        let walked = walk(&file, |_, _| {
            records += 1;
            Ok(())
        });
        assert_eq!(walked.unwrap(), file.size());
        assert_eq!(records, 2);
        let record = RecordReader::new(file.clone(), reference).read_all().unwrap();
        assert_eq!(record, (b"plum".to_vec(), b"blue".to_vec()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Compares with the list of what was appended.
    #[test]
    fn records_read_back_and_are_walked_in_order(
        lengths in prop::collection::vec((0usize..40, 1usize..200_000, any::<bool>(), any::<bool>()), 1..12),
    ) {
        let reclaimer = reclaimer();
        let file = BlobFile::create(&reclaimer, BlobId(9)).unwrap();
        let mut appended = Vec::new();
        for (number, (key_len, value_len, is_aligned, syncs)) in lengths.into_iter().enumerate() {
            let (key, value) = (vec![number as u8; key_len], vec![!(number as u8); value_len]);
            let reference = if is_aligned {
                // Reserved and never written, as by an abandoned writer.
                file.reserve(RecordHeader { is_aligned, ..header(&key, &value) }).unwrap()
            } else {
                file.append(header(&key, &value), [&key, &value], GATHER_BYTES).unwrap()
            };
            if syncs {
                file.sync().unwrap();
            }
            appended.push((reference, (!is_aligned).then_some((key, value))));
        }
        let check = |file: &Arc<BlobFile>| {
            let mut walked = Vec::new();
            let end = walk(file, |_, reference| {
                walked.push(reference);
                Ok(())
            });
            assert_eq!(end.unwrap(), file.size());
            assert_eq!(walked, appended.iter().map(|(reference, _)| *reference).collect::<Vec<_>>());
            for (reference, expected) in &appended {
                let found = RecordReader::new(file.clone(), *reference).read_all();
                assert_eq!(found.ok().as_ref(), expected.as_ref());
                let mut reader = RecordReader::new(file.clone(), *reference).in_pieces(1);
                if let Some((key, _)) = expected {
                    assert_eq!(&reader.read_key().unwrap(), key);
                }
            }
        };
        check(&file);
        file.sync().unwrap();
        let size = file.size();
        let reopened = BlobFile::open(&reclaimer, BlobId(9), Some(size)).unwrap();
        check(&reopened);
        assert!(BlobFile::open(&reclaimer, BlobId(9), Some(size + 8192)).is_err());
    }
}

/// An operation on a blob file whose disk is full at times.
#[derive(Clone, Copy, Debug)]
enum Step {
    Append {
        value_len: usize,
    },
    /// An aligned record, whose body is written or not.
    Reserve {
        value_len: usize,
        is_written: bool,
    },
    Sync,
    /// From now on this much room is left.
    Quota {
        bytes: u64,
    },
    NoQuota,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let len = || prop_oneof![1usize..9_000, 1usize..200_000];
    let step = prop_oneof![
        8 => len().prop_map(|value_len| Step::Append { value_len }),
        3 => (len(), any::<bool>())
            .prop_map(|(value_len, is_written)| Step::Reserve { value_len, is_written }),
        4 => Just(Step::Sync),
        3 => (0u64..300_000).prop_map(|bytes| Step::Quota { bytes }),
        2 => Just(Step::NoQuota),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]
    /// Compares with the list of records before a sync that succeeded.
    #[test]
    fn what_was_synced_beside_a_full_disk_is_there_after_a_kill_or_a_power_cut(
        steps in steps(), seed: u64, loses_power: bool,
    ) {
        let storage = SimulatedStorage::new(seed);
        let reclaimer = Reclaimer::new(Arc::new(storage.clone()), Vec::new());
        let file = BlobFile::create(&reclaimer, BlobId(7)).unwrap();
        storage.sync_directory().unwrap();
        let (mut appended, mut durable) = (Vec::new(), 0);
        for (number, step) in steps.into_iter().enumerate() {
            let key = vec![number as u8; number % 5];
            let value_of = |len: usize| vec![!(number as u8); len];
            match step {
                Step::Append { value_len } => {
                    let value = value_of(value_len);
                    let outcome = file.append(header(&key, &value), [&key, &value], GATHER_BYTES);
                    appended.extend(outcome.ok().map(|reference| (reference, key, value)));
                }
                Step::Reserve { value_len, is_written } => {
                    let value = value_of(value_len);
                    let header = RecordHeader { is_aligned: true, ..header(&key, &value) };
                    let Ok(reference) = file.reserve(header) else { continue };
                    let mut body = alluvium_io::AlignedBuffer::new();
                    let mut chunks = super::chunk_encoder::ChunkEncoder::new(header.content_len());
                    for part in [&key, &value] {
                        chunks.push(part, &mut body, reference.body, file.seed());
                    }
                    body.pad_to(super::frame::BLOCK_BYTES as usize);
                    if is_written && file.write_body(&body, reference.body).is_ok() {
                        appended.push((reference, key, value));
                    }
                }
                Step::Sync => {
                    if file.sync().is_ok() {
                        durable = appended.len();
                    }
                }
                Step::Quota { bytes } => storage.set_quota(Some(storage.used_bytes() + bytes)),
                Step::NoQuota => storage.set_quota(None),
            }
        }
        drop(file);
        if loses_power {
            storage.crash();
        }
        let reclaimer = Reclaimer::new(Arc::new(storage.reopen()), Vec::new());
        let file = BlobFile::open(&reclaimer, BlobId(7), None).unwrap();
        let mut walked = Vec::new();
        if file.check_header().is_ok() {
            walk(&file, |_, reference| {
                walked.push(reference);
                Ok(())
            }).unwrap();
        }
        for (reference, key, value) in &appended[..durable] {
            prop_assert!(walked.contains(reference), "{reference:?} is not reached, {walked:?} are");
            let record = RecordReader::new(file.clone(), *reference).read_all().unwrap();
            prop_assert!(record == (key.clone(), value.clone()));
        }
    }
}

#[test]
fn every_flipped_byte_of_a_record_is_noticed() {
    let reclaimer = reclaimer();
    let file = BlobFile::create(&reclaimer, BlobId(7)).unwrap();
    let reference = file.append(header(b"apple", &[5; 90]), [b"apple", &[5; 90]], GATHER_BYTES).unwrap();
    file.sync().unwrap();
    let bytes = content(&**reclaimer.storage(), &file);
    let offset = super::frame::FILE_HEADER_BYTES;
    for at in offset..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x20;
        let sound = RecordHeader::decode(&damaged[offset..], file.seed(), offset as u64).is_some()
            && chunk_content(&damaged[reference.body as usize..], file.seed(), reference.body).is_some();
        assert!(!sound, "byte {at}");
    }
}

#[test]
fn a_newer_version_is_told_from_damage_to_its_number() {
    let mut header = encode_file_header(BlobId(7));
    header[8..10].copy_from_slice(&29_953_u16.to_le_bytes());
    assert!(matches!(check_file_header(&header, BlobId(7), "blob"), Err(Error::Corruption(_))));
    let checksum = checksum64(&header[..32], u64::from_le_bytes(*b"ALLUVIUM"));
    header[32..].copy_from_slice(&checksum.to_le_bytes());
    assert!(matches!(
        check_file_header(&header, BlobId(7), "blob"),
        Err(Error::NewerFormat { found: 29_953, supported: 1, .. })
    ));
}

/// Long records are read ahead: whole in the file, partly in memory, and with a damaged chunk.
#[test]
fn long_records_are_read_ahead() {
    let storage = SimulatedStorage::new(1);
    let reclaimer = Reclaimer::new(Arc::new(storage.clone()), Vec::new());
    let file = BlobFile::create(&reclaimer, BlobId(7)).unwrap();
    for len in [1, 300_000, 600_000, 1 << 20, 3_000_000] {
        let value: Vec<u8> = (0..len).map(|at: u32| ((at / 7) ^ at) as u8).collect();
        let header = header(b"key", &value);
        // As large a buffer as the record: its end stays in memory until the sync.
        let reference = file.append(header, [b"key", &value], 2 * value.len()).unwrap();
        let read = || RecordReader::new(file.clone(), reference).read_all();
        assert_eq!(read().unwrap(), (b"key".to_vec(), value.clone()));
        file.sync().unwrap();
        assert_eq!(read().unwrap(), (b"key".to_vec(), value.clone()));
        let few = RecordReader::new(file.clone(), reference).in_pieces(3).read_all();
        assert_eq!(few.unwrap(), (b"key".to_vec(), value));
        for chunk in (reference.body..reference.body_end()).step_by(CHUNK_BYTES) {
            let opened = storage.open(file.name(), alluvium_io::OpenMode::Write).unwrap();
            let mut byte = [0];
            opened.read_at(&mut byte, chunk + 8).unwrap();
            opened.write_at(&[!byte[0]], chunk + 8).unwrap();
            let damage = read().unwrap_err();
            assert!(matches!(&damage, Error::Corruption(damage) if damage.offset == chunk), "{damage:?}");
            opened.write_at(&byte, chunk + 8).unwrap();
        }
    }
}
