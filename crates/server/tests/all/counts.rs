//! DBSIZE is exact, in small stores and in large ones, and delays only the client that asked.

use std::num::NonZeroUsize;

use crate::common::{Client, Running, bulk, ok};
use alluvium_protocol::{Value, request};
use alluvium_server::ServerOptions;

fn options(workers: usize) -> ServerOptions {
    ServerOptions { workers: NonZeroUsize::new(workers).unwrap(), ..Default::default() }
}

fn info(client: &mut Client) -> String {
    match client.ask(&["INFO", "keyspace"]) {
        Value::Bulk(text) => String::from_utf8(text).unwrap(),
        other => panic!("no text: {other:?}"),
    }
}

/// Sets keys of these numbers, all in one pipeline.
fn fill(client: &mut Client, numbers: std::ops::Range<u32>) {
    let mut bytes = Vec::new();
    for number in numbers.clone() {
        request::encode(&["SET", &format!("key{number}"), "value"], &mut bytes);
    }
    let mut stream = client.stream.try_clone().unwrap();
    let writer = std::thread::spawn(move || std::io::Write::write_all(&mut stream, &bytes).unwrap());
    for _ in numbers {
        assert_eq!(client.reply(), Some(ok()));
    }
    writer.join().unwrap();
}

#[test]
fn dbsize_is_exact_in_a_small_store() {
    let server = Running::start(options(2));
    let mut client = server.client();
    assert_eq!(client.ask(&["DBSIZE"]), Value::Integer(0));
    client.ask(&["SET", "a", "1"]);
    client.ask(&["DEL", "a"]);
    client.ask(&["DEL", "b"]);
    assert_eq!(client.ask(&["DBSIZE"]), Value::Integer(0));
    assert_eq!(info(&mut client), "# Keyspace\r\n");
    for number in 0..1_000 {
        client.ask(&["DEL", &format!("absent{number}")]);
    }
    assert_eq!(client.ask(&["DBSIZE"]), Value::Integer(0));
    for (words, items) in [
        (&["SET", "a", "1"][..], 1),
        (&["SET", "a", "2"], 1),
        (&["MSET", "a", "3", "b", "4", "b", "5"], 2),
        (&["APPEND", "c", "x"], 3),
        (&["INCR", "d"], 4),
        (&["INCR", "d"], 4),
        (&["DEL", "a", "a", "nothing"], 3),
        (&["SET", "nothing", "1", "XX"], 3),
    ] {
        client.ask(words);
        assert_eq!(client.ask(&["DBSIZE"]), Value::Integer(items), "{words:?}");
        assert_eq!(info(&mut client), format!("# Keyspace\r\ndb0:keys={items},expires=0,avg_ttl=0\r\n"));
    }
    client.ask(&["FLUSHALL"]);
    assert_eq!(client.ask(&["DBSIZE"]), Value::Integer(0));
}

#[test]
fn dbsize_of_a_large_store_is_exact_and_answered_in_its_turn() {
    let server = Running::start(options(1));
    let mut client = server.client();
    fill(&mut client, 0..20_000);
    fill(&mut client, 10_000..25_000);
    client.ask(&["DEL", "key7", "key8"]);
    // Everything after it in the pipeline waits for it.
    let mut bytes = Vec::new();
    for words in [
        &["GET", "key1"][..],
        &["DBSIZE"],
        &["GET", "key7"],
        &["ECHO", "between"],
        &["SET", "another", "value"],
        &["DBSIZE"],
        &["GET", "key2"],
    ] {
        request::encode(words, &mut bytes);
    }
    client.send(&bytes);
    let replies: Vec<Value> = (0..7).map(|_| client.reply().unwrap()).collect();
    let value = bulk("value");
    let counted = [24_998, 24_999].map(Value::Integer);
    let [first, second] = counted;
    assert_eq!(replies, [value.clone(), first, Value::Null, bulk("between"), ok(), second.clone(), value]);
    // Known now, to INFO as well, unless a conversion of the log came between.
    let is_known = (0..100).any(|_| {
        assert_eq!(client.ask(&["DBSIZE"]), second);
        info(&mut client) == "# Keyspace\r\ndb0:keys=24999,expires=0,avg_ttl=0\r\n"
    });
    assert!(is_known);
    client.ask(&["SET", "one more", "value"]);
    assert!(info(&mut client).ends_with(",estimated=1\r\n"));
}

#[test]
fn clients_who_wait_for_a_count_hold_up_nobody() {
    let server = Running::start(options(1));
    let mut other = server.client();
    fill(&mut other, 0..20_000);
    let mut askers: Vec<Client> = (0..20).map(|_| server.client()).collect();
    for round in 0..5 {
        other.ask(&["SET", &format!("round{round}"), "value"]);
        for asker in &mut askers {
            asker.send_request(&["DBSIZE"]);
            assert_eq!(other.ask(&["PING"]), Value::Simple(b"PONG".to_vec()));
        }
        for asker in &mut askers {
            assert_eq!(asker.reply(), Some(Value::Integer(20_001 + round)));
        }
    }
}

#[test]
fn who_leaves_before_the_count_comes_is_forgotten() {
    let server = Running::start(options(1));
    let mut client = server.client();
    fill(&mut client, 0..20_000);
    for round in 0..10 {
        client.ask(&["SET", &format!("round{round}"), "value"]);
        let mut leaves = server.client();
        leaves.send_request(&["DBSIZE"]);
        drop(leaves);
        // The next client may get its slot, and must not get its answer.
        let mut comes = server.client();
        assert_eq!(comes.ask(&["ECHO", "mine"]), bulk("mine"));
    }
    // A client that has shut down its sending side still gets an answer.
    let mut half = server.client();
    half.send(b"DBSIZE\r\nECHO bye\r\n");
    half.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(half.raw_to_end(), b":20010\r\n$3\r\nbye\r\n");
    assert_eq!(client.ask(&["DBSIZE"]), Value::Integer(20_010));
}

#[test]
fn a_server_that_stops_answers_who_waits_for_a_count() {
    let server = Running::start(options(2));
    let mut client = server.client();
    fill(&mut client, 0..20_000);
    let mut waits = server.client();
    waits.send_request(&["DBSIZE"]);
    client.send_request(&["SHUTDOWN"]);
    let answer = String::from_utf8(waits.raw_to_end()).unwrap();
    let is_known = ["", ":20000\r\n", "-ERR the server is shutting down\r\n"].contains(&&*answer);
    assert!(is_known, "{answer}");
    server.join().unwrap();
}
