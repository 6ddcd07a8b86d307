//! Large items: stored out of line, streamed, overwritten, collected, and damaged.

use std::fs;
use std::io::Read;
use std::path::Path;

use alluvium::{
    Batch, Db, Durability, Error, KEY_BYTES_MAX, Keyspace, Metadata, ShortOrLong, Update, VALUE_BYTES_MAX,
};

fn open(path: &Path) -> Db {
    Db::builder(path).durability(Durability::Buffered).open().unwrap()
}

/// Bytes that differ by position and by seed.
fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| next()).collect()
}

fn read_stream(keyspace: &Keyspace, key: &[u8]) -> Option<Vec<u8>> {
    let mut reader = keyspace.get_reader(key).unwrap()?;
    let mut value = Vec::new();
    reader.read_to_end(&mut value).unwrap();
    assert_eq!(reader.len(), value.len() as u64);
    Some(value)
}

const LENGTHS: [usize; 12] =
    [0, 100, 1_990, 2_030, 2_040, 65_500, 65_528, 65_529, 131_056, (1 << 20) - 3, (1 << 20) + 1, 5_000_001];

#[test]
fn items_of_all_sizes_come_back_at_every_stage() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let items = db.keyspace("items").unwrap();
    let keys: Vec<Vec<u8>> = [1, 30, 1_024, 1_025, KEY_BYTES_MAX].iter().map(|&len| bytes(9, len)).collect();
    let key = |number: usize| [&keys[number % keys.len()][..], &number.to_le_bytes()].concat();
    let key = |number: usize| key(number)[..].iter().copied().rev().take(KEY_BYTES_MAX).collect::<Vec<_>>();
    for (number, &len) in LENGTHS.iter().enumerate() {
        items.insert(key(number), bytes(number as u64, len)).unwrap();
        let stream = bytes(100 + number as u64, len);
        items.insert_reader(key(100 + number), len, &stream[..], Metadata::default()).unwrap();
    }
    let check = |items: &Keyspace| {
        for number in (0..LENGTHS.len()).flat_map(|number| [number, 100 + number]) {
            let expected = Some(bytes(number as u64, LENGTHS[number % 100]));
            assert_eq!(items.get(key(number)).unwrap(), expected, "item {number}");
            assert_eq!(read_stream(items, &key(number)), expected, "item {number}");
            assert!(items.contains_key(key(number)).unwrap());
        }
        let all = (0..LENGTHS.len()).map(key).collect::<Vec<_>>();
        let found = items.multi_get(&all).unwrap();
        for (value, short) in found.iter().zip(items.multi_get_short(&all, 10_000).unwrap()) {
            match (value, short) {
                (Some(value), Some(ShortOrLong::Short((short, _)))) => assert_eq!(&short, value),
                (Some(value), Some(ShortOrLong::Long(len))) => {
                    assert!(len > 10_000);
                    assert_eq!(len, value.len());
                }
                (value, short) => assert!(value.is_none() && short.is_none()),
            }
        }
        assert!(found.iter().zip(LENGTHS).all(|(value, len)| value.as_ref().unwrap().len() == len));
        let mut lens = Vec::new();
        items.get_each(&all, 4, |_, value| lens.push(value.unwrap().len())).unwrap();
        lens.sort_unstable();
        let mut expected = LENGTHS.to_vec();
        expected.sort_unstable();
        assert_eq!(lens, expected);
        assert_eq!(items.iter().map(Result::unwrap).count(), 2 * LENGTHS.len());
        assert!(items.iter().map(Result::unwrap).all(|(found, _)| items.contains_key(found).unwrap()));
        assert_eq!(items.get(key(77)).unwrap(), None);
    };
    check(&items);
    db.flush().unwrap();
    check(&items);
    db.compact().unwrap();
    check(&items);
    assert_eq!(db.verify().unwrap().problems, Vec::<String>::new());
    drop(items);
    db.close().unwrap();
    let db = open(directory.path());
    check(&db.keyspace("items").unwrap());
    let copy = tempfile::tempdir().unwrap();
    db.checkpoint(copy.path().join("copy")).unwrap();
    let copied = open(&copy.path().join("copy"));
    check(&copied.keyspace("items").unwrap());
    assert_eq!(copied.verify().unwrap().problems, Vec::<String>::new());
}

