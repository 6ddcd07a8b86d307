//! Checkpoints and backups are checked before they count, and what interrupts them does not block the next attempt.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium::{
    BackupOptions, CheckpointOptions, Db, Environment, Error, RepairOptions, backups, remove_old_backups,
    repair_in, restore,
};
use alluvium_io::{FaultPlan, SimulatedStorage};

fn fill(db: &Db, round: u8) {
    let items = db.keyspace("items").unwrap();
    for number in 0..2_000u32 {
        items.insert(number.to_le_bytes(), [round; 60]).unwrap();
    }
    items.insert("large", vec![round; 20_000]).unwrap();
}

/// The largest file whose name has this prefix.
fn file(directory: &Path, prefix: &str) -> PathBuf {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let named = entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(prefix));
    named.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap()
}

fn flip(path: &Path, offset: u64) {
    let file = fs::File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 4], offset).unwrap();
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

#[test]
fn a_damaged_file_is_named_and_not_copied() {
    for (prefix, offset) in [("table-", 4_500), ("blob-", 9_000), ("blob-", 50)] {
        let directory = tempfile::tempdir().unwrap();
        let [data, copy, root] = ["data", "copy", "backups"].map(|name| directory.path().join(name));
        let db = Db::open(&data).unwrap();
        fill(&db, 1);
        db.compact().unwrap();
        let (good, ..) = db.backup_with(&root, BackupOptions::default()).unwrap();
        restore(&good.path, directory.path().join("restored"), |_, _| {}).unwrap();
        // Files are linked, so damage to one also damages the good backup, which is restored here.
        let kept: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(&good.path)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect();
        let damaged = file(&data, prefix);
        flip(&damaged, offset);
        for (path, bytes) in kept {
            fs::remove_file(&path).unwrap();
            fs::write(path, bytes).unwrap();
        }

        let name = damaged.file_name().unwrap().to_string_lossy().into_owned();
        let is_named = |error: &Error| matches!(error, Error::Corruption(found) if found.file == name);
        let error = db.checkpoint(&copy).unwrap_err();
        assert!(is_named(&error), "{prefix}: {error}");
        assert!(is_empty(&copy));
        let keep = BackupOptions { keep: Some(1), ..BackupOptions::default() };
        let error = db.backup_with(&root, keep).unwrap_err();
        assert!(is_named(&error), "{prefix}: {error}");
        assert_eq!(backups(&root).unwrap().len(), 1);
        // Without verification, a backup must not remove the good one either.
        let blind = BackupOptions { verify: false, keep: Some(1) };
        let error = db.backup_with(&root, blind).unwrap_err();
        assert!(is_named(&error), "{prefix}: {error}");
        assert!(remove_old_backups(&root, 1).is_err());
        assert_eq!(backups(&root).unwrap()[0], good);
        db.checkpoint_with(&copy, CheckpointOptions { verify: false }).unwrap();
        assert!(copy.join("CURRENT").exists() && !copy.join("PARTIAL-COPY").exists());
    }
}

#[test]
fn what_a_crash_leaves_of_a_copy_is_cleared_by_the_next() {
    let environment = |storage: &SimulatedStorage| Environment::over(Arc::new(storage.clone()));
    let open = |storage: &SimulatedStorage, create: bool| {
        let builder = Db::builder("simulated").background(false).create(create);
        builder.environment(environment(storage)).open()
    };
    let source = SimulatedStorage::new(1);
    let db = open(&source, true).unwrap();
    fill(&db, 7);
    for crash in 0..60 {
        let target = SimulatedStorage::new(crash);
        target.set_faults(FaultPlan { crash_before_operation: Some(crash), ..FaultPlan::default() });
        let outcome = db.checkpoint_into(Arc::new(target.clone()));
        if outcome.is_ok() {
            assert!(crash > 10);
            return;
        }
        target.crash();
        let target = target.reopen();
        match db.checkpoint_into(Arc::new(target.clone())) {
            Ok(_) => {}
            // It was complete except for a note.
            Err(Error::NotADatabase { .. }) if target.contents().contains_key("CURRENT") => {}
            Err(error) => panic!("crash {crash}: {error}"),
        }
        let copy = open(&target, false).unwrap();
        assert_eq!(copy.keyspace("items").unwrap().iter().count(), 2_001);
        assert!(!target.contents().contains_key("PARTIAL-COPY"));
    }
    panic!("it never came to an end");
}

