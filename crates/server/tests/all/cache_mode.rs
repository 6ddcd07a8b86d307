//! A cache behind the server, for clients of both protocols.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::common::{Client, Running, bulk, error, ok};
use alluvium_protocol::Value;
use alluvium_server::{CacheSettings, CacheStore, Compressed, Server, ServerOptions};

const MEMORY_BYTES: u64 = 64 << 20;

fn running() -> Running {
    running_with(CacheSettings::new(MEMORY_BYTES))
}

fn running_with(settings: CacheSettings) -> Running {
    let options = ServerOptions { address: SocketAddr::from(([127, 0, 0, 1], 0)), ..Default::default() };
    let store = CacheStore::new(settings, options.workers.get()).unwrap();
    let server = Server::with_store(options, Arc::new(store)).unwrap();
    Running::run(server, tempfile::tempdir().unwrap())
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

fn queued() -> Value {
    Value::Simple(b"QUEUED".to_vec())
}

#[test]
fn strings_are_stored_counted_and_removed() {
    let running = running();
    let mut client = running.client();
    for (words, reply) in [
        (&["SET", "a", "1"][..], ok()),
        (&["INCR", "a"], Value::Integer(2)),
        (&["APPEND", "a", "0"], Value::Integer(2)),
        (&["GET", "a"], bulk("20")),
        (&["SET", "a", "x", "NX"], Value::Null),
        (&["MSET", "b", "2", "c", "3"], ok()),
        (&["MGET", "a", "b", "c", "d"], Value::Array(vec![bulk("20"), bulk("2"), bulk("3"), Value::Null])),
        (&["DEL", "b", "d"], Value::Integer(1)),
        (&["EXISTS", "a", "b", "c"], Value::Integer(2)),
        (&["DBSIZE"], Value::Integer(2)),
        (&["TYPE", "a"], Value::Simple(b"string".to_vec())),
        (&["FLUSHALL"], ok()),
        (&["DBSIZE"], Value::Integer(0)),
    ] {
        assert_eq!(client.ask(words), reply, "{words:?}");
    }
}

#[test]
fn expiry_is_by_the_time_of_day() {
    let running = running();
    let mut client = running.client();
    let at_ms = now_ms() + 100_000;
    client.ask(&["SET", "a", "1"]);
    assert_eq!(client.ask(&["PEXPIREAT", "a", &at_ms.to_string()]), Value::Integer(1));
    assert_eq!(client.ask(&["PEXPIRETIME", "a"]), Value::Integer(at_ms));
    assert_eq!(client.ask(&["INCR", "a"]), Value::Integer(2));
    assert_eq!(client.ask(&["PEXPIRETIME", "a"]), Value::Integer(at_ms));
    assert_eq!(client.ask(&["PERSIST", "a"]), Value::Integer(1));
    assert_eq!(client.ask(&["TTL", "a"]), Value::Integer(-1));
    client.ask(&["SET", "b", "1", "PX", "50"]);
    assert_eq!(client.ask(&["DBSIZE"]), Value::Integer(2));
    std::thread::sleep(Duration::from_millis(80));
    assert_eq!(client.ask(&["GET", "b"]), Value::Null);
    assert_eq!(client.ask(&["DBSIZE"]), Value::Integer(1), "exact, though nothing has removed the item");
}

#[test]
fn databases_are_apart() {
    let running = running();
    let mut client = running.client();
    let mut other = running.client();
    assert_eq!(other.ask(&["SELECT", "7"]), ok());
    for number in 0..100 {
        let key = format!("key{number}");
        client.ask(&["SET", &key, "zero"]);
        other.ask(&["SET", &key, "seven"]);
    }
    client.send(b"*3\r\n$3\r\nSET\r\n$3\r\n\xff\x07k\r\n$1\r\nx\r\n");
    assert_eq!(client.reply(), Some(ok()));
    assert_eq!(other.ask(&["EXISTS", "k"]), Value::Integer(0));
    assert_eq!(client.ask(&["GET", "key7"]), bulk("zero"));
    assert_eq!(other.ask(&["GET", "key7"]), bulk("seven"));
    assert_eq!((client.ask(&["DBSIZE"]), other.ask(&["DBSIZE"])), (Value::Integer(101), Value::Integer(100)));
    assert_eq!(other.ask(&["FLUSHDB"]), ok());
    assert_eq!((client.ask(&["DBSIZE"]), other.ask(&["DBSIZE"])), (Value::Integer(101), Value::Integer(0)));
}

#[test]
fn a_scan_visits_every_key() {
    let running = running();
    let mut client = running.client();
    for number in 0..5000 {
        client.send_request(&["SET", &format!("key{number}"), "x"]);
    }
    (0..5000).for_each(|_| assert_eq!(client.reply(), Some(ok())));
    let (mut cursor, mut keys, mut calls) = ("0".to_owned(), std::collections::BTreeSet::new(), 0);
    loop {
        let Value::Array(parts) = client.ask(&["SCAN", &cursor, "COUNT", "50"]) else { panic!("no array") };
        let [Value::Bulk(next), Value::Array(found)] = &parts[..] else { panic!("{parts:?}") };
        found.iter().for_each(|key| {
            keys.insert(format!("{key:?}"));
        });
        cursor = String::from_utf8(next.clone()).unwrap();
        calls += 1;
        assert!(calls < 5000, "it ends");
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(keys.len(), 5000);
}

#[test]
fn a_transaction_takes_effect_at_one_moment() {
    let running = running();
    let mut client = running.client();
    client.ask(&["MSET", "a", "0", "b", "0"]);
    let address = running.address;
    let writer = std::thread::spawn(move || {
        let mut client = Client::connect(address);
        for _ in 0..500 {
            for words in [&["MULTI"][..], &["INCR", "a"], &["INCR", "b"], &["EXEC"]] {
                client.ask(words);
            }
        }
    });
    let mut last = 0;
    while last < 500 {
        let Value::Array(values) = client.ask(&["MGET", "a", "b"]) else { panic!("no array") };
        assert_eq!(values[0], values[1]);
        let Value::Bulk(text) = &values[0] else { panic!("{values:?}") };
        last = String::from_utf8(text.clone()).unwrap().parse().unwrap();
    }
    writer.join().unwrap();
}

#[test]
fn a_watched_key_that_changes_prevents_the_transaction() {
    let running = running();
    let (mut client, mut other) = (running.client(), running.client());
    client.ask(&["SET", "a", "1"]);
    client.ask(&["WATCH", "a"]);
    other.ask(&["SET", "a", "2"]);
    assert_eq!(client.ask(&["MULTI"]), ok());
    assert_eq!(client.ask(&["SET", "a", "3"]), queued());
    assert_eq!(client.ask(&["EXEC"]), Value::Null);
    client.ask(&["WATCH", "a", "b"]);
    for words in [&["MULTI"][..], &["SET", "a", "3"], &["DEL", "b"], &["DBSIZE"], &["INFO"], &["GET", "a"]] {
        client.ask(words);
    }
    let Value::Array(replies) = client.ask(&["EXEC"]) else { panic!("no array") };
    assert_eq!((&replies[0], &replies[1], &replies[2]), (&ok(), &Value::Integer(0), &Value::Integer(1)));
    assert_eq!(replies[4], bulk("3"));
}

#[test]
fn what_a_cache_cannot_do_is_refused() {
    let running = running();
    let mut client = running.client();
    let refused = error("ERR this store keeps strings only, no hashes and sets");
    assert_eq!(client.ask(&["HSET", "h", "field", "value"]), refused);
    assert_eq!(client.ask(&["SADD", "s", "member"]), refused);
    assert_eq!(client.ask(&["EXISTS", "h", "s"]), Value::Integer(0));
    let Value::Error(text) = client.ask(&["SET", "a", &"x".repeat(20 << 20)]) else { panic!("stored") };
    assert!(text.starts_with(b"ERR the item is too large"), "{}", text.escape_ascii());
}

#[test]
fn a_full_cache_forgets_and_says_so() {
    let running = running();
    let mut client = running.client();
    let value = "v".repeat(10_000);
    for number in 0..20_000 {
        client.send_request(&["SET", &format!("key{number}"), &value]);
        assert_eq!(client.reply(), Some(ok()));
    }
    assert_eq!(client.ask(&["GET", "key19999"]), bulk(&value));
    let Value::Bulk(info) = client.ask(&["INFO", "memory"]) else { panic!("no text") };
    let info = String::from_utf8(info).unwrap();
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
    assert!(used.parse::<u64>().unwrap() <= MEMORY_BYTES, "{info}");
    assert!(info.contains(&format!("maxmemory:{MEMORY_BYTES}\r\n")), "{info}");
    assert!(info.contains("maxmemory_policy:allkeys-lru\r\n"), "{info}");
}

#[test]
fn memcached_clients_are_served() {
    let running = running();
    let mut client = running.client();
    client.send(b"set a 5 100 2\r\nhi\r\nmg a t v f\r\nget a b\r\nmd a I\r\nmg a\r\nmg a\r\nincr a 1\r\n");
    let expected = "STORED\r\nVA 2 t100 f5\r\nhi\r\nVALUE a 5 2\r\nhi\r\nEND\r\nHD\r\nHD X W\r\nHD Z X\r\n\
                    CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
    assert_eq!(String::from_utf8(client.raw(expected.len())).unwrap(), expected);
    client.send(b"flush_all\r\nget a\r\n");
    assert_eq!(client.raw(9), b"OK\r\nEND\r\n");
}

#[test]
fn a_watched_key_that_was_written_prevents_execution_though_it_is_as_before() {
    let running = running();
    let (mut one, mut two) = (running.client(), running.client());
    for (before, changes, is_executed) in [
        (&["SET", "a", "1"][..], &[&["SET", "a", "2"][..], &["SET", "a", "1"]][..], false),
        (&["SET", "a", "1"], &[&["SET", "a", "1"]], false),
        (&["SET", "a", "1"], &[&["DEL", "a"], &["SET", "a", "1"]], false),
        (&["SET", "a", "1"], &[&["FLUSHALL"], &["SET", "a", "1"]], false),
        (&["SET", "a", "1"], &[&["INCR", "a"], &["DECR", "a"]], false),
        (&["SET", "a", "1"], &[&["DEL", "a"]], false),
        (&["DEL", "a"], &[&["SET", "a", "1"]], false),
        (&["DEL", "a"], &[&["SET", "a", "1"], &["DEL", "a"]], false),
        (&["DEL", "a"], &[&["FLUSHALL"]], true),
        (&["SET", "a", "1"], &[&["SETNX", "a", "2"], &["PERSIST", "a"], &["GET", "a"]], true),
        (&["SET", "a", "1"], &[&["SET", "b", "2"]], true),
    ] {
        two.ask(before);
        assert_eq!(one.ask(&["WATCH", "a"]), ok());
        for change in changes {
            two.ask(change);
        }
        one.ask(&["MULTI"]);
        let expected = if is_executed { Value::Array(vec![]) } else { Value::Null };
        assert_eq!(one.ask(&["EXEC"]), expected, "{before:?}, {changes:?}");
    }
}

/// With a compressed zone the same memory keeps more items, and each reads as it was written, whichever zone has it.
#[test]
fn evicted_items_are_kept_in_compressed_blocks() {
    const MEMORY_BYTES: u64 = 8 << 20;
    let value = |number: usize| format!("{{\"number\":{number},\"name\":\"item {number}\",\"open\":true}}");
    let kept = |settings: CacheSettings| {
        let running = running_with(settings);
        let mut client = running.client();
        let keys: Vec<String> = (0..150_000).map(|number| format!("key:{number}")).collect();
        for numbers in (0..keys.len()).collect::<Vec<_>>().chunks(500) {
            let values: Vec<String> = numbers.iter().map(|&number| value(number)).collect();
            let pairs = numbers.iter().zip(&values).flat_map(|(&number, value)| [&keys[number][..], value]);
            let words: Vec<&str> = std::iter::once("MSET").chain(pairs).collect();
            assert_eq!(client.ask(&words), ok());
        }
        let mut found = 0;
        for numbers in (0..keys.len()).collect::<Vec<_>>().chunks(500) {
            let words: Vec<&str> =
                std::iter::once("MGET").chain(numbers.iter().map(|&number| &keys[number][..])).collect();
            let Value::Array(replies) = client.ask(&words) else { panic!("MGET replies with an array") };
            for (&number, reply) in numbers.iter().zip(replies) {
                assert!(reply == Value::Null || reply == bulk(&value(number)), "{number}: {reply:?}");
                found += usize::from(reply != Value::Null);
            }
        }
        assert_eq!(client.ask(&["DBSIZE"]), Value::Integer(found as i64));
        found
    };
    let plain = kept(CacheSettings::new(MEMORY_BYTES));
    let compressed = kept(CacheSettings {
        compressed: Some(Compressed::default()),
        item_bytes_mean: Some(60),
        ..CacheSettings::new(MEMORY_BYTES)
    });
    assert!(compressed * 10 > plain * 13, "{compressed} items beside {plain}");
}