#[test]
fn the_largest_key_and_value_are_stored() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let items = db.keyspace("items").unwrap();
    let (key, value) = (bytes(1, KEY_BYTES_MAX), bytes(2, VALUE_BYTES_MAX));
    items.insert(&key, &value).unwrap();
    assert!(items.get(&key).unwrap().unwrap() == value);
    let traffic = db.stats().traffic;
    assert!(traffic.blob_bytes_written < traffic.bytes_put + traffic.bytes_put / 100);
    items.remove(&key).unwrap();
    assert_eq!(items.get(&key).unwrap(), None);
    db.compact().unwrap();
    assert_eq!(db.stats().blobs.files, 0);
}

#[test]
fn updates_batches_transactions_and_metadata_work_on_large_items() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let items = db.keyspace("items").unwrap();
    let long_key = bytes(5, 3_000);
    items.insert_with(&long_key, bytes(1, 9_000), Metadata { flags: 7, expires_at_ms: None }).unwrap();
    let before = items.update(&long_key, |value| Update::Insert([value.unwrap(), b"more"].concat())).unwrap();
    assert_eq!(before, Some(bytes(1, 9_000)));
    let now = [bytes(1, 9_000), b"more".to_vec()].concat();
    assert!(!items.compare_and_swap(&long_key, Some(b"other"), None).unwrap());
    assert!(items.compare_and_swap(&long_key, Some(&now), Some(b"small")).unwrap());
    let mut batch: Batch = db.batch();
    for number in 0..20u32 {
        batch.insert(&items, number.to_le_bytes(), bytes(number.into(), 50_000));
    }
    batch.remove(&items, long_key.clone());
    batch.commit().unwrap();
    assert_eq!(items.get(&long_key).unwrap(), None);
    db.transaction(|transaction| {
        let value = transaction.get(&items, 3u32.to_le_bytes())?.unwrap();
        transaction.insert(&items, b"copy", value);
        Ok(())
    })
    .unwrap();
    assert_eq!(items.get(b"copy").unwrap(), Some(bytes(3, 50_000)));
    let metadata = Metadata { flags: 9, expires_at_ms: Some(u64::MAX) };
    items.insert_with(b"marked", bytes(8, 5_000), metadata).unwrap();
    db.compact().unwrap();
    assert_eq!(items.get_with_metadata(b"marked").unwrap(), Some((bytes(8, 5_000), metadata)));
}

#[test]
fn a_snapshot_keeps_large_items_that_are_overwritten_and_collected() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path())
        .durability(Durability::Buffered)
        .blob_sizes(1 << 20, 1 << 20, 0)
        .open()
        .unwrap();
    let items = db.keyspace("items").unwrap();
    for number in 0..100u32 {
        items.insert(number.to_le_bytes(), bytes(number.into(), 40_000)).unwrap();
    }
    let snapshot = db.snapshot().unwrap();
    for number in 0..100u32 {
        items.insert(number.to_le_bytes(), bytes(1_000 + u64::from(number), 40_000)).unwrap();
    }
    db.compact().unwrap();
    let kept = snapshot.keyspace("items").unwrap();
    for number in 0..100u32 {
        assert_eq!(kept.get(number.to_le_bytes()).unwrap(), Some(bytes(number.into(), 40_000)));
    }
    assert_eq!(kept.iter().map(Result::unwrap).count(), 100);
    assert!(db.stats().blobs.bytes < 100 * 40_000 * 5 / 4);
    drop((kept, snapshot));
    db.wait_idle().unwrap();
    assert_eq!(db.verify().unwrap().problems, Vec::<String>::new());
}

