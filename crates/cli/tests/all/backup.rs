//! Backup, restore, repair and reading without writing, as users run them.

use std::fs;
use std::process::Output;

use crate::common::alluvium;
use serde_json::Value;

fn object(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn backups_share_tables_and_restore_brings_each_back() {
    let directory = tempfile::tempdir().unwrap();
    let run = |line: &str| alluvium(directory.path(), line);
    run("put data key one");
    let first = object(&run("backup data saved --json"));
    assert_eq!((&first["number"], &first["copied_bytes"]), (&1.into(), &0.into()));
    run("put data key two");
    assert!(run("backup data saved").status.success());
    let listed = String::from_utf8(run("backup --list saved --json").stdout).unwrap();
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(run("restore saved/000001 old").status.success());
    let restored = object(&run("restore saved new --json"));
    assert!(restored["tables"].as_u64() > Some(0));
    assert_eq!(run("get old key").stdout, b"one\n");
    assert_eq!(run("get new key").stdout, b"two\n");
    let again = run("restore saved new");
    assert!(String::from_utf8_lossy(&again.stderr).contains("empty directory"), "{again:?}");
    let kept = object(&run("backup data saved --keep 1 --json"));
    assert_eq!(kept["removed_backups"], 2);
    assert_eq!(String::from_utf8(run("backup --list saved").stdout).unwrap().lines().count(), 1);
    run("put other key value");
    let other = run("backup other saved");
    assert!(String::from_utf8_lossy(&other.stderr).contains("another database"), "{other:?}");
}

#[test]
fn repair_tells_what_it_would_do_and_does_it() {
    let directory = tempfile::tempdir().unwrap();
    let run = |line: &str| alluvium(directory.path(), line);
    for number in 0..5 {
        run(&format!("put data key-{number} value"));
    }
    run("compact data");
    assert!(String::from_utf8(run("repair data").stdout).unwrap().starts_with("nothing to repair"));
    fs::remove_file(directory.path().join("data/CURRENT")).unwrap();
    assert!(!run("get data key-1").status.success());
    let told = object(&run("repair data --dry-run --json"));
    assert_eq!((&told["manifest"], &told["changed"]), (&"restored".into(), &true.into()));
    assert!(!run("get data key-1").status.success());
    let done = object(&run("repair data --json"));
    assert_eq!(done["may_show_old_values"], false);
    assert_eq!(run("get data key-1").stdout, b"value\n");
}

#[test]
fn reading_changes_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let run = |line: &str| alluvium(directory.path(), line);
    run("put data key value");
    let state = || {
        let entries = fs::read_dir(directory.path().join("data")).unwrap().map(|entry| entry.unwrap());
        let mut files: Vec<_> =
            entries.map(|entry| (entry.file_name(), entry.metadata().unwrap().modified().unwrap())).collect();
        files.sort();
        files
    };
    let before = state();
    for line in ["get data key", "scan data", "inspect data", "verify data", "stat data", "export data"] {
        let output = run(line);
        assert!(output.status.success(), "{line}: {output:?}");
    }
    assert_eq!(state(), before);
}
