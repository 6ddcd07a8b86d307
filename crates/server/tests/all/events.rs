//! Keyspace events: what is published about keys.

use std::time::Duration;

use crate::common::{Client, Running, bulk, error, ok};
use alluvium_protocol::Value;
use alluvium_server::ServerOptions;

fn server(letters: &str) -> Running {
    let workers = 3.try_into().unwrap();
    Running::start(ServerOptions { workers, keyspace_events: letters.to_owned(), ..Default::default() })
}

fn subscriber(server: &Running, pattern: &str) -> Client {
    let mut client = server.client();
    client.ask(&["PSUBSCRIBE", pattern]);
    client
}

/// The next message: its channel and what was published.
fn next(client: &mut Client) -> String {
    let Some(Value::Array(parts)) = client.reply() else { panic!("no message") };
    let text = |part: &Value| match part {
        Value::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(parts[0], bulk("pmessage"));
    format!("{} {}", text(&parts[2]), text(&parts[3]))
}

/// Sends a request whose words are separated by spaces.
fn ask(client: &mut Client, request: &str) -> Value {
    client.ask(&request.split(' ').collect::<Vec<_>>())
}

#[test]
fn commands_publish_the_events_of_redis() {
    let server = server("AE");
    let (mut client, mut listener) = (server.client(), subscriber(&server, "__keyevent@*"));
    for (request, events) in [
        ("SET a 1", "set:a"),
        ("SET a 1 EX 100", "set:a expire:a"),
        ("SET a 1 XX GET KEEPTTL", "set:a"),
        ("SET a 1 NX", ""),
        ("SETEX a 100 1", "set:a expire:a"),
        ("PSETEX a 100000 1", "set:a expire:a"),
        ("SETNX a 1", ""),
        ("SETNX b 1", "set:b"),
        ("MSET a 1 b 2", "set:a set:b"),
        ("MSETNX a 1 c 2", ""),
        ("MSETNX c 1 d 2", "set:c set:d"),
        ("GETSET a 1", "set:a"),
        ("APPEND a 2", "append:a"),
        ("SETRANGE a 1 3", "setrange:a"),
        ("INCR a", "incrby:a"),
        ("DECRBY a 2", "incrby:a"),
        ("INCRBYFLOAT a 0.5", "incrbyfloat:a"),
        ("SETBIT a 1 0", ""),
        ("SETBIT a 1 1", "setbit:a"),
        ("BITFIELD a SET u8 0 7", "setbit:a"),
        ("BITOP NOT e a", "set:e"),
        ("BITOP AND e none", "del:e"),
        ("BITOP AND e none", ""),
        ("EXPIRE a 100", "expire:a"),
        ("EXPIRE none 100", ""),
        ("PERSIST a", "persist:a"),
        ("PERSIST a", ""),
        ("GETEX a EX 100", "expire:a"),
        ("GETEX a PERSIST", "persist:a"),
        ("GETEX a", ""),
        ("EXPIRE a -1", "del:a"),
        ("RENAME b f", "rename_from:b rename_to:f"),
        ("COPY f g", "copy_to:g"),
        ("MOVE g 9", "move_from:g move_to:g"),
        ("GETDEL f", "del:f"),
        ("GETDEL f", ""),
        ("DEL c none d", "del:c del:d"),
        ("HSET h f 1 g 2", "hset:h"),
        ("HSETNX h f 1", ""),
        ("HINCRBY h f 1", "hincrby:h"),
        ("HINCRBYFLOAT h f 1", "hincrbyfloat:h"),
        ("HDEL h none", ""),
        ("HDEL h f", "hdel:h"),
        ("HDEL h g", "hdel:h del:h"),
        ("SADD s 1 2 3", "sadd:s"),
        ("SADD s 1", ""),
        ("SMOVE s t 1", "srem:s sadd:t"),
        ("SMOVE t s 1", "srem:t del:t sadd:s"),
        ("SREM s 1", "srem:s"),
        ("SUNIONSTORE u s", "sunionstore:u"),
        ("SDIFFSTORE u s none", "sdiffstore:u"),
        ("SINTERSTORE u s none", "del:u"),
        ("SPOP s", "spop:s"),
        ("SPOP s 5", "spop:s del:s"),
        ("SPOP s", ""),
        ("LPUSH list 1", ""),
        ("GET none", ""),
    ] {
        ask(&mut client, request);
        for event in events.split(' ').filter(|event| !event.is_empty()) {
            let (event, key) = event.split_once(':').unwrap();
            let database = if event == "move_to" { 9 } else { 0 };
            assert_eq!(next(&mut listener), format!("__keyevent@{database}__:{event} {key}"), "{request}");
        }
        // Nothing more was published: this comes next.
        client.ask(&["PUBLISH", "__keyevent@end", request]);
        assert_eq!(next(&mut listener), format!("__keyevent@end {request}"));
    }
}

#[test]
fn classes_are_chosen_by_letters() {
    let server = server("");
    let (mut client, mut listener) = (server.client(), subscriber(&server, "__key*"));
    assert_eq!(
        client.ask(&["CONFIG", "GET", "notify-keyspace-events"]),
        Value::Array(vec![bulk("notify-keyspace-events"), bulk("")])
    );
    let set = |client: &mut Client, letters: &str| {
        client.ask(&["CONFIG", "SET", "notify-keyspace-events", letters])
    };
    client.ask(&["SET", "a", "1"]);
    assert_eq!(set(&mut client, "K$"), ok());
    client.ask(&["SET", "a", "1"]);
    client.ask(&["DEL", "a"]);
    assert_eq!(next(&mut listener), "__keyspace@0__:a set");
    assert_eq!(set(&mut client, "gEK"), ok());
    client.ask(&["SET", "a", "1"]);
    client.ask(&["DEL", "a"]);
    assert_eq!(next(&mut listener), "__keyspace@0__:a del");
    assert_eq!(next(&mut listener), "__keyevent@0__:del a");
    let refusal = "ERR CONFIG SET failed (possibly related to argument 'notify-keyspace-events') - Invalid event \
                   class character. Use 'Ag$lshzxeKEtmdn'.";
    assert_eq!(set(&mut client, "KEq"), error(refusal));
    // New keys, and keys that are not there.
    assert_eq!(set(&mut client, "nE"), ok());
    for request in ["SET a 1", "SET a 2", "MSET a 1 b 2 b 3", "HSET h f 1", "SELECT 3", "SET a 1"] {
        ask(&mut client, request);
    }
    for event in ["0__:new a", "0__:new b", "0__:new h", "3__:new a"] {
        assert_eq!(next(&mut listener), format!("__keyevent@{event}"));
    }
    assert_eq!(set(&mut client, "mE"), ok());
    for request in ["GET a", "GET x", "MGET a y", "HGET z f", "INCR i"] {
        ask(&mut client, request);
    }
    for key in ["x", "y", "z"] {
        assert_eq!(next(&mut listener), format!("__keyevent@3__:keymiss {key}"));
    }
}

#[test]
fn transactions_and_scripts_publish_once_and_only_if_they_take_effect() {
    let server = server("AE");
    let (mut client, mut listener) = (server.client(), subscriber(&server, "*"));
    for request in ["WATCH w", "MULTI", "SET a 1"] {
        ask(&mut client, request);
    }
    ask(&mut server.client(), "SET w 1");
    assert_eq!(client.ask(&["EXEC"]), Value::Null);
    for request in ["MULTI", "SET a 1", "INCR a", "LPUSH a", "DEL b", "EXEC"] {
        ask(&mut client, request);
    }
    for request in ["MULTI", "SET a 1", "INCR a", "PUBLISH c x", "EXPIRE a 10", "EXEC"] {
        ask(&mut client, request);
    }
    for event in ["__keyevent@0__:set w", "__keyevent@0__:set a", "__keyevent@0__:incrby a", "c x"] {
        assert_eq!(next(&mut listener), event);
    }
    assert_eq!(next(&mut listener), "__keyevent@0__:expire a");
    client.ask(&["EVAL", "redis.call('SET', KEYS[1], 1) return redis.call('DEL', KEYS[1])", "1", "k"]);
    assert_eq!(next(&mut listener), "__keyevent@0__:set k");
    assert_eq!(next(&mut listener), "__keyevent@0__:del k");
    // Increments by scripts on all workers, which run again when they meet.
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = server.client();
                for _ in 0..100 {
                    client.ask(&["EVAL", "redis.call('GET', 'n') return redis.call('INCR', 'n')", "1", "n"]);
                }
            });
        }
    });
    client.ask(&["PUBLISH", "end", "x"]);
    for _ in 0..400 {
        assert_eq!(next(&mut listener), "__keyevent@0__:incrby n");
    }
    assert_eq!(next(&mut listener), "end x");
}

