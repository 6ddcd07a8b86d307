//! Export and import as users run them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use crate::common::{alluvium, command};
use alluvium::{Db, Durability, KeyspaceOptions, Metadata, Order, PrefixRule};

/// Keyspace and key, mapped to value and metadata.
type Items = BTreeMap<(String, Vec<u8>), (Vec<u8>, Metadata)>;

fn succeed(directory: &Path, line: &str) -> serde_json::Value {
    let output = alluvium(directory, line);
    assert!(output.status.success(), "{line}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

fn failure(directory: &Path, line: &str) -> String {
    let output = alluvium(directory, line);
    assert_eq!(output.status.code(), Some(1), "{line}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A database of text and other bytes, with and without flags and expiry, in two keyspaces.
fn fill(path: &Path) {
    let db = Db::builder(path).durability(Durability::Buffered).open().unwrap();
    let (words, numbers) = (db.keyspace("words").unwrap(), db.keyspace("numbers, all").unwrap());
    for number in 0_u32..3_000 {
        let flags = if number % 3 == 0 { number } else { 0 };
        let expires_at_ms = (number % 5 == 0).then_some(4_000_000_000_000 + u64::from(number));
        let value = format!("line {number}\n\"quoted\", ü");
        words.insert_with(format!("word-{number}"), value, Metadata { flags, expires_at_ms }).unwrap();
        numbers.insert(number.to_be_bytes(), number.to_be_bytes().repeat(9)).unwrap();
    }
    words.insert("", "").unwrap();
    db.close().unwrap();
}

fn items(path: &Path) -> Items {
    let db = Db::builder(path).create(false).open().unwrap();
    let mut items = Items::new();
    for name in db.keyspace_names() {
        let mut iter = db.keyspace(&name).unwrap().iter();
        while let Some(item) = iter.next_with_metadata() {
            let ((key, value), metadata) = item.unwrap();
            assert!(items.insert((name.clone(), key), (value, metadata)).is_none());
        }
    }
    items
}

#[test]
fn every_format_brings_everything_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fill(&path.join("data"));
    let expected = items(&path.join("data"));
    assert_eq!(expected.len(), 6_001);
    for name in ["items.jsonl", "items.csv", "items.bin"] {
        let exported = succeed(path, &format!("export data --output {name} --json"));
        assert_eq!(exported["records"], 6_001);
        assert_eq!(exported["keyspaces"], 2);
        let imported = succeed(path, &format!("import copy-{name} --input {name} --json"));
        assert_eq!(imported["records"], 6_001);
        assert_eq!(items(&path.join(format!("copy-{name}"))), expected, "{name}");
    }
    let partial: Vec<_> = fs::read_dir(path)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("partial"))
        .collect();
    assert!(partial.is_empty(), "{partial:?}");
}

#[test]
fn items_go_through_a_pipe() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fill(&path.join("data"));
    for format in ["jsonl", "csv", "binary"] {
        let exported = alluvium(path, &format!("export data --keyspace words --format {format}"));
        assert!(exported.status.success(), "{exported:?}");
        let mut import = command(path, &format!("import {format} --keyspace all --format {format}"))
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        import.stdin.take().unwrap().write_all(&exported.stdout).unwrap();
        assert!(import.wait().unwrap().success());
        let copied = items(&path.join(format));
        assert_eq!(copied.len(), 3_001);
        assert!(copied.keys().all(|(keyspace, _)| keyspace == "all"));
    }
}

#[test]
fn an_import_goes_on_where_it_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fill(&path.join("data"));
    let expected = items(&path.join("data"));
    for format in ["jsonl", "csv", "binary"] {
        succeed(path, &format!("export data --format {format} --output whole"));
        let whole = fs::read(path.join("whole")).unwrap();
        // The present part of the file grows: each time the import ends at the truncation and continues after what it
        // stored.
        let line = format!(
            "import {format} --format {format} --input part --resume position --persist-every 100 --json"
        );
        let mut stored = 0;
        for tenth in 1..10 {
            fs::write(path.join("part"), [&whole[..whole.len() / 10 * tenth], b"\",{"].concat()).unwrap();
            let reason = failure(path, &line);
            assert!(reason.contains("part, ") && reason.contains("expected"), "{reason}");
            let position = fs::read(path.join("position")).unwrap();
            let position: serde_json::Value = serde_json::from_slice(&position).unwrap();
            let records = position["position"]["records"].as_u64().unwrap();
            assert!(records > stored, "{format}: {records} of {tenth} tenths");
            stored = records;
        }
        fs::write(path.join("part"), &whole).unwrap();
        let last = succeed(path, &line);
        assert_eq!(last["records_before"].as_u64(), Some(stored));
        assert_eq!(last["records"].as_u64(), Some(6_001 - stored));
        assert_eq!(items(&path.join(format)), expected, "{format}");
        assert_eq!(succeed(path, &line)["records"], 0);
        fs::remove_file(path.join("position")).unwrap();
    }
}

#[test]
fn a_killed_import_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let lines: String =
        (0..200_000).map(|number| format!("{{\"key\":\"{number}\",\"value\":\"{number}\"}}\n")).collect();
    fs::write(path.join("items.jsonl"), lines).unwrap();
    let line = "import data --input items.jsonl --resume position --persist-every 1000 --json";
    let mut import = command(path, line).stdout(Stdio::null()).spawn().unwrap();
    while !path.join("position").exists() && import.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let _ = import.kill(); // SIGKILL, unless it was faster
    import.wait().unwrap();
    let last = succeed(path, line);
    let before = last["records_before"].as_u64().unwrap();
    assert!(before >= 1_000, "{last}");
    assert_eq!(before + last["records"].as_u64().unwrap(), 200_000);
    assert_eq!(items(&path.join("data")).len(), 200_000);
}

