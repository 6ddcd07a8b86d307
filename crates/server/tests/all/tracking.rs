//! `CLIENT TRACKING`: clients that keep what they read are told when it becomes invalid.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;

use crate::common::{Client, Running, bulk, error, ok};
use alluvium_protocol::Value;
use alluvium_server::ServerOptions;

fn server() -> Running {
    Running::start(ServerOptions { workers: 3.try_into().unwrap(), ..Default::default() })
}

/// A client that speaks RESP3.
fn resp3(server: &Running) -> Client {
    let mut client = server.client();
    client.ask(&["HELLO", "3"]);
    client
}

/// Sends a request whose words are separated by spaces.
fn ask(client: &mut Client, request: &str) -> Value {
    client.ask(&request.split(' ').collect::<Vec<_>>())
}

fn keys(keys: &[&str]) -> Value {
    Value::Array(keys.iter().map(|key| bulk(key)).collect())
}

fn invalidation(names: &[&str]) -> Value {
    Value::Push(vec![bulk("invalidate"), keys(names)])
}

/// Asserts that the client was told nothing.
fn hears_nothing(client: &mut Client) {
    assert_eq!(client.ask(&["PING"]), Value::Simple(b"PONG".to_vec()));
}

#[test]
fn a_client_is_told_once_about_keys_that_it_has_read() {
    let server = server();
    let (mut client, mut other) = (resp3(&server), server.client());
    assert_eq!(ask(&mut client, "CLIENT TRACKING ON"), ok());
    for (read, write, key) in [
        ("GET a", "SET a 1", "a"),
        ("MGET b a c", "INCR b", "b"),
        ("HGET h f", "HSET h f 1", "h"),
        ("HGETALL h", "HDEL h f", "h"),
        ("SMEMBERS s", "SADD s 1", "s"),
        ("EXISTS a", "DEL a", "a"),
        ("TTL c", "SET c 1", "c"),
        ("STRLEN c", "EXPIRE c 100", "c"),
        ("GET c", "RENAME c d", "c"),
        ("GET d", "MOVE d 1", "d"),
    ] {
        ask(&mut client, read);
        ask(&mut other, write);
        assert_eq!(client.reply(), Some(invalidation(&[key])), "{write}");
        ask(&mut other, write);
    }
    hears_nothing(&mut client);
    // Also about its own writes, behind their replies.
    ask(&mut client, "GET a");
    assert_eq!(ask(&mut client, "SET a 1"), ok());
    assert_eq!(client.reply(), Some(invalidation(&["a"])));
    for request in ["GET a", "MULTI", "INCR a", "GET b"] {
        ask(&mut client, request);
    }
    ask(&mut client, "EXEC");
    assert_eq!(client.reply(), Some(invalidation(&["a"])));
    // What a transaction and a script have read.
    for request in ["MULTI", "GET a", "EXEC", "EVAL return(redis.call('GET','n')) 1 a"] {
        ask(&mut client, request);
    }
    ask(&mut other, "MSET a 1 n 1");
    assert_eq!(client.reply(), Some(invalidation(&["a"])));
    assert_eq!(client.reply(), Some(invalidation(&["n"])));
    // memcached clients write, too.
    ask(&mut client, "GET a");
    let mut memcached = server.client();
    memcached.send(b"set a 0 0 1\r\n1\r\n");
    assert_eq!(client.reply(), Some(invalidation(&["a"])));
    ask(&mut client, "GET a");
    ask(&mut other, "FLUSHDB");
    assert_eq!(client.reply(), Some(Value::Push(vec![bulk("invalidate"), Value::Null])));
    ask(&mut client, "GET a");
    ask(&mut client, "CLIENT TRACKING OFF");
    ask(&mut other, "SET a 1");
    hears_nothing(&mut client);
}

