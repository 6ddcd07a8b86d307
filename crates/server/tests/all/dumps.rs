//! `DUMP` and `RESTORE` of all types.

use crate::common::{Client, Running, bulk, error, ok};
use alluvium_protocol::{Value, dump, request};

fn ask_bytes(client: &mut Client, words: &[&[u8]]) -> Value {
    let mut bytes = Vec::new();
    request::encode(words, &mut bytes);
    client.send(&bytes);
    client.reply().expect("a reply")
}

fn dumped(client: &mut Client, key: &str) -> Vec<u8> {
    match client.ask(&["DUMP", key]) {
        Value::Bulk(payload) => payload,
        other => panic!("no payload: {other:?}"),
    }
}

#[test]
fn collections_are_restored_under_other_keys() {
    let server = Running::start(Default::default());
    let mut client = server.client();
    client.ask(&["HSET", "hash", "a", "1", "b", "text", "", "empty"]);
    client.ask(&["SADD", "set", "1", "two", ""]);
    assert_eq!(client.ask(&["DUMP", "nothing"]), Value::Null);
    let (hash, set) = (dumped(&mut client, "hash"), dumped(&mut client, "set"));
    assert_eq!(
        ask_bytes(&mut client, &[b"RESTORE", b"hash", b"0", &hash]),
        error("BUSYKEY Target key name already exists.")
    );
    assert_eq!(ask_bytes(&mut client, &[b"RESTORE", b"copy", b"0", &hash]), ok());
    assert_eq!(client.ask(&["HGET", "copy", "b"]), bulk("text"));
    assert_eq!(client.ask(&["HLEN", "copy"]), Value::Integer(3));
    // Another type, which is replaced, and a time to live.
    assert_eq!(ask_bytes(&mut client, &[b"RESTORE", b"copy", b"60000", &set, b"REPLACE"]), ok());
    assert_eq!(client.ask(&["SCARD", "copy"]), Value::Integer(3));
    assert_eq!(client.ask(&["SISMEMBER", "copy", ""]), Value::Integer(1));
    assert!(matches!(client.ask(&["PTTL", "copy"]), Value::Integer(1..=60_000)));
    assert_eq!(ask_bytes(&mut client, &[b"RESTORE", b"copy", b"1", &set, b"REPLACE", b"ABSTTL"]), ok());
    assert_eq!(client.ask(&["EXISTS", "copy"]), Value::Integer(0));
    // What is restored can be changed.
    assert_eq!(ask_bytes(&mut client, &[b"RESTORE", b"again", b"0", &hash]), ok());
    assert_eq!(client.ask(&["HDEL", "again", "a", "b", ""]), Value::Integer(3));
    assert_eq!(client.ask(&["EXISTS", "again"]), Value::Integer(0));
}

#[test]
fn wrong_payloads_change_nothing() {
    let server = Running::start(Default::default());
    let mut client = server.client();
    client.ask(&["SET", "key", "value"]);
    let twice = dump::encode_set([&b"a"[..], b"a"].into_iter());
    let restored = ask_bytes(&mut client, &[b"RESTORE", b"key", b"0", &twice, b"REPLACE"]);
    assert_eq!(restored, error("ERR Bad data format"));
    let mut damaged = dump::encode_set([&b"a"[..]].into_iter());
    damaged[1] ^= 1;
    let restored = ask_bytes(&mut client, &[b"RESTORE", b"key", b"0", &damaged, b"REPLACE"]);
    assert_eq!(restored, error("ERR DUMP payload version or checksum are wrong"));
    assert_eq!(client.ask(&["GET", "key"]), bulk("value"));
}
