//! Databases of many keyspaces: tables are opened when their keyspace is first used, each file once, and an error then
//! affects only that use.

use std::io::{Error as IoError, Result as IoResult};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use alluvium::{Db, Durability, Environment, Error, Keyspace, Plan};
use alluvium_io::{DirectoryLock, File, FileStorage, IoOptions, OpenMode, Pipeline, ReadRequest, Storage};

/// Forwards everything, records which tables are opened, and refuses to open any on request.
#[derive(Debug)]
struct NotingStorage {
    inner: FileStorage,
    tables: Mutex<Vec<String>>,
    refuses: AtomicBool,
    syncs: AtomicUsize,
}

impl NotingStorage {
    fn over(directory: &Path) -> Arc<Self> {
        let inner = FileStorage::create(directory, IoOptions::default()).unwrap();
        Arc::new(Self { inner, tables: Mutex::default(), refuses: AtomicBool::new(false), syncs: 0.into() })
    }

    /// The tables that were opened since the last call.
    fn take_tables(&self) -> Vec<String> {
        std::mem::take(&mut *self.tables.lock().unwrap())
    }
}

impl Storage for NotingStorage {
    fn open(&self, name: &str, mode: OpenMode) -> IoResult<Arc<dyn File>> {
        if mode == OpenMode::Read && name.starts_with("table-") {
            if self.refuses.load(Ordering::Relaxed) {
                return Err(IoError::from_raw_os_error(24));
            }
            self.tables.lock().unwrap().push(name.to_owned());
        }
        self.inner.open(name, mode)
    }

    fn remove(&self, name: &str) -> IoResult<()> {
        self.inner.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> IoResult<()> {
        self.inner.rename(from, to)
    }

    fn list(&self) -> IoResult<Vec<String>> {
        self.inner.list()
    }

    fn sync_directory(&self) -> IoResult<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.inner.sync_directory()
    }

    fn lock(&self, name: &str) -> IoResult<Box<dyn DirectoryLock>> {
        self.inner.lock(name)
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) {
        self.inner.read_batch(requests);
    }

    fn pipeline(&self, depth: usize) -> Box<dyn Pipeline> {
        self.inner.pipeline(depth)
    }

    fn describe(&self) -> String {
        self.inner.describe()
    }
}

const KEYSPACES: usize = 60;
const ROUNDS: usize = 5;

fn open(directory: &Path) -> (Arc<NotingStorage>, Result<Db, Error>) {
    let storage = NotingStorage::over(directory);
    let builder = Db::builder(directory).plan(Plan::silt()).durability(Durability::Buffered);
    let environment = Environment::over(storage.clone());
    (storage, builder.background(false).environment(environment).open())
}

fn keyspace(db: &Db, number: usize) -> Keyspace {
    db.keyspace(&name(number)).unwrap()
}

fn name(number: usize) -> String {
    format!("keyspace-{number}")
}

fn value(number: usize, round: usize) -> Vec<u8> {
    format!("{number} in round {round}").into_bytes()
}

/// Runs of all keyspaces, one file per round.
fn fill(directory: &Path) -> u64 {
    let (_, db) = open(directory);
    let db = db.unwrap();
    let keyspaces: Vec<_> = (0..KEYSPACES).map(|number| keyspace(&db, number)).collect();
    for round in 0..ROUNDS {
        for (number, items) in keyspaces.iter().enumerate() {
            items.insert(format!("key {round}"), value(number, round)).unwrap();
        }
        db.flush().unwrap();
    }
    let tables = db.stats().memory.tables;
    drop(keyspaces);
    db.close().unwrap();
    tables
}

fn check(items: &Keyspace, number: usize) {
    for round in 0..ROUNDS {
        assert_eq!(
            items.get(format!("key {round}")).unwrap(),
            Some(value(number, round)),
            "{number} {round}"
        );
    }
    assert_eq!(items.get("absent").unwrap(), None);
}

#[test]
fn tables_are_opened_when_a_keyspace_is_used_and_once_for_all() {
    let directory = tempfile::tempdir().unwrap();
    let before = fill(directory.path());
    let (storage, db) = open(directory.path());
    let db = db.unwrap();
    assert_eq!(storage.take_tables(), Vec::<String>::new());
    assert_eq!(db.keyspace_names().len(), KEYSPACES);
    check(&keyspace(&db, 7), 7);
    assert_eq!(storage.take_tables().len(), ROUNDS);
    for number in 0..KEYSPACES {
        check(&keyspace(&db, number), number);
    }
    // The files are those that the first keyspace opened.
    assert_eq!(storage.take_tables(), Vec::<String>::new());
    let after = db.stats().memory.tables;
    // Half a kibibyte per section, one per file, and not the whole directory per keyspace.
    assert!(after <= before, "{after} bytes, {before} before it was closed");
    assert!(after <= (KEYSPACES * ROUNDS * 700 + ROUNDS * 1024) as u64, "{after} bytes");
    while db.run_background_job().unwrap() {}
    assert_eq!(storage.take_tables(), Vec::<String>::new());
}

