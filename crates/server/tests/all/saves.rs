//! Saves, backups, checks, and what the store says about itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{Client, Running, error, ok};
use alluvium::{Db, backups};
use alluvium_protocol::Value;
use alluvium_server::{CacheSettings, CacheStore, Server, ServerOptions};

/// A map reply of version 2.
fn pairs(value: Value) -> BTreeMap<String, Value> {
    let Value::Array(members) = value else { panic!("no map: {value:?}") };
    let text = |value: &Value| match value {
        Value::Bulk(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        other => panic!("no name: {other:?}"),
    };
    members.chunks(2).map(|pair| (text(&pair[0]), pair[1].clone())).collect()
}

fn info(client: &mut Client) -> BTreeMap<String, String> {
    let Value::Bulk(text) = client.ask(&["INFO", "persistence"]) else { panic!("no text") };
    let text = String::from_utf8(text).unwrap();
    text.lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

/// A server with directories for saves and backups.
fn server(directory: &tempfile::TempDir) -> Running {
    Running::start(ServerOptions {
        save_directory: Some(directory.path().join("saves")),
        saves_kept: 2,
        backup_directory: Some(directory.path().join("backups")),
        ..Default::default()
    })
}

#[test]
fn saves_are_databases_and_the_last_ones_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(&directory);
    let mut client = server.client();
    let before = info(&mut client);
    assert_eq!(client.ask(&["LASTSAVE"]), Value::Integer(before["rdb_last_save_time"].parse().unwrap()));
    assert_eq!(before["rdb_last_bgsave_time_sec"], "-1");
    for number in 1..=3 {
        assert_eq!(client.ask(&["SET", "key", &number.to_string()]), ok());
        assert_ne!(info(&mut client)["rdb_changes_since_last_save"], "0");
        assert_eq!(client.ask(&["SAVE"]), ok());
        let after = info(&mut client);
        assert_eq!(after["rdb_changes_since_last_save"], "0");
        assert_eq!(
            (&after["rdb_saves"][..], &after["rdb_last_bgsave_status"][..]),
            (&number.to_string()[..], "ok")
        );
    }
    let saved = backups(directory.path().join("saves")).unwrap();
    assert_eq!(saved.iter().map(|save| save.number).collect::<Vec<_>>(), [2, 3]);
    let values = saved.iter().map(|save| {
        let db = Db::open(&save.path).unwrap();
        let value = db.keyspace("default").unwrap().get("key").unwrap().unwrap();
        db.close().unwrap();
        value
    });
    assert_eq!(values.collect::<Vec<_>>(), [b"2", b"3"]);
    assert_eq!(client.ask(&["MULTI"]), ok());
    assert_eq!(client.ask(&["SAVE"]), error("ERR Command not allowed inside a transaction"));
}

#[test]
fn a_save_in_the_background_lets_its_client_continue() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(&directory);
    let mut client = server.client();
    client.ask(&["SET", "key", "value"]);
    assert_eq!(client.ask(&["BGSAVE"]), Value::Simple(b"Background saving started".to_vec()));
    let deadline = Instant::now() + Duration::from_secs(60);
    while info(&mut client)["rdb_bgsave_in_progress"] == "1" {
        assert!(Instant::now() < deadline, "the save does not end");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(info(&mut client)["rdb_saves"], "1");
    assert_eq!(client.ask(&["BGSAVE", "NOW"]), error("ERR syntax error"));
}

#[test]
fn a_failed_save_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("saves"), "a file").unwrap();
    let server = server(&directory);
    let mut client = server.client();
    assert!(matches!(client.ask(&["SAVE"]), Value::Error(_)));
    let after = info(&mut client);
    assert_eq!((&after["rdb_last_bgsave_status"][..], &after["rdb_saves"][..]), ("err", "0"));
    assert_eq!(after["rdb_bgsave_in_progress"], "0");
}

#[test]
fn backups_stay_below_their_directory() {
    let directory = tempfile::tempdir().unwrap();
    let server = server(&directory);
    let mut client = server.client();
    client.ask(&["SET", "key", "value"]);
    let refused = error("ERR the path must be relative to the directory for backups, and stay below it");
    for path in ["", "/tmp", "..", "a/../../b", "./a/..", "."] {
        assert_eq!(client.ask(&["ALLUVIUM.BACKUP", path]), refused, "{path:?}");
    }
    let made = pairs(client.ask(&["ALLUVIUM.BACKUP", "nightly/first"]));
    assert_eq!(made["number"], Value::Integer(1));
    assert_eq!(backups(directory.path().join("backups/nightly/first")).unwrap().len(), 1);
    let other = Running::start(Default::default());
    let mut client = other.client();
    let without = error("ERR the server was started without a directory for backups");
    assert_eq!(client.ask(&["ALLUVIUM.BACKUP", "nightly"]), without);
    let without = error("ERR the server was started without a directory for saves");
    assert_eq!(client.ask(&["BGSAVE"]), without);
}

#[test]
fn the_store_is_checked_and_described() {
    let server = Running::start(Default::default());
    let mut client = server.client();
    for number in 0..100 {
        client.ask(&["SET", &format!("key{number}"), "value"]);
    }
    let report = pairs(client.ask(&["ALLUVIUM.VERIFY"]));
    assert_eq!(report["problems"], Value::Array(Vec::new()));
    let figures = pairs(client.ask(&["ALLUVIUM.STATS"]));
    assert_eq!(figures["alluvium_puts_total"], Value::Integer(100));
    let keyspace = pairs(client.ask(&["ALLUVIUM.STATS", "default"]));
    assert_eq!(keyspace["order"], Value::Bulk(b"hash".to_vec()));
    let plan = pairs(client.ask(&["ALLUVIUM.PLAN"]));
    assert!(matches!(plan["plan"], Value::Bulk(_)) && matches!(plan["reason"], Value::Bulk(_)), "{plan:?}");
    assert!(matches!(client.ask(&["ALLUVIUM.PLAN", "nothing"]), Value::Error(_)));
}

#[test]
fn a_cache_has_nothing_to_save() {
    let store = CacheStore::new(CacheSettings::new(16 << 20), 1).unwrap();
    let options = ServerOptions { address: ([127, 0, 0, 1], 0).into(), ..Default::default() };
    let server = Server::with_store(options, Arc::new(store)).unwrap();
    let running = Running::run(server, tempfile::tempdir().unwrap());
    let mut client = running.client();
    let refused = error("ERR this server is a cache: it keeps nothing on disk");
    for command in ["SAVE", "BGSAVE", "ALLUVIUM.VERIFY", "ALLUVIUM.PLAN"] {
        assert_eq!(client.ask(&[command]), refused, "{command}");
    }
    assert!(matches!(client.ask(&["ALLUVIUM.STATS"]), Value::Array(_)));
    assert!(matches!(client.ask(&["LASTSAVE"]), Value::Integer(_)));
}