#[test]
fn a_failed_restore_can_be_repeated_and_others_files_are_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let [data, root, target] = ["data", "backups", "target"].map(|name| directory.path().join(name));
    let db = Db::open(&data).unwrap();
    fill(&db, 3);
    let (backup, _) = db.backup_into(&root).unwrap();
    let damaged = file(&backup.path, "table-");
    // It is a link to the database's own file, which a merge may read at any time.
    let bytes = fs::read(&damaged).unwrap();
    fs::remove_file(&damaged).unwrap();
    fs::write(&damaged, bytes).unwrap();
    flip(&damaged, 5_000);
    assert!(restore(&backup.path, &target, |_, _| {}).is_err());
    flip(&damaged, 5_000);
    restore(&backup.path, &target, |_, _| {}).unwrap();
    assert_eq!(Db::open_read_only(&target).unwrap().keyspace("items").unwrap().iter().count(), 2_001);

    let other = directory.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("PARTIAL-COPY"), "the terms").unwrap();
    fs::write(other.join("notes.txt"), "mine").unwrap();
    let error = db.checkpoint(&other).unwrap_err();
    assert!(matches!(&error, Error::NotADatabase { reason } if reason.contains("notes.txt")), "{error}");
    assert!(other.join("notes.txt").exists());
}

/// A full disk leaves a blob file that the manifest names and that is empty.
#[test]
fn an_empty_blob_file_of_a_full_disk_is_not_called_damaged() {
    let open = |storage: &SimulatedStorage| {
        let builder = Db::builder("full").background(false);
        builder.environment(Environment::over(Arc::new(storage.clone()))).open().unwrap()
    };
    let mut has_empty = false;
    for quota in 1..40u64 {
        let storage = SimulatedStorage::new(quota);
        let db = open(&storage);
        let items = db.keyspace("items").unwrap();
        items.insert("small", "1").unwrap();
        storage.set_faults(FaultPlan { quota_bytes: Some((quota * 16) << 10), ..FaultPlan::default() });
        let failed = items.insert("large", vec![1; 100_000]).is_err();
        storage.kill();
        let storage = storage.reopen();
        let empty = |(name, bytes): (&String, &Vec<u8>)| name.starts_with("blob-") && bytes.is_empty();
        has_empty |= failed && storage.contents().iter().any(empty);
        let db = open(&storage);
        let problems = db.verify().unwrap().problems;
        assert!(problems.is_empty(), "{quota}: {problems:?}");
        db.checkpoint_into(Arc::new(SimulatedStorage::new(1))).unwrap();
        db.close().unwrap();
        let report =
            repair_in(Environment::over(Arc::new(storage.clone())), &RepairOptions::default()).unwrap();
        assert!(!report.changed, "{quota}: {report:?}");
    }
    assert!(has_empty, "no quota left an empty file");
}

#[test]
fn a_change_of_plan_passes_over_keyspaces_that_are_dropped_meanwhile() {
    let storage = SimulatedStorage::new(1);
    let builder = Db::builder("plans").background(false);
    let db = builder.environment(Environment::over(Arc::new(storage))).open().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..200 {
                let name = format!("short-lived {round}");
                db.keyspace(&name).unwrap();
                db.drop_keyspace(&name).unwrap();
            }
        });
        for round in 0..200 {
            let plan = if round % 2 == 0 { alluvium::Plan::tiered() } else { alluvium::Plan::silt() };
            db.change_plan(plan).unwrap();
        }
    });
}
