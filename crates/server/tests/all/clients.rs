//! What clients see of each other and do to each other: `CLIENT LIST`, `KILL`, `PAUSE` and `REPLY`.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use crate::common::{Client, Running, bulk, ok};
use alluvium_protocol::Value;
use alluvium_server::ServerOptions;

/// With several workers, so that most clients belong to others.
fn server() -> Running {
    Running::start(ServerOptions { workers: NonZeroUsize::new(3).unwrap(), ..Default::default() })
}

fn text(value: Value) -> String {
    match value {
        Value::Bulk(bytes) => String::from_utf8(bytes).unwrap(),
        other => panic!("no text: {other:?}"),
    }
}

fn id(client: &mut Client) -> i64 {
    match client.ask(&["CLIENT", "ID"]) {
        Value::Integer(id) => id,
        other => panic!("no number: {other:?}"),
    }
}

#[test]
fn the_list_shows_clients_of_all_workers() {
    let server = server();
    let mut clients: Vec<Client> = (0..6).map(|_| server.client()).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.ask(&["CLIENT", "SETNAME", &format!("name-{number}")]), ok());
    }
    assert_eq!(clients[3].ask(&["SELECT", "5"]), ok());
    assert_eq!(clients[4].ask(&["MULTI"]), ok());
    // Workers say what their clients do a moment after these get their replies.
    let began = Instant::now();
    let list = loop {
        let list = text(clients[0].ask(&["CLIENT", "LIST"]));
        if list.contains(" cmd=select ") && list.contains(" flags=x ") {
            break list;
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{list}");
    };
    assert_eq!(list.lines().count(), 6);
    for (number, line) in list.lines().enumerate() {
        assert!(line.contains(&format!(" name=name-{number} ")), "{line}");
    }
    let line = |number: usize| list.lines().nth(number).unwrap();
    assert!(line(0).contains(" flags=N ") && line(0).contains(" cmd=client|list "), "{list}");
    assert!(line(0).contains(" qbuf=26 "), "{list}");
    assert!(line(3).contains(" db=5 ") && line(3).contains(" cmd=select "), "{list}");
    assert!(line(4).contains(" flags=x ") && line(4).contains(" multi=0 "), "{list}");
    let third = id(&mut clients[2]).to_string();
    let list = text(clients[0].ask(&["CLIENT", "LIST", "ID", &third, "77"]));
    assert!(list.starts_with(&format!("id={third} ")) && list.lines().count() == 1, "{list}");
    drop(clients.pop());
    let began = Instant::now();
    while text(clients[0].ask(&["CLIENT", "LIST"])).contains("name-5") {
        assert!(began.elapsed() < Duration::from_secs(10));
    }
}

#[test]
fn killed_clients_are_gone() {
    let server = server();
    let mut clients: Vec<Client> = (0..6).map(|_| server.client()).collect();
    let ids: Vec<String> = clients.iter_mut().map(|client| id(client).to_string()).collect();
    assert_eq!(clients[0].ask(&["CLIENT", "KILL", "ID", &ids[1]]), Value::Integer(1));
    assert_eq!(clients[0].ask(&["CLIENT", "KILL", "ID", &ids[1]]), Value::Integer(0));
    assert_eq!(clients[1].reply(), None);
    let address = clients[2].stream.local_addr().unwrap().to_string();
    assert_eq!(clients[0].ask(&["CLIENT", "KILL", &address]), ok());
    assert_eq!(clients[2].reply(), None);
    let failure = clients[0].ask(&["CLIENT", "KILL", &address]);
    assert_eq!(failure, Value::Error(b"ERR No such client".to_vec()));
    assert_eq!(clients[0].ask(&["CLIENT", "KILL", "TYPE", "normal"]), Value::Integer(3));
    assert_eq!(clients[5].reply(), None);
    // At last itself, after the reply.
    assert_eq!(clients[0].ask(&["CLIENT", "KILL", "SKIPME", "no"]), Value::Integer(1));
    assert_eq!(clients[0].reply(), None);
    assert_eq!(server.client().ask(&["PING"]), Value::Simple(b"PONG".to_vec()));
}

#[test]
fn paused_clients_wait() {
    let server = server();
    let [mut other, mut first, mut second] = [server.client(), server.client(), server.client()];
    assert_eq!(first.ask(&["SET", "key", "before"]), ok());
    assert_eq!(other.ask(&["CLIENT", "PAUSE", "60000", "WRITE"]), ok());
    first.send_request(&["SET", "key", "after"]);
    first.send_request(&["GET", "key"]);
    let began = Instant::now();
    while !text(other.ask(&["INFO", "clients"])).contains("blocked_clients:1\r\n") {
        assert!(began.elapsed() < Duration::from_secs(10));
    }
    assert_eq!(second.ask(&["GET", "key"]), bulk("before"));
    assert_eq!(other.ask(&["CLIENT", "UNPAUSE"]), ok());
    assert_eq!(first.reply(), Some(ok()));
    assert_eq!(first.reply(), Some(bulk("after")));
    // A pause ends by itself as well.
    let began = Instant::now();
    assert_eq!(other.ask(&["CLIENT", "PAUSE", "200"]), ok());
    assert_eq!(second.ask(&["GET", "key"]), bulk("after"));
    assert!(began.elapsed() >= Duration::from_millis(200));
    assert!(text(other.ask(&["INFO", "clients"])).contains("blocked_clients:0\r\n"));
}

#[test]
fn replies_are_not_sent_to_those_who_want_none() {
    let server = server();
    let mut client = server.client();
    client.send_request(&["CLIENT", "REPLY", "OFF"]);
    for _ in 0..3 {
        client.send_request(&["INCR", "n"]);
        client.send_request(&["GET", "n"]);
        client.send_request(&["DBSIZE"]);
        client.send_request(&["what"]);
    }
    client.send_request(&["CLIENT", "REPLY", "ON"]);
    assert_eq!(client.reply(), Some(ok()));
    assert_eq!(client.ask(&["GET", "n"]), bulk("3"));
    client.send_request(&["CLIENT", "REPLY", "SKIP"]);
    client.send_request(&["GET", "n"]);
    client.send_request(&["INCR", "n"]);
    assert_eq!(client.reply(), Some(Value::Integer(4)));
    client.send_request(&["CLIENT", "REPLY", "SKIP"]);
    client.send_request(&["CLIENT", "REPLY", "ON"]);
    assert_eq!(client.reply(), Some(ok()));
    assert_eq!(client.ask(&["GET", "n"]), bulk("4"));
}
