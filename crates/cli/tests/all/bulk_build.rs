//! Bulk builds and their versions, as job runners and people use them.

use std::fs;
use std::process::Output;

use crate::common::alluvium;
use serde_json::Value;

const HASH_KEY: &str = "000102030405060708090a0b0c0d0e0f";

fn objects(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn error(output: &Output) -> String {
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn shards_are_built_committed_adopted_and_listed() {
    let directory = tempfile::tempdir().unwrap();
    let run = |line: &str| alluvium(directory.path(), line);
    let line = |number: u32| format!("{{\"key\":\"key{number}\",\"value\":\"value{number}\"}}\n");
    fs::write(directory.path().join("items.jsonl"), (0..300).map(line).collect::<String>()).unwrap();
    fs::write(directory.path().join("secret"), format!("{HASH_KEY}\n")).unwrap();
    let shard = |number: u32, more: &str| {
        run(&format!("build-shard v/0001 --shard {number} --shards 2 --input items.jsonl {more} --json"))
    };
    let refused = error(&shard(0, &format!("--hash-key {HASH_KEY}")));
    assert!(
        refused.contains("shard of a key: expected 0, found 1") && refused.contains("--skip-others"),
        "{refused}"
    );
    assert!(error(&shard(0, "--hash-key 1234")).contains("32 hexadecimal digits"));
    let options = "--hash-key-file secret --skip-others";
    let first = objects(&shard(0, options)).remove(0);
    assert!(error(&run("commit-build v/0001")).contains("expected 2 finished shards"));
    let second = objects(&shard(1, options)).remove(0);
    let records = |object: &Value| object["records"].as_u64().unwrap();
    assert_eq!(records(&first) + records(&second), 300);
    assert!(shard(1, options).stdout.is_empty());
    let committed = objects(&run("commit-build v/0001 --checksums --json")).remove(0);
    assert_eq!((&committed["shards"], &committed["items"]), (&2.into(), &300.into()));
    assert_eq!(run("get v/0001 key7").stdout, b"value7\n");
    assert!(run("verify v/0001/shard-00001").status.success());

    let adopted = objects(&run("adopt v/0001 data --json")).remove(0);
    assert_eq!((&adopted["shards"], &adopted["copied_files"]), (&2.into(), &0.into()));
    assert!(run("put data key7 new").status.success());
    assert_eq!(run("get data key7").stdout, b"new\n");
    assert_eq!(run("get v/0001 key7").stdout, b"value7\n");
    assert!(run("verify data").status.success() && run("inspect data").status.success());

    fs::create_dir(directory.path().join("v/0002")).unwrap();
    let listed = objects(&run("versions v --check --json"));
    assert_eq!((&listed[0]["kind"], &listed[0]["fits"]), (&"build".into(), &true.into()));
    assert_eq!((&listed[1]["kind"], &listed[1]["fits"]), (&"incomplete".into(), &false.into()));
    assert!(error(&run("commit-build v/0001 --abort")).contains("not committed"));
}
