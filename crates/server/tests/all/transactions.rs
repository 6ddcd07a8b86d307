//! `MULTI`, `EXEC`, `WATCH`, several databases, and passwords.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::common::{Running, bulk, error, ok};
use alluvium_protocol::Value;
use alluvium_server::{Password, ServerOptions};

fn integer(number: i64) -> Value {
    Value::Integer(number)
}

fn queued() -> Value {
    Value::Simple(b"QUEUED".to_vec())
}

#[test]
fn queued_commands_are_executed_together() {
    let server = Running::start(ServerOptions::default());
    let (mut one, mut two) = (server.client(), server.client());
    one.ask(&["SET", "a", "1"]);
    assert_eq!(one.ask(&["MULTI"]), ok());
    for words in
        [&["INCR", "a"][..], &["GET", "a"], &["SET", "b", "2"], &["APPEND", "b", "3"], &["MGET", "a", "b"]]
    {
        assert_eq!(one.ask(words), queued());
    }
    assert_eq!(two.ask(&["MGET", "a", "b"]), Value::Array(vec![bulk("1"), Value::Null]));
    let both = Value::Array(vec![bulk("2"), bulk("23")]);
    let replies = vec![integer(2), bulk("2"), ok(), integer(2), both.clone()];
    assert_eq!(one.ask(&["EXEC"]), Value::Array(replies));
    assert_eq!(two.ask(&["MGET", "a", "b"]), both);
    assert_eq!(one.ask(&["EXEC"]), error("ERR EXEC without MULTI"));
}

#[test]
fn an_error_within_exec_is_the_reply_of_its_command() {
    let server = Running::start(ServerOptions::default());
    let mut client = server.client();
    for words in [&["MULTI"][..], &["SET", "a", "x"], &["INCR", "a"], &["SET", "a", "y"]] {
        client.ask(words);
    }
    let not = error("ERR value is not an integer or out of range");
    assert_eq!(client.ask(&["EXEC"]), Value::Array(vec![ok(), not, ok()]));
    assert_eq!(client.ask(&["GET", "a"]), bulk("y"));
}

#[test]
fn a_refused_command_spoils_the_transaction() {
    let server = Running::start(ServerOptions::default());
    let mut client = server.client();
    for bad in [&["NOSUCH"][..], &["GET"], &["CLIENT", "NOSUCH"], &["SHUTDOWN"]] {
        client.ask(&["MULTI"]);
        assert_eq!(client.ask(&["SET", "a", "1"]), queued());
        assert!(matches!(client.ask(bad), Value::Error(_)), "{bad:?}");
        let abort = "EXECABORT Transaction discarded because of previous errors.";
        assert_eq!(client.ask(&["EXEC"]), error(abort), "{bad:?}");
        assert_eq!(client.ask(&["GET", "a"]), Value::Null);
    }
    client.ask(&["MULTI"]);
    assert_eq!(client.ask(&["MULTI"]), error("ERR MULTI calls can not be nested"));
    assert_eq!(client.ask(&["WATCH", "a"]), error("ERR WATCH inside MULTI is not allowed"));
    assert_eq!(client.ask(&["DISCARD"]), ok());
    assert_eq!(client.ask(&["DISCARD"]), error("ERR DISCARD without MULTI"));
}

