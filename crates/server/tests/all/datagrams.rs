//! Datagrams beside connections, over real sockets.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::common::{Client, Running, bulk, database, ok};
use alluvium_client::{Client as DatagramClient, ClientError};
use alluvium_protocol::Value;
use alluvium_server::{CacheSettings, CacheStore, Password, Server, ServerError, ServerOptions};

fn options() -> ServerOptions {
    ServerOptions {
        address: SocketAddr::from(([127, 0, 0, 1], 0)),
        udp_port: Some(0),
        workers: NonZeroUsize::new(2).unwrap(),
        ..ServerOptions::default()
    }
}

fn store() -> Arc<CacheStore> {
    Arc::new(CacheStore::new(CacheSettings::new(64 << 20), 2).unwrap())
}

/// A server with two workers, and a client of its datagrams.
fn running() -> (Running, DatagramClient) {
    let server = Server::with_store(options(), store()).unwrap();
    let client = DatagramClient::connect(server.udp_address().unwrap()).unwrap();
    (Running::run(server, tempfile::tempdir().unwrap()), client)
}

/// The value of a line of `INFO stats`.
fn counted(client: &mut Client, name: &str) -> u64 {
    let Value::Bulk(text) = client.ask(&["INFO", "stats"]) else { panic!("a text") };
    let text = String::from_utf8(text).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("{name} in {text}")).trim().parse().unwrap()
}

#[test]
fn datagrams_and_connections_see_the_same_items() {
    let (running, mut datagrams) = running();
    let mut client = running.client();
    let keys: Vec<String> = (0..500).map(|number| format!("key-{number}")).collect();
    for key in &keys {
        datagrams.set(key.as_bytes(), format!("of {key}").as_bytes(), 0).unwrap();
    }
    assert_eq!(client.ask(&["GET", "key-77"]), bulk("of key-77"));
    assert_eq!(client.ask(&["DBSIZE"]), Value::Integer(500));
    assert_eq!(client.ask(&["SET", "key-3", "other"]), ok());
    let asked: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
    let values = datagrams.get_many(&asked).unwrap();
    for (key, value) in keys.iter().zip(values) {
        let expected = if key == "key-3" { "other".to_owned() } else { format!("of {key}") };
        assert_eq!(value.as_deref(), Some(expected.as_bytes()));
    }
    assert!(datagrams.contains(b"key-3").unwrap());
    assert!(datagrams.delete(b"key-3").unwrap());
    assert!(!datagrams.delete(b"key-3").unwrap());
    assert_eq!(client.ask(&["GET", "key-3"]), Value::Null);
    assert!(datagrams.add(b"key-3", b"1", 100).unwrap());
    assert!(!datagrams.add(b"key-3", b"2", 100).unwrap());
    assert_eq!(client.ask(&["TTL", "key-3"]), Value::Integer(100));
    assert!(datagrams.touch(b"key-3", 0).unwrap());
    assert_eq!(client.ask(&["TTL", "key-3"]), Value::Integer(-1));
    // What is larger than a datagram is left to connections.
    let large = "x".repeat(2_000);
    assert_eq!(client.ask(&["SET", "large", &large]), ok());
    assert!(matches!(datagrams.get(b"large"), Err(ClientError::TooLarge)));
    assert!(matches!(datagrams.set(b"large", large.as_bytes(), 0), Err(ClientError::TooLarge)));
    assert!(counted(&mut client, "datagram_requests") >= 1_000);
    assert!(counted(&mut client, "datagram_bursts") > 0);
    assert_eq!(counted(&mut client, "datagrams_malformed"), 0);
    assert!(counted(&mut client, "total_commands_processed") >= 1_000);
}

#[test]
fn writes_in_datagrams_are_told() {
    let (running, mut datagrams) = running();
    let mut client = running.client();
    client.ask(&["CONFIG", "SET", "notify-keyspace-events", "KA"]);
    client.ask(&["SUBSCRIBE", "__keyspace@0__:k"]);
    datagrams.set(b"k", b"v", 0).unwrap();
    let message = Value::Array(vec![bulk("message"), bulk("__keyspace@0__:k"), bulk("set")]);
    assert_eq!(client.reply(), Some(message));
    let mut tracking = running.client();
    tracking.ask(&["HELLO", "3"]);
    tracking.ask(&["CLIENT", "TRACKING", "ON"]);
    assert_eq!(tracking.ask(&["GET", "k"]), bulk("v"));
    datagrams.delete(b"k").unwrap();
    let invalid = Value::Push(vec![bulk("invalidate"), Value::Array(vec![bulk("k")])]);
    assert_eq!(tracking.reply(), Some(invalid));
}

#[test]
fn datagrams_are_refused_where_they_cannot_be_safe() {
    let refused = |options: ServerOptions| Server::with_store(options, store()).err();
    let password = Password::new("secret");
    let error = refused(ServerOptions { password, ..options() });
    assert!(matches!(error, Some(ServerError::Datagrams(_))), "{error:?}");
    let error = refused(ServerOptions { address: SocketAddr::from(([0, 0, 0, 0], 0)), ..options() });
    assert!(matches!(error, Some(ServerError::RemoteAddress(_))), "{error:?}");
    let directory = tempfile::tempdir().unwrap();
    let error = Server::bind(options(), database(&directory)).err();
    assert!(matches!(error, Some(ServerError::Datagrams(_))), "{error:?}");
    assert!(
        Server::with_store(ServerOptions { udp_port: None, ..options() }, store())
            .unwrap()
            .udp_address()
            .is_none()
    );
}
