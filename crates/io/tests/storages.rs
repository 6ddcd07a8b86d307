//! Every storage behaves like a map of byte vectors, whichever way it accesses the device.

use std::io::ErrorKind;
use std::sync::Arc;

use alluvium_io::{
    AlignedBuffer, File, FileStorage, IoOptions, OpenMode, Operation, ReadRequest, ReadWait,
    SimulatedStorage, Storage, Usage,
};
use proptest::prelude::*;
use tempfile::TempDir;

/// A real directory with every combination of mechanisms, and a simulated one.
fn all_storages() -> Vec<(Option<TempDir>, Box<dyn Storage>)> {
    let usages = [Usage::Auto, Usage::Never];
    let waits = [ReadWait::Sleep, ReadWait::Poll, ReadWait::Adapt];
    let real = (0..12).map(|case| {
        let (direct, uring, wait) = (usages[case & 1], usages[case >> 1 & 1], waits[case >> 2]);
        let (directory, storage) = storage(IoOptions { direct, uring, ..IoOptions::default() });
        storage.set_read_wait(wait);
        (Some(directory), Box::new(storage) as Box<dyn Storage>)
    });
    real.chain([(None, Box::new(SimulatedStorage::new(1)) as Box<dyn Storage>)]).collect()
}

fn storage(options: IoOptions) -> (TempDir, FileStorage) {
    let directory = tempfile::tempdir().unwrap();
    let storage = FileStorage::open(directory.path(), options).unwrap();
    (directory, storage)
}

#[derive(Clone, Debug)]
enum Step {
    Write { offset: usize, len: usize, shift: usize },
    Read { offset: usize, len: usize, shift: usize },
    SetLen(usize),
    Punch { offset: usize, len: usize },
    Sync,
}