#[test]
fn what_looks_at_all_data_sees_keyspaces_that_nobody_used() {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path());
    let items = |db: &Db| db.stats().items;
    let (_, db) = open(directory.path());
    let db = db.unwrap();
    let snapshot = db.snapshot().unwrap();
    let of = |number: usize| snapshot.keyspace(&name(number)).unwrap().get("key 2").unwrap();
    assert!((0..KEYSPACES).all(|number| of(number) == Some(value(number, 2))));
    drop(snapshot);
    db.close().unwrap();

    let (_, db) = open(directory.path());
    let db = db.unwrap();
    assert_eq!(items(&db), (KEYSPACES * ROUNDS) as u64);
    db.close().unwrap();

    let (_, db) = open(directory.path());
    let db = db.unwrap();
    assert_eq!(db.verify().unwrap().items, (KEYSPACES * ROUNDS) as u64);
    db.close().unwrap();

    let copy = tempfile::tempdir().unwrap();
    let (_, db) = open(directory.path());
    let db = db.unwrap();
    db.checkpoint(copy.path().join("copy")).unwrap();
    db.close().unwrap();
    let (_, copied) = open(&copy.path().join("copy"));
    check(&keyspace(&copied.unwrap(), 9), 9);

    let (storage, db) = open(directory.path());
    let db = db.unwrap();
    assert!(db.drop_keyspace(&name(0)).unwrap());
    db.compact().unwrap();
    for number in 1..KEYSPACES {
        check(&keyspace(&db, number), number);
    }
    let tables = storage.list().unwrap().into_iter().filter(|name| name.starts_with("table-"));
    assert_eq!(tables.count(), KEYSPACES - 1, "one for each keyspace that is left");
}

#[test]
fn the_background_opens_what_nobody_uses() {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path());
    let (storage, db) = open(directory.path());
    let db = db.unwrap();
    while db.run_background_job().unwrap() {}
    assert_eq!(storage.take_tables().len(), ROUNDS);
    check(&keyspace(&db, 3), 3);
    assert_eq!(storage.take_tables(), Vec::<String>::new());
}

#[test]
fn writes_to_a_keyspace_before_its_tables_were_needed_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path());
    let (_, db) = open(directory.path());
    let db = db.unwrap();
    while db.run_background_job().unwrap() {}
    keyspace(&db, 5).insert("key 0", "younger").unwrap();
    // A small log is replayed: then the keyspace has log and tables.
    db.close().unwrap();
    let (storage, db) = open(directory.path());
    let db = db.unwrap();
    assert_eq!(storage.take_tables(), Vec::<String>::new());
    db.flush().unwrap();
    assert!(!storage.take_tables().is_empty(), "the conversion looks into the tables");
    let items = keyspace(&db, 5);
    assert_eq!(items.get("key 0").unwrap().as_deref(), Some(&b"younger"[..]));
    assert_eq!(items.get("key 1").unwrap(), Some(value(5, 1)));
}

#[test]
fn a_table_that_cannot_be_opened_now_is_opened_by_the_next_use() {
    let directory = tempfile::tempdir().unwrap();
    fill(directory.path());
    let (storage, db) = open(directory.path());
    let db = db.unwrap();
    storage.refuses.store(true, Ordering::Relaxed);
    for _ in 0..2 {
        let refused = db.keyspace(&name(4)).unwrap_err();
        assert!(refused.to_string().contains("table-"), "{refused}");
    }
    while db.run_background_job().unwrap() {}
    storage.refuses.store(false, Ordering::Relaxed);
    let items = keyspace(&db, 4);
    check(&items, 4);
    items.insert("key", "writes go on").unwrap();
    db.flush().unwrap();
    assert_eq!(items.get("key").unwrap().as_deref(), Some(&b"writes go on"[..]));
}

#[test]
fn a_missing_table_refuses_the_opening_and_a_damaged_one_its_keyspace() {
    let directory = tempfile::tempdir().unwrap();
    let (_, db) = open(directory.path());
    let db = db.unwrap();
    for number in 0..2 {
        keyspace(&db, number).insert("key 0", value(number, 0)).unwrap();
        db.flush().unwrap();
    }
    db.close().unwrap();
    let mut tables: Vec<_> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("table-"))
        .collect();
    tables.sort();
    let whole = std::fs::read(&tables[0]).unwrap();
    let mut damaged = whole.clone();
    let end = damaged.len();
    // In the trailer.
    damaged[end - 30] ^= 1;
    std::fs::write(&tables[0], &damaged).unwrap();
    let (_, db) = open(directory.path());
    let db = db.unwrap();
    for _ in 0..2 {
        let refused = db.keyspace(&name(0)).unwrap_err();
        assert!(matches!(refused, Error::Corruption(_)), "{refused}");
        let is_verified = db.verify().is_ok_and(|report| report.problems.is_empty());
        assert!(!is_verified && db.snapshot().is_err() && db.compact().is_err());
    }
    let other = keyspace(&db, 1);
    assert_eq!(other.get("key 0").unwrap(), Some(value(1, 0)));
    other.insert("key 1", "writes go on").unwrap();
    drop(other);
    db.close().unwrap();

    std::fs::remove_file(&tables[0]).unwrap();
    let Err(Error::MissingFile { file }) = open(directory.path()).1 else { panic!("a table is missing") };
    assert!(tables[0].ends_with(&file));
    std::fs::write(&tables[0], &whole).unwrap();
    let db = open(directory.path()).1.unwrap();
    assert_eq!(keyspace(&db, 0).get("key 0").unwrap(), Some(value(0, 0)));
}
