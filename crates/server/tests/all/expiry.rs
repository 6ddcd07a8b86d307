//! Keys that expire, and the commands about strings that came with them.

use crate::common::{Client, Running, bulk, ok};
use alluvium_protocol::Value;
use alluvium_server::ServerOptions;

fn integer(client: &mut Client, words: &[&str]) -> i64 {
    match client.ask(words) {
        Value::Integer(number) => number,
        other => panic!("{words:?}: {other:?}"),
    }
}

fn error(client: &mut Client, words: &[&str]) -> String {
    match client.ask(words) {
        Value::Error(text) => String::from_utf8_lossy(&text).into_owned(),
        other => panic!("{words:?}: {other:?}"),
    }
}

#[test]
fn keys_expire_when_they_should() {
    let running = Running::start(ServerOptions::default());
    let client = &mut running.client();
    assert_eq!(client.ask(&["SET", "key", "value", "EX", "100"]), ok());
    assert!((99..=100).contains(&integer(client, &["TTL", "key"])));
    assert!((99_000..=100_000).contains(&integer(client, &["PTTL", "key"])));
    let at = integer(client, &["EXPIRETIME", "key"]);
    assert!((at - integer(client, &["PEXPIRETIME", "key"]) / 1_000).abs() <= 1);
    assert_eq!(integer(client, &["PERSIST", "key"]), 1);
    assert_eq!(integer(client, &["PERSIST", "key"]), 0);
    assert_eq!((integer(client, &["TTL", "key"]), integer(client, &["TTL", "none"])), (-1, -2));
    assert_eq!(client.ask(&["PSETEX", "short", "20", "value"]), ok());
    assert_eq!(client.ask(&["SET", "short too", "value", "PX", "20"]), ok());
    std::thread::sleep(std::time::Duration::from_millis(40));
    assert_eq!(integer(client, &["EXISTS", "short", "short too"]), 0);
    // A time that has passed removes the key.
    assert_eq!(integer(client, &["EXPIREAT", "key", "1"]), 1);
    assert_eq!(integer(client, &["EXISTS", "key"]), 0);
    assert_eq!(integer(client, &["EXPIRE", "key", "10"]), 0);
}

#[test]
fn conditions_of_expire_are_those_of_redis() {
    let running = Running::start(ServerOptions::default());
    let client = &mut running.client();
    client.ask(&["SET", "key", "value"]);
    for (words, changed) in [
        (["EXPIRE", "key", "100", "XX"], 0),
        (["EXPIRE", "key", "100", "GT"], 0),
        (["EXPIRE", "key", "100", "LT"], 1),
        (["EXPIRE", "key", "200", "NX"], 0),
        (["EXPIRE", "key", "200", "LT"], 0),
        (["EXPIRE", "key", "200", "GT"], 1),
        (["PEXPIRE", "key", "300000", "XX"], 1),
    ] {
        assert_eq!(integer(client, &words), changed, "{words:?}");
    }
    assert!(integer(client, &["TTL", "key"]) > 290);
    let texts = [
        (
            &["EXPIRE", "key", "9", "NX", "GT"][..],
            "ERR NX and XX, GT or LT options at the same time are not compatible",
        ),
        (&["EXPIRE", "key", "9", "GT", "LT"], "ERR GT and LT options at the same time are not compatible"),
        (&["EXPIRE", "key", "9", "AB"], "ERR Unsupported option AB"),
        (&["EXPIRE", "key", "9223372036854775807"], "ERR invalid expire time in 'expire' command"),
        (&["SET", "key", "value", "EX", "0"], "ERR invalid expire time in 'set' command"),
        (&["SET", "key", "value", "EX", "1", "PX", "1"], "ERR syntax error"),
        (&["SET", "key", "value", "KEEPTTL", "PX", "1"], "ERR syntax error"),
        (&["SET", "key", "value", "EX"], "ERR syntax error"),
        (&["SET", "key", "value", "EX", "x"], "ERR value is not an integer or out of range"),
        (&["SETEX", "key", "-1", "value"], "ERR invalid expire time in 'setex' command"),
        (&["GETEX", "key", "PERSIST", "EX", "1"], "ERR syntax error"),
    ];
    for (words, text) in texts {
        assert_eq!(error(client, words), text, "{words:?}");
    }
}

#[test]
fn writes_keep_or_drop_the_expiry() {
    let running = Running::start(ServerOptions::default());
    let client = &mut running.client();
    client.ask(&["SETEX", "number", "100", "1"]);
    integer(client, &["INCR", "number"]);
    integer(client, &["APPEND", "number", "0"]);
    assert!(integer(client, &["TTL", "number"]) > 90);
    assert_eq!(client.ask(&["SET", "number", "5", "KEEPTTL"]), ok());
    assert!(integer(client, &["TTL", "number"]) > 90);
    assert_eq!(client.ask(&["GETEX", "number", "PERSIST"]), bulk("5"));
    assert_eq!(integer(client, &["TTL", "number"]), -1);
    assert_eq!(client.ask(&["GETEX", "number", "EX", "50"]), bulk("5"));
    assert!(integer(client, &["TTL", "number"]) > 40);
    assert_eq!(client.ask(&["GETSET", "number", "6"]), bulk("5"));
    assert_eq!(integer(client, &["TTL", "number"]), -1);
    assert_eq!(client.ask(&["SET", "lock", "me", "NX", "PX", "50000"]), ok());
    assert_eq!(client.ask(&["SET", "lock", "you", "NX", "PX", "50000"]), Value::Null);
    assert!(integer(client, &["PTTL", "lock"]) > 40_000);
    assert_eq!(
        (integer(client, &["SETNX", "lock", "you"]), integer(client, &["SETNX", "new", "you"])),
        (0, 1)
    );
    assert_eq!(client.ask(&["GETDEL", "new"]), bulk("you"));
    assert_eq!(client.ask(&["GETDEL", "new"]), Value::Null);
    assert_eq!(integer(client, &["TOUCH", "lock", "new", "number"]), 2);
}

#[test]
fn parts_of_values_count_from_both_ends() {
    let running = Running::start(ServerOptions::default());
    let client = &mut running.client();
    client.ask(&["SET", "key", "Hello World"]);
    for (start, end, part) in [
        ("0", "3", "Hell"),
        ("0", "-1", "Hello World"),
        ("-4", "-1", "orld"),
        ("5", "3", ""),
        ("5", "5000", " World"),
        ("-5000", "10000", "Hello World"),
        ("-1", "-3", ""),
        ("11", "12", ""),
    ] {
        assert_eq!(client.ask(&["GETRANGE", "key", start, end]), bulk(part), "{start} {end}");
        assert_eq!(client.ask(&["SUBSTR", "key", start, end]), bulk(part), "{start} {end}");
    }
    assert_eq!(client.ask(&["GETRANGE", "none", "0", "-1"]), bulk(""));
}