#[test]
fn in_bulk_or_not_the_last_record_of_a_key_counts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let line = |number: u32, value: &str| {
        let keyspace = number % 7;
        format!("{{\"keyspace\":\"{keyspace}\",\"key\":\"{number}\",\"value\":\"{value}\"}}\n")
    };
    let first: String = (0..3_000).map(|number| line(number, "first")).collect();
    let last: String = (0..3_000).step_by(3).map(|number| line(number, "last")).collect();
    fs::write(path.join("items.jsonl"), first + &last).unwrap();
    fs::write(path.join("more.jsonl"), (2_900..3_100).map(|number| line(number, "more")).collect::<String>())
        .unwrap();
    let mut found = Vec::new();
    for bulk in ["auto", "always", "never"] {
        assert_eq!(
            succeed(path, &format!("import {bulk} --input items.jsonl --bulk {bulk} --json"))["records"],
            4_000
        );
        succeed(path, &format!("import {bulk} --input more.jsonl --bulk {bulk} --json"));
        found.push(items(&path.join(bulk)));
    }
    assert_eq!(found[0].len(), 3_100);
    let value = |number: u32| {
        String::from_utf8(found[0][&((number % 7).to_string(), number.to_string().into())].0.clone())
    };
    assert_eq!([0, 1, 2_900].map(|number| value(number).unwrap()), ["last", "first", "more"]);
    assert!(found[0] == found[1] && found[1] == found[2]);
}

#[test]
fn a_position_belongs_to_one_import() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fs::write(path.join("one.jsonl"), "{\"key\":\"a\",\"value\":\"1\"}\n").unwrap();
    fs::write(path.join("two.jsonl"), "{\"key\":\"b\",\"value\":\"2\"}\n").unwrap();
    succeed(path, "import data --input one.jsonl --resume position");
    for other in [
        "import data --input two.jsonl --resume position",
        "import data --input one.jsonl --resume position --keyspace other",
    ] {
        let reason = failure(path, other);
        assert!(reason.contains("another import") && reason.contains("remove it"), "{reason}");
    }
    assert!(failure(path, "import fresh --input one.jsonl --resume position").contains("no database"));
    fs::write(path.join("one.jsonl"), "{\"key\":\"c\",\"value\":\"3\"}\n").unwrap();
    assert!(failure(path, "import data --input one.jsonl --resume position").contains("has changed"));
    fs::write(path.join("position"), "{}").unwrap();
    assert!(
        failure(path, "import data --input one.jsonl --resume position").contains("position of an import")
    );
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let long = "k".repeat((64 << 10) + 1);
    let lines = format!("{{\"key\":\"a\",\"value\":\"1\"}}\n{{\"key\":\"{long}\",\"value\":\"2\"}}\n");
    fs::write(path.join("long.jsonl"), lines).unwrap();
    let reason = failure(path, "import data --input long.jsonl");
    assert!(reason.contains("long.jsonl, line 2: "), "{reason}");
    assert_eq!(items(&path.join("data")).len(), 1);
    fs::write(path.join("short.csv"), "key,value\na,1\nb\n").unwrap();
    let reason = failure(path, "import data --input short.csv");
    assert!(reason.contains("short.csv, line 3: expected 2 cells"), "{reason}");
    assert!(failure(path, "import data --input absent.csv").contains("absent.csv"));
    assert!(failure(path, "export data --keyspace absent").contains("there is no keyspace \"absent\""));
    for usage in ["export data --json", "import data --resume position", "export data --format xml"] {
        assert_eq!(alluvium(path, usage).status.code(), Some(2), "{usage}");
    }
}

#[test]
fn keyspaces_are_created_in_the_order_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let rule = PrefixRule::Delimiter { byte: b'/' };
    {
        let db = Db::builder(path.join("old")).durability(Durability::Buffered).open().unwrap();
        let keyspace = db.keyspace_with("files", &KeyspaceOptions::semi_sorted(rule)).unwrap();
        for number in 0..2_000 {
            keyspace.insert(format!("directory-{}/{number}", number % 40), format!("{number}")).unwrap();
        }
        db.close().unwrap();
    }
    for format in ["jsonl", "csv", "binary"] {
        succeed(path, &format!("export old --format {format} --output file.{format}"));
        for bulk in ["always", "never"] {
            let new = format!("new-{format}-{bulk}");
            let import = format!("import {new} --format {format} --input file.{format} --bulk {bulk} --json");
            let stored = succeed(path, &format!("{import} --prefix-until /"));
            assert_eq!(stored["records"], 2_000, "{new}");
            assert_eq!(items(&path.join(&new)), items(&path.join("old")), "{new}");
            let db = Db::open_read_only(path.join(&new)).unwrap();
            let keyspace = db.keyspace("files").unwrap();
            assert_eq!(keyspace.order(), Order::SemiSorted { prefix: rule, lists_prefixes: false }, "{new}");
            assert_eq!(keyspace.scan_prefix("directory-7").unwrap().count(), 50, "{new}");
            drop((keyspace, db));
            // Once created, the keyspace keeps its order; another one is refused.
            succeed(path, &import);
            let refused = failure(path, &format!("{import} --prefix-bytes 3"));
            assert!(refused.contains("a different order"), "{refused}");
        }
    }
    fs::write(path.join("bad.jsonl"), "{\"key\":\"a/b\",\"value\":\"\"}\n{\"key\":\"c\",\"value\":\"\"}\n")
        .unwrap();
    let refused = failure(path, "import bad --format jsonl --input bad.jsonl --prefix-bytes 3");
    assert!(refused.contains("bad.jsonl, line 2") && refused.contains("no prefix"), "{refused}");
    assert_eq!(items(&path.join("bad")).len(), 1);
}
