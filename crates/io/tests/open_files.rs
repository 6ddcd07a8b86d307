//! Files for reading stay open as far as the maximum allows, and are readable whether they are open or not.

use std::path::Path;
use std::sync::Arc;

use alluvium_io::{
    AlignedBuffer, File, FileStorage, IoOptions, OpenMode, Operation, ReadRequest, Storage, Usage,
};

const FILES: usize = 60;
const OPEN_MAX: usize = 8;

fn storage(directory: &Path, uring: Usage) -> FileStorage {
    let options = IoOptions { open_files_max: Some(OPEN_MAX), uring, ..IoOptions::default() };
    FileStorage::open(directory, options).unwrap()
}

fn name(number: usize) -> String {
    format!("file-{number}")
}

fn page(number: usize) -> Vec<u8> {
    vec![number as u8 + 1; 4096]
}

/// Files of one page each, and handles that read them.
fn filled(storage: &FileStorage) -> Vec<Arc<dyn File>> {
    for number in 0..FILES {
        storage.open(&name(number), OpenMode::Create).unwrap().write_at(&page(number), 0).unwrap();
    }
    (0..FILES).map(|number| storage.open(&name(number), OpenMode::Read).unwrap()).collect()
}

/// Number of descriptors of this process for files in `directory`, without the directory itself.
fn descriptors(directory: &Path) -> usize {
    let directory = directory.canonicalize().unwrap();
    let links = std::fs::read_dir("/proc/self/fd").unwrap();
    let targets = links.filter_map(|link| std::fs::read_link(link.ok()?.path()).ok());
    targets.filter(|target| target.starts_with(&directory) && *target != directory).count()
}

#[test]
fn all_files_are_read_through_a_few_descriptors() {
    for uring in [Usage::Auto, Usage::Never] {
        let directory = tempfile::tempdir().unwrap();
        let storage = storage(directory.path(), uring);
        let files = filled(&storage);
        assert!(descriptors(directory.path()) <= OPEN_MAX);
        let mut buffer = AlignedBuffer::with_len(4096);
        for number in (0..FILES).chain((0..FILES).rev()) {
            assert_eq!(files[number].read_at(&mut buffer, 0).unwrap(), 4096);
            assert_eq!(*buffer, *page(number));
            assert!(descriptors(directory.path()) <= OPEN_MAX);
        }
        // All at once, which is more than may stay open.
        let mut buffers: Vec<_> = (0..FILES).map(|_| AlignedBuffer::with_len(4096)).collect();
        let requests = files.iter().zip(&mut buffers);
        let mut requests: Vec<_> = requests
            .map(|(file, buffer)| ReadRequest { file: &**file, offset: 0, buffer, result: Ok(0) })
            .collect();
        storage.read_batch(&mut requests);
        requests.into_iter().for_each(|request| assert_eq!(request.result.unwrap(), 4096));
        (0..FILES).for_each(|number| assert_eq!(*buffers[number], *page(number)));
        let mut pipeline = storage.pipeline(16);
        for (number, file) in files.iter().enumerate() {
            let buffer = AlignedBuffer::with_len(4096);
            pipeline.submit(Operation::Read, &**file, 0, buffer, number as u64);
        }
        while let Some(done) = pipeline.wait() {
            assert_eq!(done.result.unwrap(), 4096);
            assert_eq!(*done.buffer, *page(done.token as usize));
        }
        drop(pipeline);
        drop(files);
        assert_eq!(descriptors(directory.path()), 0);
    }
}

#[test]
fn a_handle_means_its_file_after_the_name_went_to_another() {
    let directory = tempfile::tempdir().unwrap();
    let storage = storage(directory.path(), Usage::Auto);
    let files = filled(&storage);
    storage.remove(&name(0)).unwrap();
    storage.open(&name(0), OpenMode::Create).unwrap().write_at(&page(100), 0).unwrap();
    storage.rename(&name(2), &name(1)).unwrap();
    let mut buffer = AlignedBuffer::with_len(4096);
    // So that the others may be closed.
    files[3..].iter().for_each(|file| assert!(file.read_at(&mut buffer, 0).is_ok()));
    for (number, file) in files[..3].iter().enumerate() {
        assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 4096);
        assert_eq!(*buffer, *page(number));
    }
    let renamed = storage.open(&name(1), OpenMode::Read).unwrap();
    renamed.read_at(&mut buffer, 0).unwrap();
    assert_eq!(*buffer, *page(2));
}

#[test]
fn a_file_that_is_written_no_more_gives_its_descriptors_back() {
    let directory = tempfile::tempdir().unwrap();
    let storage = storage(directory.path(), Usage::Auto);
    let written: Vec<_> = (0..FILES)
        .map(|number| {
            let file = storage.open(&name(number), OpenMode::Create).unwrap();
            file.write_at(&page(number), 0).unwrap();
            file.sync().unwrap();
            file
        })
        .collect();
    assert!(descriptors(directory.path()) >= FILES);
    written.iter().for_each(|file| file.end_writing().unwrap());
    assert!(descriptors(directory.path()) <= OPEN_MAX);
    let mut buffer = AlignedBuffer::with_len(4096);
    for (number, file) in written.iter().enumerate() {
        assert_eq!(file.read_at(&mut buffer, 0).unwrap(), 4096);
        assert_eq!(*buffer, *page(number));
    }
}

#[test]
fn threads_read_files_while_others_close_them() {
    let directory = tempfile::tempdir().unwrap();
    let storage = storage(directory.path(), Usage::Auto);
    let files = filled(&storage);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let files = &files;
            scope.spawn(move || {
                let mut buffer = AlignedBuffer::with_len(4096);
                for step in 0..2_000 {
                    let number = (step * (2 * thread + 1) + step / 7) % FILES;
                    assert_eq!(files[number].read_at(&mut buffer, 0).unwrap(), 4096);
                    assert_eq!(*buffer, *page(number));
                }
            });
        }
    });
    assert!(descriptors(directory.path()) <= OPEN_MAX + 4);
}