/// Half of the positions are aligned, like the engine's.
fn position() -> impl Strategy<Value = usize> {
    prop_oneof![
        0usize..40_000,
        (0usize..10).prop_map(|page| page * 4096),
        (0usize..80).prop_map(|block| block * 512)
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let shift = prop_oneof![Just(0usize), Just(512usize), 0usize..600];
    let step = prop_oneof![
        4 => (position(), position(), shift.clone())
            .prop_map(|(offset, len, shift)| Step::Write { offset, len, shift }),
        4 => (position(), position(), shift).prop_map(|(offset, len, shift)| Step::Read { offset, len, shift }),
        1 => position().prop_map(Step::SetLen),
        1 => (position(), position()).prop_map(|(offset, len)| Step::Punch { offset, len }),
        1 => Just(Step::Sync),
    ];
    prop::collection::vec(step, 1..25)
}

fn run(file: &dyn File, steps: &[Step]) -> Result<Vec<u8>, TestCaseError> {
    let mut model: Vec<u8> = Vec::new();
    for (turn, step) in steps.iter().enumerate() {
        match *step {
            Step::Write { offset, len, shift } => {
                let bytes: Vec<u8> = (0..len).map(|i| (i * 7 + turn * 31 + i / 251) as u8 | 1).collect();
                let mut memory = AlignedBuffer::with_len(len + shift);
                memory[shift..].copy_from_slice(&bytes);
                match turn % 3 {
                    0 => file.write_cached(&memory[shift..], offset as u64).unwrap(),
                    _ => file.write_at(&memory[shift..], offset as u64).unwrap(),
                }
                if len > 0 {
                    model.resize(model.len().max(offset + len), 0);
                    model[offset..offset + len].copy_from_slice(&bytes);
                }
            }
            Step::Read { offset, len, shift } => {
                let mut memory = AlignedBuffer::with_len(len + shift);
                let got = file.read_at(&mut memory[shift..], offset as u64).unwrap();
                let expected = &model[offset.min(model.len())..(offset + len).min(model.len())];
                prop_assert_eq!(got, expected.len());
                prop_assert_eq!(&memory[shift..shift + got], expected);
            }
            Step::SetLen(len) => {
                file.set_len(len as u64).unwrap();
                model.resize(len, 0);
            }
            Step::Punch { offset, len } => {
                file.punch_hole(offset as u64, len as u64).unwrap();
                let end = (offset + len).min(model.len());
                model[offset.min(end)..end].fill(0);
            }
            Step::Sync => file.sync().unwrap(),
        }
        prop_assert_eq!(file.len().unwrap(), model.len() as u64);
    }
    Ok(model)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn a_file_is_a_byte_vector(steps in steps()) {
        for (_directory, storage) in all_storages() {
            let file = storage.open("file", OpenMode::Create).unwrap();
            let model = run(&*file, &steps)?;
            let again = storage.open("file", OpenMode::Read).unwrap();
            let mut content = vec![0; model.len() + 10];
            prop_assert_eq!(again.read_at(&mut content, 0).unwrap(), model.len());
            prop_assert_eq!(&content[..model.len()], &*model);
        }
    }

    #[test]
    fn batches_and_pipelines_read_what_single_reads_do(
        reads in prop::collection::vec((position(), position(), prop_oneof![Just(0usize), 1usize..600]), 0..300),
        len in 0usize..50_000,
    ) {
        let content: Vec<u8> = (0..len).map(|i| (i / 256 + i) as u8).collect();
        for (_directory, storage) in all_storages() {
            let file = storage.open("file", OpenMode::Create).unwrap();
            file.write_at(&content, 0).unwrap();
            let reads: Vec<_> = reads.iter().map(|&(offset, len, shift)| (offset, len % 9000, shift)).collect();
            let expected = |offset: usize, wanted: usize| &content[offset.min(len)..(offset + wanted).min(len)];

            let lengths = reads.iter().map(|&(_, len, shift)| len + shift);
            let mut memories: Vec<_> = lengths.map(AlignedBuffer::with_len).collect();
            let mut requests: Vec<_> = memories
                .iter_mut()
                .zip(&reads)
                .map(|(memory, &(offset, _, shift))| ReadRequest {
                    file: &*file,
                    offset: offset as u64,
                    buffer: &mut memory[shift..],
                    result: Ok(usize::MAX),
                })
                .collect();
            storage.read_batch(&mut requests);
            for (request, &(offset, len, _)) in requests.iter().zip(&reads) {
                let got = *request.result.as_ref().unwrap();
                prop_assert_eq!(&request.buffer[..got], expected(offset, len));
            }

            let mut pipeline = storage.pipeline(16);
            let mut seen = vec![false; reads.len()];
            let mut check = |done: alluvium_io::Completed| {
                let (offset, len, _) = reads[done.token as usize];
                assert_eq!(&done.buffer[..done.result.unwrap()], expected(offset, len));
                assert!(!std::mem::replace(&mut seen[done.token as usize], true), "completed twice");
            };
            for (token, &(offset, len, _)) in reads.iter().enumerate() {
                pipeline.submit(Operation::Read, &*file, offset as u64, AlignedBuffer::with_len(len), token as u64);
                if token % 3 == 0 {
                    pipeline.poll().map(&mut check);
                }
            }
            while let Some(done) = pipeline.wait() {
                check(done);
            }
            prop_assert_eq!(pipeline.pending(), 0);
            prop_assert!(seen.iter().all(|&seen| seen));
        }
    }

    /// Each write has its own pages, as the contract of a pipeline requires.
    #[test]
    fn what_a_pipeline_writes_is_there_when_it_completes(
        writes in prop::collection::vec((0usize..3, prop_oneof![Just(4096usize), Just(200_000), 0usize..9000]), 0..40),
    ) {
        for (_directory, storage) in all_storages() {
            let file = storage.open("file", OpenMode::Create).unwrap();
            let mut pipeline = storage.pipeline(3);
            let mut model: Vec<u8> = Vec::new();
            for (token, &(pages_before, len)) in writes.iter().enumerate() {
                let offset = model.len().next_multiple_of(4096) + pages_before * 4096;
                let bytes: Vec<u8> = (0..len).map(|i| (i / 256 + i + token) as u8 | 1).collect();
                pipeline.submit(
                    Operation::Write,
                    &*file,
                    offset as u64,
                    AlignedBuffer::from(&bytes[..]),
                    token as u64,
                );
                if len > 0 {
                    model.resize(offset, 0);
                    model.extend_from_slice(&bytes);
                }
            }
            let mut completed = 0;
            while let Some(done) = pipeline.wait() {
                assert_eq!(done.result.unwrap(), writes[done.token as usize].1);
                completed += 1;
            }
            prop_assert_eq!(completed, writes.len());
            let mut content = vec![0; model.len() + 10];
            prop_assert_eq!(file.read_at(&mut content, 0).unwrap(), model.len());
            prop_assert_eq!(&content[..model.len()], &*model);
        }
    }
}

#[test]
fn names_are_created_renamed_removed_and_listed() {
    for (_directory, storage) in all_storages() {
        check_names(&*storage);
    }
}

fn check_names(storage: &dyn Storage) {
    let kind = |result: std::io::Result<Arc<dyn File>>| result.unwrap_err().kind();
    assert_eq!(kind(storage.open("a", OpenMode::Read)), ErrorKind::NotFound);
    assert_eq!(kind(storage.open("a", OpenMode::Write)), ErrorKind::NotFound);
    let file = storage.open("a", OpenMode::Create).unwrap();
    assert_eq!(file.name(), "a");
    assert_eq!(kind(storage.open("a", OpenMode::Create)), ErrorKind::AlreadyExists);
    storage.open("b", OpenMode::Create).unwrap().write_at(b"old", 0).unwrap();
    storage.rename("a", "b").unwrap();
    assert_eq!(storage.list().unwrap(), ["b"]);
    storage.sync_directory().unwrap();
    storage.remove("b").unwrap();
    assert!(storage.list().unwrap().is_empty());
    file.write_at(b"still here", 0).unwrap();
    assert_eq!(file.len().unwrap(), 10);
    assert_eq!(storage.remove("b").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(storage.rename("b", "c").unwrap_err().kind(), ErrorKind::NotFound);
    for name in ["../a", "", "a/b"] {
        assert_eq!(kind(storage.open(name, OpenMode::Create)), ErrorKind::InvalidInput);
        assert_eq!(storage.remove(name).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(storage.rename("a", name).unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}

#[test]
fn a_directory_and_its_files_tell_what_is_available() {
    let (_directory, storage) = storage(IoOptions::default());
    let available = || storage.available_bytes().unwrap().unwrap();
    let file = storage.open("a", OpenMode::Create).unwrap();
    let before = available();
    assert!(before > 0);
    file.check_available(0, 1).unwrap();
    assert_eq!(file.check_available(0, u64::MAX).unwrap_err().kind(), ErrorKind::StorageFull);
    drop(file);
    // Also queried through a file for reading. Other programs write to the device meanwhile.
    let file = storage.open("a", OpenMode::Read).unwrap();
    let seen: Vec<u64> =
        (0..100).flat_map(|_| [available(), file.available_bytes().unwrap().unwrap()]).collect();
    assert!(seen.iter().all(|&bytes| bytes > before / 2), "{before} {seen:?}");
}

#[test]
fn files_that_are_open_follow_a_change_of_waiting() {
    let (_directory, storage) = storage(IoOptions::default());
    let file = storage.open("a", OpenMode::Create).unwrap();
    file.write_at(&[7; 5000], 0).unwrap();
    let asleep = storage.describe();
    for wait in [ReadWait::Poll, ReadWait::Sleep, ReadWait::Adapt, ReadWait::Poll] {
        storage.set_read_wait(wait);
        let suffix = match wait {
            ReadWait::Poll if asleep.contains("io_uring") => ", polled",
            ReadWait::Adapt if asleep.contains("io_uring") => ", polled at times",
            _ => "",
        };
        assert_eq!(storage.describe(), asleep.clone() + suffix);
        let mut bytes = [0; 4500];
        assert_eq!(file.read_at(&mut bytes, 300).unwrap(), bytes.len());
        assert_eq!(bytes, [7; 4500]);
    }
}

#[test]
fn threads_that_poll_for_some_of_their_reads_read_what_is_there() {
    const PAGES: usize = 256;
    let (_directory, storage) = storage(IoOptions::default());
    storage.set_read_wait(ReadWait::Adapt);
    let mut bytes = AlignedBuffer::with_len(PAGES * 4096);
    bytes.chunks_mut(4096).enumerate().for_each(|(page, bytes)| bytes.fill(page as u8));
    let file = storage.open("a", OpenMode::Create).unwrap();
    file.write_at(&bytes, 0).unwrap();
    file.sync().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (file, bytes) = (&file, &bytes);
            scope.spawn(move || {
                let mut buffer = AlignedBuffer::with_len(4096);
                // Enough for several windows on a disk. Every third read is not aligned, some reach the end.
                for number in 0..1500 {
                    let offset = (number * 37 + thread * 61) % PAGES * 4096 + number % 3 / 2 * 100;
                    let got = file.read_at(&mut buffer, offset as u64).unwrap();
                    let end = bytes.len().min(offset + 4096);
                    assert_eq!(buffer[..got], bytes[offset..end], "{offset}");
                }
            });
        }
    });
}

#[test]
fn a_handle_for_reading_does_not_write_and_the_error_names_the_place() {
    for wait in [ReadWait::Sleep, ReadWait::Poll, ReadWait::Adapt] {
        let (_directory, storage) = storage(IoOptions::default());
        storage.set_read_wait(wait);
        storage.open("a", OpenMode::Create).unwrap();
        let error = storage.open("a", OpenMode::Read).unwrap().write_at(b"x", 17).unwrap_err();
        assert!(error.to_string().starts_with("cannot write a at offset 17: "), "{error}");
        let error =
            storage.open("a", OpenMode::Read).unwrap().read_at(&mut [0; 8], u64::MAX - 3).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().starts_with("cannot read a at offset"), "{error}");
    }
}

#[test]
fn the_directory_lock_names_its_holder_and_ends_with_its_guard() {
    let (_directory, storage) = storage(IoOptions::default());
    let guard = storage.lock("LOCK").unwrap();
    let error = storage.lock("LOCK").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WouldBlock);
    assert!(error.to_string().contains(&format!("this process ({})", std::process::id())), "{error}");
    drop(guard);
    storage.lock("LOCK").unwrap();
}