#[test]
fn garbage_stays_within_its_bound_under_overwrites() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::builder(directory.path())
        .durability(Durability::Buffered)
        .background(false)
        .blob_sizes(1 << 20, 1 << 20, 64 << 10)
        .open()
        .unwrap();
    let items = db.keyspace("items").unwrap();
    let len = |number: u64| 2_500 + (number * 7_919 % 60_000) as usize;
    let mut live = 0;
    for number in 0..600u64 {
        items.insert(number.to_le_bytes(), bytes(number, len(number))).unwrap();
        live += len(number) as u64;
    }
    let mut most = 0.0f64;
    for round in 0..1_800u64 {
        let number = round * 2_654_435_761 % 600;
        items.insert(number.to_le_bytes(), bytes(round, len(number))).unwrap();
        while db.run_background_job().unwrap() {}
        most = most.max(db.stats().blobs.bytes as f64 / live as f64);
    }
    assert!(most < 1.25, "{most}");
    let files = fs::read_dir(directory.path()).unwrap().map(Result::unwrap);
    let on_disk: u64 = files
        .filter(|file| file.file_name().to_string_lossy().starts_with("blob-"))
        .map(|file| file.metadata().unwrap().len())
        .sum();
    assert!(on_disk < live * 5 / 4, "{on_disk} of {live}");
    for round in 1_200..1_800u64 {
        let number = round * 2_654_435_761 % 600;
        assert!(items.get(number.to_le_bytes()).unwrap().is_some());
    }
    assert_eq!(db.verify().unwrap().problems, Vec::<String>::new());
}

#[test]
fn a_stream_that_ends_early_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let items = db.keyspace("items").unwrap();
    items.insert(b"key", b"before").unwrap();
    for len in [10, 100_000, 3_000_000] {
        let short = bytes(1, len - 1);
        let error = items.insert_reader(b"key", len, &short[..], Metadata::default()).unwrap_err();
        assert!(
            matches!(&error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::UnexpectedEof)
        );
    }
    assert_eq!(items.get(b"key").unwrap().as_deref(), Some(&b"before"[..]));
    db.compact().unwrap();
    assert_eq!(db.verify().unwrap().problems, Vec::<String>::new());
}

#[test]
fn a_missing_truncated_or_damaged_blob_file_is_an_error_and_never_wrong_data() {
    let directory = tempfile::tempdir().unwrap();
    let db = open(directory.path());
    let items = db.keyspace("items").unwrap();
    let len = |number: u64| 3_000 + number as usize * 2_000;
    for number in 0..60u64 {
        items.insert(number.to_le_bytes(), bytes(number, len(number))).unwrap();
    }
    db.flush().unwrap();
    drop(items);
    db.close().unwrap();
    drop(open(directory.path()));
    let entries = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
    let blob = entries.into_iter().find(|path| path.to_string_lossy().contains("blob-")).unwrap();
    let name = blob.file_name().unwrap().to_string_lossy().into_owned();
    let content = fs::read(&blob).unwrap();

    fs::remove_file(&blob).unwrap();
    let error = Db::open(directory.path()).unwrap_err();
    assert!(matches!(&error, Error::MissingFile { file } if *file == name), "{error}");

    fs::write(&blob, &content[..content.len() / 2]).unwrap();
    let error = Db::open(directory.path()).unwrap_err();
    assert!(matches!(&error, Error::Corruption(corruption) if corruption.file == name), "{error}");

    for at in (0..content.len()).step_by(50_021) {
        let mut damaged = content.clone();
        damaged[at] ^= 8;
        fs::write(&blob, damaged).unwrap();
        let db = open(directory.path());
        let items = db.keyspace("items").unwrap();
        let mut noticed = 0;
        for number in 0..60u64 {
            match items.get(number.to_le_bytes()) {
                Ok(value) => assert_eq!(value, Some(bytes(number, len(number))), "byte {at}"),
                Err(Error::Corruption(corruption)) => {
                    assert_eq!(corruption.file, name);
                    noticed += 1;
                    let mut reader = match items.get_reader(number.to_le_bytes()) {
                        Ok(reader) => reader.unwrap(),
                        Err(error) => {
                            assert!(matches!(error, Error::Corruption(_)), "{error}");
                            continue;
                        }
                    };
                    let error = reader.read_to_end(&mut Vec::new()).unwrap_err();
                    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
                    assert!(matches!(inner, Some(Error::Corruption(_))), "{error}");
                }
                Err(error) => panic!("{error}"),
            }
        }
        let problems = db.verify().unwrap().problems;
        assert!(!problems.is_empty() && noticed <= 60, "byte {at}: {problems:?}");
    }
    fs::write(&blob, content).unwrap();
    assert_eq!(open(directory.path()).verify().unwrap().problems, Vec::<String>::new());
}
