//! A process without descriptors: files that can be reopened give up theirs, and an operation that gets none can be
//! repeated. Runs in a process of its own, whose limit it lowers.

use std::fs;

use alluvium_io::{AlignedBuffer, FileStorage, IoOptions, OpenMode, Storage};
use rustix::process::{Resource, getrlimit, setrlimit};

#[test]
fn an_operation_without_a_descriptor_fails_alone() {
    let directory = tempfile::tempdir().unwrap();
    let options = IoOptions { open_files_max: Some(40), ..IoOptions::default() };
    let storage = FileStorage::open(directory.path(), options).unwrap();
    for number in 0..40 {
        let file = storage.open(&format!("file-{number}"), OpenMode::Create).unwrap();
        file.write_at(&[number; 4096], 0).unwrap();
    }
    let files: Vec<_> =
        (0..40).map(|number| storage.open(&format!("file-{number}"), OpenMode::Read).unwrap()).collect();
    let limits = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, rustix::process::Rlimit { current: Some(80), ..limits }).unwrap();
    let mut others = Vec::new();
    while let Ok(file) = fs::File::open("/dev/null") {
        others.push(file);
    }
    // A new file gets descriptors of files for reading.
    let created = storage.open("new", OpenMode::Create).unwrap();
    created.write_at(&[7; 4096], 0).unwrap();
    let mut buffer = AlignedBuffer::with_len(4096);
    for (number, file) in files.iter().enumerate() {
        assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 4096);
        assert_eq!(buffer[0], number as u8);
    }
    // Other code takes those too, until none are left to give up.
    drop(files);
    while let Ok(file) = fs::File::open("/dev/null") {
        others.push(file);
    }
    let refused = storage.open("file-1", OpenMode::Read).unwrap_err();
    assert!(refused.to_string().contains("file-1"), "{refused}");
    assert!(storage.open("another", OpenMode::Create).is_err());
    others.truncate(others.len() - 4);
    let file = storage.open("file-1", OpenMode::Read).unwrap();
    assert_eq!((file.read_at(&mut buffer, 0).unwrap(), buffer[0]), (4096, 1));
    // The failed attempt left no file behind that would occupy the name.
    storage.open("another", OpenMode::Create).unwrap();
}
