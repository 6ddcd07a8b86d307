//! How writes treat expiries and flags, which items have from the library or from an import.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::common::{Client, Running, bulk, database, ok};
use alluvium::{Keyspace, Metadata};
use alluvium_protocol::Value;
use alluvium_server::{Server, ServerOptions};

const FLAGS: u32 = 7;

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64
}

/// A server, a client of it, and its keyspace as opened by the library.
fn serve() -> (Running, Client, Keyspace) {
    let directory = tempfile::tempdir().unwrap();
    let db = database(&directory);
    let options = ServerOptions { address: SocketAddr::from(([127, 0, 0, 1], 0)), ..Default::default() };
    let server = Running::run(Server::bind(options, db.clone()).unwrap(), directory);
    let client = server.client();
    let keyspace = db.keyspace("default").unwrap();
    (server, client, keyspace)
}

#[test]
fn each_write_keeps_what_it_keeps_in_redis() {
    let (_server, mut client, keyspace) = serve();
    let end = now_ms() + 3_600_000;
    let old = Metadata { flags: FLAGS, expires_at_ms: Some(end) };
    let (nothing, expiry) = (Metadata::default(), Metadata { flags: 0, expires_at_ms: Some(end) });
    let integer = Value::Integer;
    for (words, reply, value, kept) in [
        (&["INCR", "key"][..], integer(6), "6", old),
        (&["DECR", "key"], integer(4), "4", old),
        (&["INCRBY", "key", "10"], integer(15), "15", old),
        (&["DECRBY", "key", "10"], integer(-5), "-5", old),
        (&["APPEND", "key", "0"], integer(2), "50", old),
        (&["SET", "key", "6", "KEEPTTL"], ok(), "6", expiry),
        (&["SET", "key", "6", "XX", "KEEPTTL"], ok(), "6", expiry),
        (&["SET", "key", "6", "KEEPTTL", "GET"], bulk("5"), "6", expiry),
        (&["SET", "key", "6", "NX"], Value::Null, "5", old),
        (&["SET", "key", "6", "NX", "KEEPTTL"], Value::Null, "5", old),
        (&["SET", "key", "6"], ok(), "6", nothing),
        (&["SET", "key", "6", "XX"], ok(), "6", nothing),
        (&["SET", "key", "6", "GET"], bulk("5"), "6", nothing),
        (&["MSET", "other", "1", "key", "6"], ok(), "6", nothing),
    ] {
        keyspace.insert_with("key", "5", old).unwrap();
        assert_eq!(client.ask(words), reply, "{words:?}");
        let found = keyspace.get_with_metadata("key").unwrap();
        assert_eq!(found, Some((value.as_bytes().to_vec(), kept)), "{words:?}");
    }
}

#[test]
fn a_failed_increment_keeps_everything() {
    let (_server, mut client, keyspace) = serve();
    let old = Metadata { flags: FLAGS, expires_at_ms: Some(now_ms() + 3_600_000) };
    keyspace.insert_with("key", "text", old).unwrap();
    assert!(matches!(client.ask(&["INCR", "key"]), Value::Error(_)));
    assert_eq!(keyspace.get_with_metadata("key").unwrap(), Some((b"text".to_vec(), old)));
}

#[test]
fn an_expired_item_leaves_nothing_behind() {
    let (_server, mut client, keyspace) = serve();
    let expired = Metadata { flags: FLAGS, expires_at_ms: Some(now_ms() - 1_000) };
    for (words, reply, value) in [
        (&["INCR", "key"][..], Value::Integer(1), "1"),
        (&["APPEND", "key", "new"], Value::Integer(3), "new"),
        (&["SET", "key", "6", "KEEPTTL"], ok(), "6"),
        (&["SET", "key", "6", "NX", "KEEPTTL"], ok(), "6"),
    ] {
        keyspace.insert_with("key", "5", expired).unwrap();
        assert_eq!(client.ask(words), reply, "{words:?}");
        let found = keyspace.get_with_metadata("key").unwrap();
        assert_eq!(found, Some((value.as_bytes().to_vec(), Metadata::default())), "{words:?}");
    }
}
