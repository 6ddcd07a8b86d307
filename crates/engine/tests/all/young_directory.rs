//! A second directory for the tables of young levels.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use alluvium::{Builder, Db, Durability, Error, LevelsPlan, Plan, RepairOptions, repair};

fn entry(number: u32) -> ([u8; 4], Vec<u8>) {
    (number.to_be_bytes(), format!("value {number} {}", "-".repeat(80)).into_bytes())
}

/// A plan with small log segments, so that a few thousand items make several tables.
fn plan() -> Plan {
    let LevelsPlan { sharding, mut log, levels } = LevelsPlan::silt();
    log.segment_bytes_max = 256 << 10;
    Plan::Levels(LevelsPlan { sharding, log, levels })
}

struct Directories {
    root: tempfile::TempDir,
}

impl Directories {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn builder(&self, name: &str) -> Builder {
        Db::builder(self.path(name)).plan(plan()).durability(Durability::Buffered).background(false)
    }

    fn both(&self, levels: usize) -> Builder {
        self.builder("old").young_levels_dir(self.path("young"), levels)
    }

    /// A closed database with tables of level 0 in the second directory and one of level 1 in the first.
    fn fill(&self) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let db = self.both(1).open().unwrap();
        let keyspace = db.keyspace("items").unwrap();
        let mut items = BTreeMap::new();
        for number in 0..8000 {
            let (key, value) = entry(number);
            keyspace.insert(key, &value).unwrap();
            items.insert(key.to_vec(), value);
            if number == 4000 {
                db.compact().unwrap();
            }
        }
        db.flush().unwrap();
        let young = db.stats().young_directory.unwrap();
        assert!(young.tables > 0 && young.bytes > 0 && young.levels == 1);
        let traffic = db.stats().traffic;
        assert!(traffic.young_directory_bytes_written >= young.bytes);
        assert_eq!(traffic.young_directory_bytes_written, traffic.hash_bytes_written);
        drop(keyspace);
        db.close().unwrap();
        items
    }
}

fn tables(directory: &Path) -> Vec<String> {
    let names = std::fs::read_dir(directory).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("table-")).collect()
}

fn contents(db: &Db) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let items = db.keyspace("items").unwrap().iter().map(Result::unwrap).collect();
    assert!(db.verify().unwrap().problems.is_empty());
    items
}