#[test]
fn a_watched_key_that_changes_prevents_execution() {
    let server = Running::start(ServerOptions::default());
    let (mut one, mut two) = (server.client(), server.client());
    for (before, change, is_executed) in [
        (&["SET", "a", "1"][..], &["SET", "a", "2"][..], false),
        (&["SET", "a", "1"], &["DEL", "a"], false),
        (&["DEL", "a"], &["SET", "a", "1"], false),
        (&["SET", "a", "1"], &["EXPIRE", "a", "100"], false),
        (&["SET", "a", "1"], &["FLUSHALL"], false),
        (&["SET", "a", "1"], &["SET", "b", "2"], true),
    ] {
        one.ask(before);
        assert_eq!(one.ask(&["WATCH", "a", "a"]), ok());
        two.ask(change);
        one.ask(&["MULTI"]);
        one.ask(&["SET", "c", "3"]);
        let expected = if is_executed { Value::Array(vec![ok()]) } else { Value::Null };
        assert_eq!(one.ask(&["EXEC"]), expected, "{change:?}");
        // EXEC forgets what was watched.
        two.ask(&["SET", "a", "9"]);
        one.ask(&["MULTI"]);
        assert_eq!(one.ask(&["EXEC"]), Value::Array(vec![]));
    }
    one.ask(&["WATCH", "a"]);
    one.ask(&["UNWATCH"]);
    two.ask(&["SET", "a", "10"]);
    one.ask(&["MULTI"]);
    assert_eq!(one.ask(&["EXEC"]), Value::Array(vec![]));
}

/// `WATCH a`, a change by another client, and whether `EXEC` executes nevertheless.
const WATCHED: [(&str, &str, bool); 22] = [
    ("SET a 1", "SET a 2; SET a 1", false),
    ("SET a 1", "SET a 1", false),
    ("SET a 1", "GETSET a 1", false),
    ("SET a 1", "DEL a; SET a 1", false),
    ("SET a 1", "FLUSHALL; SET a 1", false),
    ("SET a 1; EXPIREAT a 4000000000", "EXPIREAT a 4000000000", false),
    ("DEL a", "SET a 1; DEL a", false),
    ("DEL a", "DEL a", true),
    ("DEL a", "FLUSHALL", true),
    ("SET a 1", "SETNX a 2", true),
    ("SET a 1", "PERSIST a", true),
    ("SET a 1", "GET a", true),
    ("HSET a f 1", "HSET a f 2", false),
    ("HSET a f 1", "HINCRBY a f 1", false),
    ("HSET a f 1", "HSET a g 1; HDEL a f", false),
    ("HSET a f 1", "HSET a f 2; HSET a f 1", false),
    ("HSET a f 1", "HSETNX a f 2", true),
    ("HSET a f 1", "HSET b f 2", true),
    ("HSET a f 1", "EVAL return(redis.call('hset','a','f','2')) 0", false),
    ("SADD a x", "SADD a y; SREM a x", false),
    ("SADD a x", "SADD a x", true),
    ("SADD a x", "RENAME a b; RENAME b a", false),
];

#[test]
fn a_watched_key_that_was_written_prevents_execution_though_it_is_as_before() {
    let server = Running::start(ServerOptions::default());
    let (mut one, mut two) = (server.client(), server.client());
    for (before, change, is_executed) in WATCHED {
        two.ask(&["FLUSHALL"]);
        let mut all = |commands: &str| {
            for command in commands.split("; ") {
                let reply = two.ask(&command.split(' ').collect::<Vec<_>>());
                assert!(!matches!(reply, Value::Error(_)), "{command}: {reply:?}");
            }
        };
        all(before);
        assert_eq!(one.ask(&["WATCH", "a"]), ok());
        all(change);
        one.ask(&["MULTI"]);
        let executed = one.ask(&["EXEC"]);
        let expected = if is_executed { Value::Array(vec![]) } else { Value::Null };
        assert_eq!(executed, expected, "{before}, {change}");
    }
}

#[test]
fn increments_with_watch_lose_nothing() {
    const CLIENTS: usize = 4;
    const INCREMENTS: usize = 100;
    let server = Running::start(ServerOptions { workers: 3.try_into().unwrap(), ..Default::default() });
    server.client().ask(&["HSET", "h", "n", "0"]);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut client = server.client();
                let mut done = 0;
                while done < INCREMENTS {
                    client.ask(&["WATCH", "h"]);
                    let Value::Bulk(text) = client.ask(&["HGET", "h", "n"]) else { panic!("no number") };
                    let number: usize = String::from_utf8(text).unwrap().parse().unwrap();
                    client.ask(&["MULTI"]);
                    client.ask(&["HSET", "h", "n", &(number + 1).to_string()]);
                    done += usize::from(client.ask(&["EXEC"]) != Value::Null);
                }
            });
        }
    });
    let total = (CLIENTS * INCREMENTS).to_string();
    assert_eq!(server.client().ask(&["HGET", "h", "n"]), bulk(&total));
}