#[test]
fn keys_that_expire_are_published() {
    let server = server("xE");
    let (mut client, mut listener) = (server.client(), subscriber(&server, "__keyevent@*"));
    // One is deleted before, one gets more time, one expires although nobody asks for it.
    for request in [
        "SET gone 1 PX 150",
        "DEL gone",
        "SET kept 1 PX 150",
        "PERSIST kept",
        "SET a 1",
        "PEXPIRE a 100",
        "HSET h f 1",
        "PEXPIRE h 200",
        "SET b 1 PX 250",
        "RENAME b c",
    ] {
        ask(&mut client, request);
    }
    for key in ["a", "h", "c"] {
        assert_eq!(next(&mut listener), format!("__keyevent@0__:expired {key}"));
    }
    // A write over an expired key comes after its end.
    client.ask(&["CONFIG", "SET", "notify-keyspace-events", "x$E"]);
    client.ask(&["SET", "d", "1", "PX", "250"]);
    assert_eq!(next(&mut listener), "__keyevent@0__:set d");
    while client.ask(&["EXISTS", "d"]) == Value::Integer(1) {
        std::thread::sleep(Duration::from_millis(1));
    }
    client.ask(&["SET", "d", "2"]);
    assert_eq!(next(&mut listener), "__keyevent@0__:expired d");
    assert_eq!(next(&mut listener), "__keyevent@0__:set d");
}

