//! The command as users run it: output and exit codes.

use crate::common::alluvium;
use std::process::Output;

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn text(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

#[test]
fn items_are_put_found_scanned_and_deleted() {
    let directory = tempfile::tempdir().unwrap();
    let run = |line: &str| alluvium(directory.path(), line);
    assert_eq!(code(&run("put data greeting hello")), 0);
    assert_eq!(code(&run("put data --hex 00ff a5a6")), 0);
    assert_eq!(text(&run("get data greeting")), "hello\n");
    assert_eq!(text(&run("get data greeting --raw")), "hello");
    assert_eq!(text(&run("get data greeting --json")), "{\"key\":\"greeting\",\"value\":\"hello\"}\n");
    assert_eq!(text(&run("get data --hex 00ff")), "a5a6\n");
    assert_eq!(text(&run("scan data --hex")).lines().count(), 2);
    assert_eq!(text(&run("scan data --limit 1 --json")).lines().count(), 1);
    assert_eq!(text(&run("scan data --keyspace other")), "");
    assert_eq!(code(&run("delete data greeting")), 0);
    assert_eq!(code(&run("delete data greeting")), 1);
    assert_eq!(code(&run("get data greeting")), 1);
}

#[test]
fn prefixes_are_scanned() {
    let directory = tempfile::tempdir().unwrap();
    let run = |line: &str| alluvium(directory.path(), line);
    for (key, value) in [("a/1", "x"), ("a/2", "y"), ("ab/1", "z"), ("b/1", "w")] {
        assert_eq!(code(&run(&format!("put data --keyspace files --prefix-until / {key} {value}"))), 0);
        assert_eq!(code(&run(&format!("put data {key} {value}"))), 0);
    }
    assert_eq!(text(&run("scan data --keyspace files --prefix a --keys")).lines().count(), 2);
    assert_eq!(text(&run("scan data --keyspace files --prefix a --limit 1")).lines().count(), 1);
    assert_eq!(text(&run("scan data --keyspace files --keys")).lines().count(), 4);
    assert_eq!(text(&run("scan data --prefix a --keys")).lines().count(), 3);
    assert_eq!(code(&run("put data --keyspace files --prefix-bytes 2 c/1 v")), 1);
    assert_eq!(code(&run("put data --prefix-until xy c/1 v")), 2);
}

#[test]
fn prefixes_are_listed_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let run = |line: &str| alluvium(directory.path(), line);
    for key in ["music/c", "photos/a", "photos/b", "drafts/x", "Music/d"] {
        let put = format!("put data --keyspace files --prefix-until / --list-prefixes {key} value");
        assert_eq!(code(&run(&put)), 0);
    }
    assert_eq!(code(&run("delete data --keyspace files drafts/x")), 0);
    assert_eq!(text(&run("scan data --keyspace files --prefixes")), "Music\nmusic\nphotos\n");
    assert_eq!(text(&run("scan data --keyspace files --prefixes --from n")), "photos\n");
    let json = run("scan data --keyspace files --prefixes --from mu --limit 1 --json");
    assert_eq!(text(&json), "{\"prefix\":\"music\"}\n");
    assert_eq!(code(&run("put data --keyspace plain --prefix-until / a/1 x")), 0);
    let refused = run("scan data --keyspace plain --prefixes");
    assert_eq!(code(&refused), 1);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("does not list its prefixes"));
    assert_eq!(code(&run("put data --list-prefixes a/1 x")), 2);
    assert_eq!(code(&run("scan data --from a")), 2);
}

#[test]
fn wrong_usage_is_told_from_failure() {
    let directory = tempfile::tempdir().unwrap();
    let run = |line: &str| alluvium(directory.path(), line);
    assert_eq!(code(&run("get")), 2);
    assert_eq!(code(&run("fetch data key")), 2);
    assert_eq!(code(&run("put data --hex xyz 00")), 2);
    assert_eq!(code(&run("bench store --key-size 3")), 2);
    let absent = run("get data key");
    assert_eq!(code(&absent), 1);
    assert!(String::from_utf8_lossy(&absent.stderr).contains("no database"), "{absent:?}");
    assert!(!directory.path().join("data").exists());
}

#[test]
fn databases_are_inspected_and_verified() {
    let directory = tempfile::tempdir().unwrap();
    let run = |line: &str| alluvium(directory.path(), line);
    run("put data --keyspace chunks key value");
    let inspected: serde_json::Value = serde_json::from_str(text(&run("inspect data --json"))).unwrap();
    assert_eq!(inspected["keyspaces"][0]["name"], "chunks");
    assert_eq!(inspected["keyspaces"][0]["items"], 1);
    assert!(text(&run("inspect data")).contains("chunks"));
    let verified = run("verify data --json");
    assert_eq!(code(&verified), 0);
    let verified: serde_json::Value = serde_json::from_str(text(&verified)).unwrap();
    assert_eq!(verified["problems"].as_array().unwrap().len(), 0);
}

#[test]
fn young_tables_lie_in_the_directory_that_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let run = |line: &str| alluvium(directory.path(), line);
    for number in 0..3 {
        assert_eq!(code(&run(&format!("put data --young-dir young key-{number} value-{number}"))), 0);
    }
    let tables = std::fs::read_dir(directory.path().join("young")).unwrap();
    let names = tables.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(names.filter(|name| name.starts_with("table-")).count() > 0);
    assert_eq!(text(&run("get data --young-dir young key-1")), "value-1\n");
    assert_eq!(code(&run("verify data --young-dir young")), 0);
    // Without it the newest items would be missing: the command fails.
    let refused = run("get data key-1");
    assert_eq!(code(&refused), 1);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("director"), "{refused:?}");
    std::fs::create_dir(directory.path().join("other")).unwrap();
    assert_eq!(code(&run("get data --young-dir other key-1")), 1);
    assert_eq!(text(&run("get data --young-dir young key-2")), "value-2\n");
}

#[test]
fn benchmarks_print_one_object_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let output = alluvium(
        directory.path(),
        "bench store --items 2000 --phases load,get,scan --threads 2 --raw-seconds 0 --json",
    );
    assert_eq!(code(&output), 0, "{output:?}");
    let cases: Vec<String> = text(&output)
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["case"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(cases, ["load", "get", "scan"]);
}