#[test]
fn transfers_between_accounts_lose_nothing() {
    let server = Running::start(ServerOptions { workers: 3.try_into().unwrap(), ..Default::default() });
    server.client().ask(&["MSET", "0", "100", "1", "100", "2", "100"]);
    thread::scope(|scope| {
        for number in 0..4 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.client();
                for step in 0..100 {
                    let (from, to) = ((step % 3).to_string(), ((step + 1 + number % 2) % 3).to_string());
                    client.ask(&["MULTI"]);
                    client.ask(&["DECR", &from]);
                    client.ask(&["INCR", &to]);
                    client.ask(&["MGET", "0", "1", "2"]);
                    let Value::Array(replies) = client.ask(&["EXEC"]) else { panic!("no array") };
                    let Value::Array(balances) = &replies[2] else { panic!("no balances") };
                    let sum: i64 = balances
                        .iter()
                        .map(|balance| match balance {
                            Value::Bulk(text) => String::from_utf8_lossy(text).parse::<i64>().unwrap(),
                            other => panic!("{other:?}"),
                        })
                        .sum();
                    assert_eq!(sum, 300);
                }
            });
        }
    });
}

#[test]
fn databases_are_separate_and_survive() {
    let server = Running::start(ServerOptions::default());
    let (mut one, mut two) = (server.client(), server.client());
    one.ask(&["SET", "a", "0"]);
    assert_eq!(one.ask(&["SELECT", "15"]), ok());
    assert_eq!(one.ask(&["GET", "a"]), Value::Null);
    one.ask(&["SET", "a", "15"]);
    assert_eq!(two.ask(&["GET", "a"]), bulk("0"));
    // Gets of both databases in one pipeline.
    two.send(b"GET a\r\nSELECT 15\r\nGET a\r\nDBSIZE\r\nSELECT 0\r\nGET a\r\n");
    let expected = [bulk("0"), ok(), bulk("15"), integer(1), ok(), bulk("0")];
    assert_eq!(expected.each_ref().map(|_| two.reply().unwrap()), expected);
    assert_eq!(one.ask(&["SELECT", "16"]), error("ERR DB index is out of range"));
    assert_eq!(one.ask(&["SELECT", "x"]), error("ERR value is not an integer or out of range"));
    // SELECT within a transaction holds for what follows, also after it.
    for words in [&["MULTI"][..], &["SELECT", "0"], &["GET", "a"]] {
        one.ask(words);
    }
    assert_eq!(one.ask(&["EXEC"]), Value::Array(vec![ok(), bulk("0")]));
    assert_eq!(one.ask(&["GET", "a"]), bulk("0"));
    assert_eq!(one.ask(&["FLUSHDB"]), ok());
    assert_eq!(two.ask(&["GET", "a"]), Value::Null);
    one.ask(&["SELECT", "15"]);
    assert_eq!(one.ask(&["GET", "a"]), bulk("15"));
    assert_eq!(one.ask(&["FLUSHALL"]), ok());
    assert_eq!(one.ask(&["GET", "a"]), Value::Null);
}

