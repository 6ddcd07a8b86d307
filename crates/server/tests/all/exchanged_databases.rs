//! `SWAPDB`: what was in one database is in the other, also after the server has ended.

use crate::common::{Running, bulk, database, error, ok};
use alluvium_protocol::Value;
use alluvium_server::{Server, ServerOptions};

#[test]
fn databases_are_exchanged_for_all_clients_and_for_good() {
    let directory = tempfile::tempdir().unwrap();
    let options = || ServerOptions { address: ([127, 0, 0, 1], 0).into(), ..Default::default() };
    let running =
        Running::run(Server::bind(options(), database(&directory)).unwrap(), tempfile::tempdir().unwrap());
    let (mut client, mut other) = (running.client(), running.client());
    client.ask(&["SET", "key", "zero"]);
    client.ask(&["HSET", "hash", "field", "value"]);
    other.ask(&["SELECT", "3"]);
    other.ask(&["SET", "key", "three"]);
    client.ask(&["WATCH", "key"]);
    assert_eq!(other.ask(&["SWAPDB", "0", "3"]), ok());
    assert_eq!((client.ask(&["GET", "key"]), other.ask(&["GET", "key"])), (bulk("three"), bulk("zero")));
    assert_eq!(other.ask(&["HGET", "hash", "field"]), bulk("value"));
    assert_eq!(other.ask(&["HSET", "hash", "other", "value"]), Value::Integer(1));
    client.ask(&["MULTI"]);
    assert_eq!(client.ask(&["SWAPDB", "0", "1"]), error("ERR Command not allowed inside a transaction"));
    client.ask(&["DISCARD"]);
    client.ask(&["WATCH", "key"]);
    other.ask(&["SWAPDB", "3", "0"]);
    other.ask(&["SWAPDB", "0", "5"]);
    client.ask(&["MULTI"]);
    client.ask(&["PING"]);
    assert_eq!(client.ask(&["EXEC"]), Value::Null);
    assert_eq!(other.ask(&["SWAPDB", "0", "16"]), error("ERR DB index is out of range"));
    assert_eq!(other.ask(&["SWAPDB", "x", "1"]), error("ERR invalid first DB index"));
    drop(running);

    let again = Running::run(Server::bind(options(), database(&directory)).unwrap(), directory);
    let mut client = again.client();
    assert_eq!(client.ask(&["EXISTS", "key"]), Value::Integer(0));
    client.ask(&["SELECT", "5"]);
    assert_eq!(client.ask(&["GET", "key"]), bulk("zero"));
    assert_eq!(client.ask(&["HLEN", "hash"]), Value::Integer(2));
}