#[test]
fn holes_give_space_back() {
    let (_directory, storage) = storage(IoOptions::default());
    let file = storage.open("file", OpenMode::Create).unwrap();
    file.write_at(&AlignedBuffer::from(&[7u8; 1 << 20][..]), 0).unwrap();
    file.sync().unwrap();
    let before = file.allocated_bytes().unwrap();
    file.punch_hole(4096, (1 << 20) - 4096).unwrap();
    assert_eq!(file.len().unwrap(), 1 << 20);
    // Not every file system has holes; if it does, they take effect at once.
    let after = file.allocated_bytes().unwrap();
    assert!(after == before || after < before / 4, "{before} before, {after} after");
}

#[test]
fn a_missing_directory_is_an_error_unless_it_is_to_be_created() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("a/b");
    let error = FileStorage::open(&path, IoOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("a/b"), "{error}");
    FileStorage::create(&path, IoOptions::default()).unwrap();
    FileStorage::open(&path, IoOptions::default()).unwrap();
}

#[test]
fn writers_of_neighbouring_bytes_do_not_disturb_each_other() {
    let (_directory, storage) = storage(IoOptions::default());
    let file = storage.open("file", OpenMode::Create).unwrap();
    const PIECE: usize = 700;
    const PIECES: usize = 400;
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let file = &file;
            scope.spawn(move || {
                for piece in (thread..PIECES).step_by(4) {
                    file.write_at(&[piece as u8 | 1; PIECE], (piece * PIECE) as u64).unwrap();
                    if piece % 16 == thread {
                        file.sync().unwrap();
                    }
                }
            });
        }
    });
    let mut content = vec![0; PIECE * PIECES];
    assert_eq!(file.read_at(&mut content, 0).unwrap(), content.len());
    for (piece, bytes) in content.chunks(PIECE).enumerate() {
        assert!(bytes.iter().all(|&byte| byte == piece as u8 | 1), "piece {piece}");
    }
}