#[test]
fn nothing_works_without_the_password() {
    let server = Running::start(ServerOptions { password: Password::new("secret"), ..Default::default() });
    let mut client = server.client();
    let refusal = error("NOAUTH Authentication required.");
    for words in [&["GET", "a"][..], &["SET", "a", "1"], &["PING"], &["MULTI"], &["INFO"]] {
        assert_eq!(client.ask(words), refusal, "{words:?}");
    }
    let wrong = error("WRONGPASS invalid username-password pair or user is disabled.");
    assert_eq!(client.ask(&["AUTH", "guess"]), wrong);
    assert_eq!(client.ask(&["AUTH", "root", "secret"]), wrong);
    assert!(matches!(client.ask(&["HELLO", "3"]), Value::Error(text) if text.starts_with(b"NOAUTH HELLO")));
    assert_eq!(client.ask(&["AUTH", "secret"]), ok());
    assert_eq!(client.ask(&["GET", "a"]), Value::Null);
    client.ask(&["RESET"]);
    assert_eq!(client.ask(&["GET", "a"]), refusal);
    assert!(matches!(client.ask(&["HELLO", "3", "AUTH", "default", "secret"]), Value::Map(_)));
    assert_eq!(client.ask(&["SET", "a", "1"]), ok());
    let open = Running::start(ServerOptions::default());
    assert!(matches!(open.client().ask(&["AUTH", "x"]), Value::Error(_)));
    assert_eq!(open.client().ask(&["AUTH", "default", "x"]), ok());
}

#[test]
fn reads_of_several_keys_and_fields_are_of_one_moment() {
    const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let server = Running::start(ServerOptions { workers: 3.try_into().unwrap(), ..Default::default() });
    let write = |client: &mut crate::common::Client, number: usize| {
        let text = number.to_string();
        let pairs: Vec<&str> = NAMES.iter().flat_map(|name| [*name, &text]).collect();
        client.ask(&[&["MSET"], &pairs[..]].concat());
        client.ask(&[&["HSET", "hash"], &pairs[..]].concat());
        let (out, in_) = if number.is_multiple_of(2) { ("x", "y") } else { ("y", "x") };
        for words in [
            &["MULTI"][..],
            &["SREM", "set", out],
            &["SADD", "set", in_],
            &["DEL", out],
            &["SET", in_, "1"],
            &["EXEC"],
        ] {
            client.ask(words);
        }
    };
    write(&mut server.client(), 0);
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = server.client();
            (1..500).for_each(|number| write(&mut client, number));
            is_done.store(true, Ordering::Relaxed);
        });
        for _ in 0..2 {
            scope.spawn(|| {
                let mut client = server.client();
                while !is_done.load(Ordering::Relaxed) {
                    for command in [&["MGET"][..], &["HMGET", "hash"]] {
                        let Value::Array(values) = client.ask(&[command, &NAMES[..]].concat()) else {
                            panic!("no array")
                        };
                        assert!(values.iter().all(|value| *value == values[0]), "{command:?}: {values:?}");
                    }
                    assert_eq!(client.ask(&["EXISTS", "x", "y"]), integer(1));
                    assert_eq!(client.ask(&["SCARD", "set"]), integer(1));
                    let found = client.ask(&["SMISMEMBER", "set", "x", "y"]);
                    let [one, other] = [[0, 1], [1, 0]].map(|pair| Value::Array(pair.map(integer).to_vec()));
                    assert!(found == one || found == other, "{found:?}");
                }
            });
        }
    });
}

#[test]
fn what_a_transaction_writes_with_a_past_expiry_is_absent_to_it() {
    let server = Running::start(ServerOptions::default());
    let mut client = server.client();
    for words in [
        &["MULTI"][..],
        &["SET", "a", "1", "PXAT", "1"],
        &["EXISTS", "a"],
        &["GET", "a"],
        &["DBSIZE"],
        &["DEL", "a"],
    ] {
        client.ask(words);
    }
    let replies = vec![ok(), integer(0), Value::Null, integer(0), integer(0)];
    assert_eq!(client.ask(&["EXEC"]), Value::Array(replies));
    assert_eq!(client.ask(&["EVAL", "return {ok = ARGV[1]}", "0", "x"]), Value::Simple(b"x".to_vec()));
}