#[test]
fn options_choose_what_is_told() {
    let server = server();
    let (mut client, mut other) = (resp3(&server), server.client());
    ask(&mut client, "CLIENT TRACKING ON NOLOOP");
    ask(&mut client, "MGET a b");
    ask(&mut client, "SET a 1");
    ask(&mut other, "SET b 1");
    assert_eq!(client.reply(), Some(invalidation(&["b"])));
    ask(&mut client, "CLIENT TRACKING OFF");
    // Only after CACHING YES.
    ask(&mut client, "CLIENT TRACKING ON OPTIN");
    ask(&mut client, "GET a");
    ask(&mut client, "CLIENT CACHING YES");
    ask(&mut client, "GET b");
    ask(&mut client, "GET c");
    for request in ["CLIENT CACHING YES", "MULTI", "GET d", "GET e", "EXEC", "GET f"] {
        ask(&mut client, request);
    }
    ask(&mut other, "MSET a 2 b 2 c 2 d 2 e 2 f 2");
    for key in ["b", "d", "e"] {
        assert_eq!(client.reply(), Some(invalidation(&[key])));
    }
    hears_nothing(&mut client);
    let refusal = "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then \
                   re-enabling it with a different mode.";
    assert_eq!(ask(&mut client, "CLIENT TRACKING ON OPTOUT"), error(refusal));
    ask(&mut client, "CLIENT TRACKING OFF");
    // All but after CACHING NO.
    ask(&mut client, "CLIENT TRACKING ON OPTOUT");
    ask(&mut client, "CLIENT CACHING NO");
    ask(&mut client, "GET a");
    ask(&mut client, "GET b");
    ask(&mut other, "MSET a 3 b 3");
    assert_eq!(client.reply(), Some(invalidation(&["b"])));
    hears_nothing(&mut client);
    ask(&mut client, "CLIENT TRACKING OFF");
    // All keys with a prefix, read or not, each once in a round.
    ask(&mut client, "CLIENT TRACKING ON BCAST PREFIX x: PREFIX y:");
    ask(&mut other, "MSET x:2 1 x:1 1 z:1 1 y:1 1 x:2 2");
    assert_eq!(client.reply(), Some(invalidation(&["x:1", "x:2"])));
    assert_eq!(client.reply(), Some(invalidation(&["y:1"])));
    hears_nothing(&mut client);
    ask(&mut client, "RESET");
    ask(&mut client, "HELLO 3");
    ask(&mut other, "SET x:1 1");
    hears_nothing(&mut client);
}

#[test]
fn another_client_is_told_instead() {
    let server = server();
    let (mut client, mut other, mut told) = (server.client(), server.client(), server.client());
    let Value::Integer(id) = ask(&mut told, "CLIENT ID") else { panic!("no number") };
    assert_eq!(ask(&mut client, &format!("CLIENT TRACKING ON REDIRECT {id}")), ok());
    assert_eq!(ask(&mut client, "CLIENT GETREDIR"), Value::Integer(id));
    told.ask(&["SUBSCRIBE", "__redis__:invalidate"]);
    ask(&mut client, "GET a");
    ask(&mut other, "SET a 1");
    let message = Value::Array(vec![bulk("message"), bulk("__redis__:invalidate"), keys(&["a"])]);
    assert_eq!(told.reply(), Some(message));
    ask(&mut other, "FLUSHALL");
    let message = Value::Array(vec![bulk("message"), bulk("__redis__:invalidate"), Value::Null]);
    assert_eq!(told.reply(), Some(message));
    // It leaves.
    ask(&mut client, "HELLO 3");
    ask(&mut client, "GET a");
    drop(told);
    while ask(&mut other, &format!("CLIENT LIST ID {id}")) != bulk("") {
        thread::yield_now();
    }
    ask(&mut other, "SET a 1");
    let lost = Value::Push(vec![bulk("tracking-redir-broken"), Value::Integer(id)]);
    assert_eq!(client.reply(), Some(lost));
    let Value::Map(info) = ask(&mut client, "CLIENT TRACKINGINFO") else { panic!("no map") };
    assert_eq!(info[0].1, Value::Set(vec![bulk("on"), bulk("broken_redirect")]));
    assert_eq!(
        ask(&mut client, "CLIENT TRACKING ON REDIRECT 987654"),
        error("ERR The client ID you want redirect to does not exist")
    );
}

#[test]
fn the_table_is_bounded_and_keys_expire() {
    let server = server();
    let mut client = resp3(&server);
    let mut other = server.client();
    ask(&mut client, "CLIENT TRACKING ON");
    ask(&mut other, "CONFIG SET tracking-table-max-keys 2");
    ask(&mut client, "MGET a b c d");
    let mut told = Vec::new();
    for _ in 0..2 {
        let Some(Value::Push(parts)) = client.reply() else { panic!("no push") };
        told.push(parts[1].clone());
    }
    hears_nothing(&mut client);
    assert_ne!(told[0], told[1]);
    // Keys that expire after they were read.
    ask(&mut other, "CONFIG SET tracking-table-max-keys 100");
    ask(&mut other, "SET e 1 PX 1000");
    ask(&mut other, "SET f 1 PX 500");
    assert_eq!(ask(&mut client, "GET f"), bulk("1"));
    assert_eq!(ask(&mut client, "GET e"), bulk("1"));
    assert_eq!(client.reply(), Some(invalidation(&["f"])));
    assert_eq!(client.reply(), Some(invalidation(&["e"])));
}

