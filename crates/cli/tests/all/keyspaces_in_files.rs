//! What export and import preserve of keyspaces, and what they report as lost.

use std::fs;
use std::path::Path;

use crate::common::alluvium;
use alluvium::{Db, Durability, KeyspaceOptions, Order, Plan, PrefixRule};

/// Runs a command that must succeed; returns its messages.
fn succeed(directory: &Path, line: &str) -> String {
    let output = alluvium(directory, line);
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// Name, order, own plan and number of items of each keyspace.
fn describe(path: &Path) -> Vec<(String, Order, Option<Plan>, u64)> {
    let db = Db::open_read_only(path).unwrap();
    let mut names = db.keyspace_names();
    names.sort();
    let describe = |name: String| {
        let keyspace = db.keyspace(&name).unwrap();
        (name, keyspace.order(), keyspace.own_plan(), keyspace.count().unwrap())
    };
    names.into_iter().map(describe).collect()
}

/// Keyspaces of all kinds, including two without items.
fn fill(path: &Path) {
    let db = Db::builder(path).durability(Durability::Buffered).open().unwrap();
    let semi_sorted = KeyspaceOptions::semi_sorted;
    let (slash, byte) = (PrefixRule::Delimiter { byte: b'/' }, PrefixRule::Delimiter { byte: 0xff });
    let length = PrefixRule::Length { bytes: 2 };
    for (name, options) in [
        ("plain", KeyspaceOptions::default()),
        ("planned", KeyspaceOptions::default().with_plan(Plan::leveled())),
        ("files", semi_sorted(slash).with_listed_prefixes()),
        ("bytes", semi_sorted(byte)),
        ("short", semi_sorted(length).with_plan(Plan::semi_sorted())),
    ] {
        let keyspace = db.keyspace_with(name, &options).unwrap();
        for number in 0..300 {
            keyspace.insert(format!("a{}/{number}", number % 7), "value").unwrap();
        }
    }
    db.keyspace("empty").unwrap();
    db.keyspace_with("empty files", &semi_sorted(slash)).unwrap();
    db.close().unwrap();
}

#[test]
fn json_lines_and_binary_files_bring_keyspaces_back_as_they_were() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fill(&path.join("data"));
    let expected = describe(&path.join("data"));
    assert_eq!(expected.len(), 7);
    for name in ["items.jsonl", "items.bin"] {
        assert_eq!(succeed(path, &format!("export data --output {name}")), "", "{name}");
        for bulk in ["auto", "never"] {
            let copy = format!("copy-{bulk}-{name}");
            assert_eq!(succeed(path, &format!("import {copy} --input {name} --bulk {bulk}")), "", "{name}");
            assert_eq!(describe(&path.join(&copy)), expected, "{copy}");
            let prefixes = alluvium(path, &format!("scan {copy} --keyspace files --prefixes"));
            assert_eq!(String::from_utf8(prefixes.stdout).unwrap().lines().count(), 7, "{copy}");
            // Importing again into the same database changes nothing, and prints no message.
            assert_eq!(succeed(path, &format!("import {copy} --input {name}")), "");
            assert_eq!(describe(&path.join(&copy)), expected, "{copy}");
        }
    }
    // Keyspaces that need no line have none, since other programs read these files.
    let lines = fs::read_to_string(path.join("items.jsonl")).unwrap();
    let heads: Vec<&str> = lines.lines().filter(|line| line.contains("\"order\"")).collect();
    assert_eq!(heads.len(), 6, "{heads:?}");
    assert!(heads.iter().all(|line| !line.contains("\"plain\"")), "{heads:?}");
}

#[test]
fn csv_says_what_it_loses() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fill(&path.join("data"));
    let said = succeed(path, "export data --output items.csv");
    for loss in [
        "order of keyspace \"files\": import with --prefix-until '/' --list-prefixes",
        "order of keyspace \"short\": import with --prefix-bytes 2",
        "order of keyspace \"bytes\": export as jsonl or binary",
        "plan of keyspace \"planned\"",
        "plan of keyspace \"short\"",
        "keyspace \"empty\", which has no items",
        "keyspace \"empty files\", which has no items",
    ] {
        assert!(said.contains(loss), "{loss}: {said}");
    }
    assert!(!said.contains("plain"), "{said}");
    assert_eq!(succeed(path, "export data --keyspace plain --output plain.csv"), "");
}

#[test]
fn what_is_there_stays_and_what_was_asked_for_counts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fill(&path.join("data"));
    succeed(path, "export data --keyspace files --output files.bin");
    // A keyspace of another order exists.
    succeed(path, "put other a/1 value --keyspace files");
    let said = succeed(path, "import other --input files.bin");
    assert!(said.contains("\"files\" is there with another order"), "{said}");
    assert_eq!(describe(&path.join("other"))[0].1, Order::Hashed);
    // First another name, then another order.
    succeed(path, "import renamed --input files.bin --keyspace tree");
    let files = Order::SemiSorted { prefix: PrefixRule::Delimiter { byte: b'/' }, lists_prefixes: true };
    assert_eq!(describe(&path.join("renamed")), [("tree".to_owned(), files, None, 300)]);
    succeed(path, "import asked --input files.bin --prefix-bytes 1");
    let asked = Order::SemiSorted { prefix: PrefixRule::Length { bytes: 1 }, lists_prefixes: false };
    assert_eq!(describe(&path.join("asked")), [("files".to_owned(), asked, None, 300)]);
    // Two keyspaces into one: the first determines the order.
    succeed(path, "export data --keyspace files --keyspace planned --output two.jsonl");
    let said = succeed(path, "import joined --input two.jsonl --keyspace all");
    assert!(said.contains("\"all\" is there with another order"), "{said}");
    // A plan that this program does not know is refused with its location.
    let head = "{\"keyspace\":\"x\",\"order\":\"hashed\",\"plan\":\"{}\"}\n";
    fs::write(path.join("bad.jsonl"), head).unwrap();
    let refused = alluvium(path, "import bad --input bad.jsonl");
    let message = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && message.contains("bad.jsonl, line 1: "), "{message}");
}

#[test]
fn an_import_that_stopped_before_the_first_item_of_a_keyspace_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    fill(&path.join("data"));
    for name in ["items.jsonl", "items.bin"] {
        succeed(path, &format!("export data --output {name}"));
        let whole = fs::read(path.join(name)).unwrap();
        // Cut at many places, then whole: the position is after an item or after a keyspace.
        let copy = format!("copy-{name}");
        let import = format!("import {copy} --input {name} --resume {name}.position --persist-every 7");
        for part in 1..8 {
            fs::write(path.join(name), &whole[..whole.len() * part / 8]).unwrap();
            // A cut between two lines leaves a valid file.
            let _ = alluvium(path, &import);
        }
        fs::write(path.join(name), &whole).unwrap();
        succeed(path, &import);
        assert_eq!(describe(&path.join(&copy)), describe(&path.join("data")), "{name}");
    }
}
