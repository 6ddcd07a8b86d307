//! Compact, stat and completions as users run them, and the message if a database is in use.

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

use crate::common::{alluvium, command};
use alluvium::Db;
use serde_json::Value;

fn object(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn what_a_command_did_is_one_object() {
    let directory = tempfile::tempdir().unwrap();
    let run = |line: &str| alluvium(directory.path(), line);
    assert_eq!(
        object(&run("put data key value --json")),
        serde_json::json!({"key": "key", "value_bytes": 5})
    );
    assert_eq!(object(&run("delete data key --json")), serde_json::json!({"key": "key", "deleted": true}));
    let absent = run("delete data key --json");
    assert_eq!((absent.status.code(), absent.stdout.len()), (Some(1), 0));
    assert!(run("put data key value").stdout.is_empty());
}

#[test]
fn compaction_merges_all_runs() {
    let directory = tempfile::tempdir().unwrap();
    let run = |line: &str| alluvium(directory.path(), line);
    for number in 0..5 {
        run(&format!("put data key-{number} value"));
    }
    run("delete data key-0");
    let compacted = object(&run("compact data --json"));
    assert_eq!(compacted["items"], 4);
    assert!(compacted["bytes_before"].as_u64() > Some(0) && compacted["bytes_after"].as_u64() > Some(0));
    let stat = object(&run("stat data --json"));
    let items: Vec<_> =
        stat["levels"].as_array().unwrap().iter().map(|level| level["items"].as_u64().unwrap()).collect();
    let (last, younger) = items.split_last().unwrap();
    assert_eq!((*last, younger.iter().sum::<u64>()), (4, 0), "{items:?}");
    let text = String::from_utf8(run("stat data").stdout).unwrap();
    assert!(["level 1", "write buffer", "log written"].iter().all(|row| text.contains(row)), "{text}");
    assert!(String::from_utf8(run("compact data").stdout).unwrap().starts_with("4 items: "));
}

#[test]
fn a_checkpoint_is_a_database_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let run = |line: &str| alluvium(directory.path(), line);
    run("put data key before");
    let made = object(&run("checkpoint data copy --json"));
    assert_eq!(
        (&made["items"], &made["linked_tables"], &made["copied_bytes"]),
        (&1.into(), &1.into(), &0.into())
    );
    run("put data key after");
    run("compact data");
    assert_eq!(run("get copy key").stdout, b"before\n");
    assert_eq!(run("get data key").stdout, b"after\n");
    let again = run("checkpoint data copy");
    assert!(!again.status.success() && String::from_utf8_lossy(&again.stderr).contains("empty directory"));
}

#[test]
fn watching_goes_on_until_interrupted() {
    let directory = tempfile::tempdir().unwrap();
    alluvium(directory.path(), "put data key value");
    let mut watch =
        command(directory.path(), "stat data --watch 0.1 --json").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    for _ in 0..3 {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["items"], 1);
        assert!(line["at_ms"].as_u64() > Some(0));
    }
    let kill = Command::new("kill").args(["-INT", &watch.id().to_string()]).status().unwrap();
    assert!(kill.success());
    assert!(lines.all(|line| line.is_ok()));
    assert_eq!(watch.wait().unwrap().code(), Some(0));
    assert_eq!(alluvium(directory.path(), "stat data --watch 0").status.code(), Some(2));
}

#[test]
fn a_database_in_use_is_said_to_be() {
    let directory = tempfile::tempdir().unwrap();
    let db = Db::open(directory.path().join("data")).unwrap();
    for line in ["stat data", "compact data", "export data", "get data key"] {
        let output = alluvium(directory.path(), line);
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(message.contains("is in use by") && message.contains("a server answers"), "{message}");
    }
    db.close().unwrap();
    assert!(alluvium(directory.path(), "stat data").status.success());
}

#[test]
fn completions_name_the_commands() {
    let directory = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = alluvium(directory.path(), &format!("completions {shell}")).stdout;
        assert!(String::from_utf8(script).unwrap().contains("export"), "{shell}");
    }
}