#[test]
fn writes_of_memcached_clients_are_published() {
    let server = server("AE");
    let (mut client, mut listener) = (server.client(), subscriber(&server, "__keyevent@0__:*"));
    for (request, reply, events) in [
        ("set a 0 0 1\r\n1\r\n", "STORED\r\n", "set"),
        ("set a 0 100 1\r\n1\r\n", "STORED\r\n", "set expire"),
        ("add a 0 0 1\r\n1\r\n", "NOT_STORED\r\n", ""),
        ("incr a 2\r\n", "3\r\n", "incrby"),
        ("append a 0 0 1\r\n0\r\n", "STORED\r\n", "append"),
        ("touch a 10\r\n", "TOUCHED\r\n", "expire"),
        ("gat 20 a\r\n", "VALUE a 0 2\r\n30\r\nEND\r\n", "expire"),
        ("ms a 1\r\n1\r\n", "HD\r\n", "set"),
        ("md a\r\n", "HD\r\n", "del"),
        ("delete a\r\n", "NOT_FOUND\r\n", ""),
        ("mg a N30 v\r\n", "VA 0 W\r\n\r\n", "set expire"),
        ("flush_all\r\n", "OK\r\n", ""),
    ] {
        client.send(request.as_bytes());
        assert_eq!(String::from_utf8_lossy(&client.raw(reply.len())), reply, "{request}");
        for event in events.split(' ').filter(|event| !event.is_empty()) {
            assert_eq!(next(&mut listener), format!("__keyevent@0__:{event} a"), "{request}");
        }
        server.client().ask(&["PUBLISH", "__keyevent@0__:end", "x"]);
        assert_eq!(next(&mut listener), "__keyevent@0__:end x", "{request}");
    }
}