#[track_caller]
fn assert_refused(opened: alluvium::Result<Db>, part: &str) {
    match opened {
        Err(Error::YoungDirectory { reason }) => assert!(reason.contains(part), "{reason}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn young_tables_lie_in_the_second_directory_and_old_ones_in_the_first() {
    let directories = Directories::new();
    let items = directories.fill();
    let (old, young) = (tables(&directories.path("old")), tables(&directories.path("young")));
    assert!(!old.is_empty() && !young.is_empty());
    let db = directories.both(1).open().unwrap();
    assert_eq!(contents(&db), items);
    // Merging into level 1 moves them out of the second directory.
    db.compact().unwrap();
    assert_eq!(contents(&db), items);
    assert!(tables(&directories.path("young")).is_empty());
    assert_eq!(db.stats().young_directory.unwrap().tables, 0);
}

#[test]
fn without_the_second_directory_the_database_says_so() {
    let directories = Directories::new();
    let items = directories.fill();
    assert_refused(directories.builder("old").open(), "none was given");
    assert_refused(directories.builder("old").read_only(true).open(), "none was given");
    // None of this changed anything.
    let missing = || directories.builder("old").create(false);
    assert_refused(missing().young_levels_dir(directories.path("gone"), 1).open(), "there is no directory");
    std::fs::create_dir(directories.path("empty")).unwrap();
    assert_refused(missing().young_levels_dir(directories.path("empty"), 1).open(), "of no database");
    assert_refused(missing().young_levels_dir(directories.path("old"), 1).open(), "own directory");
    assert_eq!(contents(&directories.both(1).open().unwrap()), items);
}

#[test]
fn the_directory_of_another_database_is_refused() {
    let directories = Directories::new();
    let items = directories.fill();
    let other = || directories.builder("other").young_levels_dir(directories.path("young"), 1);
    assert_refused(other().open(), "of another database");
    // A checkpoint is another database, too: otherwise it would remove files that it does not know.
    let db = directories.both(1).open().unwrap();
    db.checkpoint(directories.path("copy")).unwrap();
    db.close().unwrap();
    let copy = || directories.builder("copy").young_levels_dir(directories.path("young"), 1);
    assert_refused(copy().open(), "of another database");
    assert_refused(copy().read_only(true).open(), "of another database");
    // A database with a second directory of its own does not accept this one.
    let third = || directories.builder("third");
    let db = third().young_levels_dir(directories.path("third young"), 1).open().unwrap();
    db.keyspace("items").unwrap().insert("key", "value").unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    assert_refused(third().young_levels_dir(directories.path("young"), 1).open(), "another database's");
    assert_eq!(contents(&directories.both(1).open().unwrap()), items);
}

#[test]
fn a_directory_of_foreign_files_is_refused() {
    let directories = Directories::new();
    std::fs::create_dir(directories.path("young")).unwrap();
    std::fs::write(directories.path("young").join("letter.txt"), "dear").unwrap();
    assert_refused(directories.both(1).open(), "letter.txt");
    // A directory of another database is refused, too.
    directories.builder("other").open().unwrap().close().unwrap();
    let wrong = directories.builder("old").young_levels_dir(directories.path("other"), 1);
    assert_refused(wrong.open(), "foreign file");
}

#[test]
fn both_directories_are_locked() {
    let directories = Directories::new();
    let db = directories.both(1).open().unwrap();
    let other = directories.builder("other").young_levels_dir(directories.path("young"), 1);
    assert!(matches!(other.open(), Err(Error::Locked { .. })));
    assert!(matches!(directories.both(1).open(), Err(Error::Locked { .. })));
    drop(db);
    let (one, two) = (directories.both(1).read_only(true).open(), directories.both(1).read_only(true).open());
    assert!(one.is_ok() && two.is_ok());
    assert!(matches!(directories.both(1).open(), Err(Error::Locked { .. })));
}

#[test]
fn other_levels_move_tables_when_they_are_merged() {
    let directories = Directories::new();
    let mut items = directories.fill();
    let before = tables(&directories.path("young"));
    // All levels are young now; existing tables stay where they are.
    let db = directories.both(9).open().unwrap();
    assert_eq!(contents(&db), items);
    assert_eq!(tables(&directories.path("young")), before);
    db.compact().unwrap();
    assert!(tables(&directories.path("old")).is_empty());
    assert!(!tables(&directories.path("young")).is_empty());
    assert_eq!(contents(&db), items);
    db.close().unwrap();
    // No level is young: the second directory becomes empty, and the database no longer needs it.
    let db = directories.both(0).open().unwrap();
    let (key, value) = entry(9000);
    db.keyspace("items").unwrap().insert(key, &value).unwrap();
    items.insert(key.to_vec(), value);
    db.compact().unwrap();
    assert!(tables(&directories.path("young")).is_empty());
    db.close().unwrap();
    let db = directories.builder("old").open().unwrap();
    assert_eq!(contents(&db), items);
    db.close().unwrap();
    // The directory is free for other databases.
    let other = directories.builder("other").young_levels_dir(directories.path("young"), 1);
    other.open().unwrap().close().unwrap();
}

#[test]
fn tables_that_were_copied_into_the_first_directory_count_there() {
    let directories = Directories::new();
    let items = directories.fill();
    for name in tables(&directories.path("young")) {
        std::fs::copy(directories.path("young").join(&name), directories.path("old").join(&name)).unwrap();
    }
    // If both directories have a table, that of the second is used; both copies are removed together.
    assert_eq!(contents(&directories.both(1).open().unwrap()), items);
    std::fs::remove_dir_all(directories.path("young")).unwrap();
    let db = directories.builder("old").open().unwrap();
    assert_eq!(contents(&db), items);
}

#[test]
fn copies_have_one_directory() {
    let directories = Directories::new();
    let items = directories.fill();
    let db = directories.both(1).open().unwrap();
    let made = db.checkpoint(directories.path("copy")).unwrap();
    assert!(made.linked_tables > 1 && made.copied_tables == 0);
    let (backup, _) = db.backup_into(directories.path("backups")).unwrap();
    assert_eq!(contents(&directories.builder("copy").open().unwrap()), items);
    assert_eq!(contents(&Db::open_read_only(&backup.path).unwrap()), items);
    alluvium::restore(directories.path("backups"), directories.path("restored"), |_, _| {}).unwrap();
    assert_eq!(contents(&directories.builder("restored").open().unwrap()), items);
    assert_eq!(contents(&db), items);
}

#[test]
fn strays_are_removed_from_both_directories() {
    let directories = Directories::new();
    let items = directories.fill();
    for directory in ["old", "young"] {
        std::fs::write(directories.path(directory).join("table-00009999"), "half").unwrap();
    }
    let db = directories.both(1).open().unwrap();
    assert_eq!(contents(&db), items);
    for directory in ["old", "young"] {
        assert!(!directories.path(directory).join("table-00009999").exists());
    }
}

#[test]
fn the_quota_is_for_both_directories() {
    let directories = Directories::new();
    directories.fill();
    let db = directories.both(1).disk_bytes_max(1 << 20).open().unwrap();
    let refused = db.keyspace("items").unwrap().insert("key", "value").unwrap_err();
    let Error::DiskQuota { used, .. } = refused else { panic!("{refused}") };
    let length = |directory: &str| -> u64 {
        let path = directories.path(directory);
        let tables = tables(&path).into_iter();
        tables.map(|name| std::fs::metadata(path.join(name)).unwrap().len()).sum()
    };
    assert!(length("young") > 0 && used >= length("young") + length("old"));
}

fn repair_options(directories: &Directories) -> RepairOptions {
    RepairOptions {
        young_levels_dir: Some(directories.path("young")),
        plan: plan(),
        ..RepairOptions::default()
    }
}

fn flip(path: &Path, offset: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[offset] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_repair_looks_into_both_directories() {
    let directories = Directories::new();
    let items = directories.fill();
    let options = repair_options(&directories);
    let nothing_given = repair(directories.path("old"), &RepairOptions::default());
    assert!(matches!(nothing_given, Err(Error::YoungDirectory { .. })), "{nothing_given:?}");
    assert!(!repair(directories.path("old"), &options).unwrap().changed);
    // A damaged page of a young table.
    let name = tables(&directories.path("young")).remove(0);
    flip(&directories.path("young").join(&name), 4096 + 100);
    let report = repair(directories.path("old"), &options).unwrap();
    assert_eq!((report.tables_rewritten, report.pages_lost), (1, 1));
    assert!(directories.path("young").join(format!("lost-1-{name}")).exists());
    let left = contents(&directories.both(1).open().unwrap());
    assert!(left.len() < items.len() && left.len() > items.len() - 100);
    assert!(left.iter().all(|(key, value)| items[key] == *value));
}

#[test]
fn a_repair_without_manifest_finds_young_tables() {
    let directories = Directories::new();
    let items = directories.fill();
    for entry in std::fs::read_dir(directories.path("old")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name == "CURRENT" || name.starts_with("manifest-") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    let report = repair(directories.path("old"), &repair_options(&directories)).unwrap();
    assert!(report.changed);
    let db = directories.both(1).open().unwrap();
    let name = db.keyspace_names().remove(0);
    let found: BTreeMap<_, _> = db.keyspace(&name).unwrap().iter().map(Result::unwrap).collect();
    assert_eq!(found, items);
}

#[test]
fn a_repair_writes_the_id_again_and_gives_up_a_lost_directory_when_told() {
    let directories = Directories::new();
    let items = directories.fill();
    flip(&directories.path("young").join("YOUNG"), 20);
    assert!(matches!(directories.both(1).open(), Err(Error::Corruption(_))));
    assert!(repair(directories.path("old"), &repair_options(&directories)).unwrap().changed);
    assert_eq!(contents(&directories.both(1).open().unwrap()), items);
    std::fs::remove_dir_all(directories.path("young")).unwrap();
    let options = RepairOptions { without_young_levels: true, ..RepairOptions::default() };
    let report = repair(directories.path("old"), &options).unwrap();
    assert!(report.tables_lost > 0);
    let left = contents(&directories.builder("old").open().unwrap());
    assert!(!left.is_empty() && left.len() < items.len());
}