/// A client with a cache of values. It drops a value when it is told so.
struct Caching {
    client: Client,
    cache: HashMap<String, Value>,
}

impl Caching {
    fn new(server: &Running) -> Self {
        let mut client = resp3(server);
        client.ask(&["CLIENT", "TRACKING", "ON"]);
        Self { client, cache: HashMap::new() }
    }

    /// The next reply. What came before it was told in the meantime.
    fn reply(&mut self) -> Value {
        loop {
            match self.client.reply().expect("a reply") {
                Value::Push(parts) => match &parts[1] {
                    Value::Array(keys) => {
                        for key in keys {
                            let Value::Bulk(key) = key else { panic!("{key:?}") };
                            self.cache.remove(std::str::from_utf8(key).unwrap());
                        }
                    }
                    other => panic!("{other:?}"),
                },
                reply => return reply,
            }
        }
    }

    /// Reads keys together that are not in the cache, by one command or by one for each.
    fn read(&mut self, keys: &[String], together: bool) {
        let missing: Vec<&String> = keys.iter().filter(|key| !self.cache.contains_key(*key)).collect();
        if missing.is_empty() {
            self.client.send_request(&["PING"]);
            self.reply();
        } else if together {
            let words: Vec<&str> =
                ["MGET"].into_iter().chain(missing.iter().map(|key| key.as_str())).collect();
            self.client.send_request(&words);
            let Value::Array(values) = self.reply() else { panic!("no array") };
            self.cache.extend(missing.into_iter().cloned().zip(values));
        } else {
            missing.iter().for_each(|key| self.client.send_request(&["GET", key]));
            for key in missing {
                let value = self.reply();
                self.cache.insert(key.clone(), value);
            }
        }
    }
}

/// Whenever no write is in progress, what clients have kept is what is stored. If a read registered after reading, or a
/// write told clients before it took effect, this would find a value that stayed: many keys that nobody writes make the
/// time between the first reads of a request and its end long, and the first keys are written all the time.
#[test]
fn no_invalidation_is_lost() {
    const KEYS: usize = 32;
    const OTHERS: usize = 15_000;
    const READERS: usize = 3;
    const WRITERS: usize = 3;
    const PHASES: usize = 20;
    let server = server();
    let name = |number| format!("key{number}");
    let (hot, all): (Vec<String>, Vec<String>) =
        ((0..KEYS).map(name).collect(), (0..KEYS + OTHERS).map(name).collect());
    let [begin, end, checked] = [(); 3].map(|()| Barrier::new(READERS + WRITERS));
    let writing = AtomicBool::new(true);
    // Not asserted at once: the other threads would wait.
    let stale = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (server, hot, begin, end, checked, writing) =
                (&server, &hot, &begin, &end, &checked, &writing);
            scope.spawn(move || {
                let mut client = server.client();
                for _ in 0..PHASES {
                    begin.wait();
                    for step in 0..24 {
                        for key in hot {
                            match step % 4 {
                                0 => {
                                    let script = "return redis.call('INCR', KEYS[1])";
                                    client.send_request(&["EVAL", script, "1", key]);
                                }
                                1 => client.send_request(&["DEL", key]),
                                _ => client.send_request(&["INCR", key]),
                            }
                        }
                        hot.iter().for_each(|_| drop(client.reply().expect("a reply")));
                    }
                    if writer == 0 {
                        writing.store(false, Ordering::Relaxed);
                    }
                    end.wait();
                    checked.wait();
                    writing.store(true, Ordering::Relaxed);
                }
            });
        }
        for reader in 0..READERS {
            let (server, hot, all, begin, end, checked, writing, stale) =
                (&server, &hot, &all, &begin, &end, &checked, &writing, &stale);
            scope.spawn(move || {
                let mut caching = Caching::new(server);
                let mut plain = server.client();
                for phase in 0..PHASES {
                    begin.wait();
                    while writing.load(Ordering::Relaxed) {
                        caching.cache.clear();
                        let (keys, together) =
                            if (reader + phase) % 3 > 0 { (all, true) } else { (hot, false) };
                        caching.read(keys, together);
                    }
                    end.wait();
                    // What it was told before this reply is all that it will be told.
                    caching.client.send_request(&["PING"]);
                    caching.reply();
                    for key in hot.iter().filter(|key| caching.cache.contains_key(*key)) {
                        let stored = plain.ask(&["GET", key]);
                        if stored != caching.cache[key] {
                            stale.lock().unwrap().push(format!("{key} in phase {phase}"));
                        }
                    }
                    checked.wait();
                }
            });
        }
    });
    assert_eq!(stale.into_inner().unwrap(), Vec::<String>::new());
}
