//! Hashes and sets: compared with a model, within transactions, and cleaned up.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Client, Running, bulk, database, error, ok};
use alluvium::{Db, Durability};
use alluvium_protocol::Value;
use alluvium_server::{Server, ServerOptions};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

fn integer(number: i64) -> Value {
    Value::Integer(number)
}

fn text(value: &Value) -> String {
    match value {
        Value::Bulk(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        other => panic!("{other:?}"),
    }
}

fn texts(value: Value) -> Vec<String> {
    match value {
        Value::Array(values) | Value::Set(values) => values.iter().map(text).collect(),
        other => panic!("{other:?}"),
    }
}

/// A field or member, now and then one that is too long for a key of its keyspace.
fn member(rng: &mut StdRng) -> String {
    let number = rng.random_range(0..12);
    if number == 0 { "long".repeat(400) } else { format!("m{number}") }
}

#[derive(Clone, Debug, PartialEq)]
enum Item {
    String(String),
    Hash(BTreeMap<String, String>),
    Set(BTreeSet<String>),
}

type Model = BTreeMap<String, Item>;

const WRONG: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// Makes a random command and what a server answers to it.
fn step(rng: &mut StdRng, model: &mut Model) -> (Vec<String>, Value) {
    let key = format!("k{}", rng.random_range(0..4));
    let (one, two) = (member(rng), member(rng));
    let value = rng.random_range(0..1000).to_string();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let item = model.get_mut(&key);
    match rng.random_range(0..16) {
        0 => {
            let expected = match item {
                Some(Item::String(text)) => bulk(text),
                None => Value::Null,
                Some(_) => error(WRONG),
            };
            (words(&["GET", &key]), expected)
        }
        1 => {
            model.insert(key.clone(), Item::String(value.clone()));
            (words(&["SET", &key, &value]), ok())
        }
        2 => (words(&["DEL", &key]), integer(i64::from(model.remove(&key).is_some()))),
        3..=5 => {
            let expected = match model.entry(key.clone()).or_insert(Item::Hash(BTreeMap::new())) {
                Item::Hash(fields) => {
                    let first = fields.insert(one.clone(), value.clone()).is_none();
                    let second = fields.insert(two.clone(), "x".to_owned()).is_none();
                    integer(i64::from(first) + i64::from(second))
                }
                _ => error(WRONG),
            };
            (words(&["HSET", &key, &one, &value, &two, "x"]), expected)
        }
        6 => {
            let expected = match item {
                Some(Item::Hash(fields)) => integer(i64::from(fields.remove(&one).is_some())),
                None => integer(0),
                Some(_) => error(WRONG),
            };
            if model.get(&key) == Some(&Item::Hash(BTreeMap::new())) {
                model.remove(&key);
            }
            (words(&["HDEL", &key, &one]), expected)
        }
        7 => {
            let expected = match item {
                Some(Item::Hash(fields)) => fields.get(&one).map_or(Value::Null, |value| bulk(value)),
                None => Value::Null,
                Some(_) => error(WRONG),
            };
            (words(&["HGET", &key, &one]), expected)
        }
        8 => {
            let expected = match item {
                Some(Item::Hash(fields)) => integer(fields.len() as i64),
                None => integer(0),
                Some(_) => error(WRONG),
            };
            (words(&["HLEN", &key]), expected)
        }
        9..=11 => {
            let expected = match model.entry(key.clone()).or_insert(Item::Set(BTreeSet::new())) {
                Item::Set(members) => {
                    let (first, second) = (members.insert(one.clone()), members.insert(two.clone()));
                    integer(i64::from(first) + i64::from(second))
                }
                _ => error(WRONG),
            };
            (words(&["SADD", &key, &one, &two]), expected)
        }
        12 => {
            let expected = match item {
                Some(Item::Set(members)) => integer(i64::from(members.remove(&one))),
                None => integer(0),
                Some(_) => error(WRONG),
            };
            if model.get(&key) == Some(&Item::Set(BTreeSet::new())) {
                model.remove(&key);
            }
            (words(&["SREM", &key, &one]), expected)
        }
        13 => {
            let expected = match item {
                Some(Item::Set(members)) => integer(i64::from(members.contains(&one))),
                None => integer(0),
                Some(_) => error(WRONG),
            };
            (words(&["SISMEMBER", &key, &one]), expected)
        }
        14 => {
            let kind = match item {
                Some(Item::String(_)) => "string",
                Some(Item::Hash(_)) => "hash",
                Some(Item::Set(_)) => "set",
                None => "none",
            };
            (words(&["TYPE", &key]), Value::Simple(kind.as_bytes().to_vec()))
        }
        _ => (words(&["EXISTS", &key]), integer(i64::from(item.is_some()))),
    }
}

/// Compares the members of all keys with the model.
fn check(client: &mut Client, model: &Model) {
    for (key, item) in model {
        match item {
            Item::String(_) => {}
            Item::Hash(fields) => {
                let all = texts(client.ask(&["HGETALL", key]));
                let found: BTreeMap<String, String> =
                    all.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
                assert_eq!((&found, all.len()), (fields, 2 * fields.len()));
                let scanned = scan(client, "HSCAN", key);
                let scanned: BTreeMap<String, String> =
                    scanned.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
                assert_eq!(&scanned, fields);
            }
            Item::Set(members) => {
                let found: BTreeSet<String> = texts(client.ask(&["SMEMBERS", key])).into_iter().collect();
                assert_eq!(&found, members);
                assert_eq!(&scan(client, "SSCAN", key).into_iter().collect::<BTreeSet<_>>(), members);
            }
        }
    }
}

fn scan(client: &mut Client, command: &str, key: &str) -> Vec<String> {
    let (mut seen, mut cursor) = (Vec::new(), "0".to_owned());
    loop {
        let Value::Array(mut parts) = client.ask(&[command, key, &cursor, "COUNT", "3"]) else { panic!() };
        seen.extend(texts(parts.pop().unwrap()));
        cursor = text(&parts.pop().unwrap());
        if cursor == "0" {
            return seen;
        }
    }
}

#[test]
fn hashes_and_sets_are_those_of_a_model() {
    let server = Running::start(ServerOptions::default());
    let mut client = server.client();
    for seed in 0..8 {
        let (mut rng, mut model) = (StdRng::seed_from_u64(seed), Model::new());
        client.ask(&["FLUSHALL"]);
        for number in 0..400 {
            if rng.random_bool(0.2) {
                client.ask(&["MULTI"]);
                let mut expected = Vec::new();
                for _ in 0..rng.random_range(1..8) {
                    let (words, reply) = step(&mut rng, &mut model);
                    client.ask(&words.iter().map(String::as_str).collect::<Vec<_>>());
                    expected.push(reply);
                }
                assert_eq!(client.ask(&["EXEC"]), Value::Array(expected), "seed {seed}, step {number}");
            } else {
                let (words, reply) = step(&mut rng, &mut model);
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                assert_eq!(client.ask(&words), reply, "seed {seed}, step {number}: {words:?}");
            }
        }
        check(&mut client, &model);
    }
}

#[test]
fn operations_on_several_sets() {
    let server = Running::start(ServerOptions::default());
    let mut client = server.client();
    client.ask(&["SADD", "a", "1", "2", "3"]);
    client.ask(&["SADD", "b", "2", "3", "4"]);
    assert_eq!(texts(client.ask(&["SINTER", "a", "b"])), ["2", "3"]);
    assert_eq!(texts(client.ask(&["SUNION", "a", "b", "none"])), ["1", "2", "3", "4"]);
    assert_eq!(texts(client.ask(&["SDIFF", "a", "b"])), ["1"]);
    assert_eq!(client.ask(&["SINTERCARD", "2", "a", "b"]), integer(2));
    assert_eq!(client.ask(&["SINTERCARD", "2", "a", "b", "LIMIT", "1"]), integer(1));
    assert_eq!(client.ask(&["SUNIONSTORE", "a", "a", "b"]), integer(4));
    assert_eq!(client.ask(&["SCARD", "a"]), integer(4));
    assert_eq!(client.ask(&["SINTERSTORE", "a", "a", "none"]), integer(0));
    assert_eq!(client.ask(&["EXISTS", "a"]), integer(0));
    assert_eq!(client.ask(&["SMOVE", "b", "c", "2"]), integer(1));
    assert_eq!(client.ask(&["SMOVE", "b", "c", "2"]), integer(0));
    assert_eq!(texts(client.ask(&["SMEMBERS", "c"])), ["2"]);
    client.ask(&["HSET", "h", "f", "1"]);
    assert_eq!(client.ask(&["SMOVE", "b", "h", "3"]), error(WRONG));
    assert_eq!(client.ask(&["SUNION", "b", "h"]), error(WRONG));
    assert_eq!(client.ask(&["HINCRBY", "h", "f", "41"]), integer(42));
    assert_eq!(client.ask(&["HINCRBYFLOAT", "h", "f", "0.5"]), bulk("42.5"));
    client.ask(&["HSET", "h", "word", "x"]);
    assert_eq!(client.ask(&["HINCRBYFLOAT", "h", "word", "1"]), error("ERR hash value is not a float"));
    client.ask(&["HSET", "h", "f", "42"]);
    assert_eq!(
        client.ask(&["HINCRBY", "h", "f", "9223372036854775807"]),
        error("ERR increment or decrement would overflow")
    );
}

#[test]
fn random_members_are_members() {
    let server = Running::start(ServerOptions::default());
    let mut client = server.client();
    for size in [5, 2_000] {
        client.ask(&["DEL", "s"]);
        let members: Vec<String> = (0..size).map(|number| format!("m{number}")).collect();
        let mut words = vec!["SADD", "s"];
        words.extend(members.iter().map(String::as_str));
        assert_eq!(client.ask(&words), integer(size));
        let some: BTreeSet<String> = texts(client.ask(&["SRANDMEMBER", "s", "4"])).into_iter().collect();
        assert!(some.len() == 4 && some.iter().all(|member| members.contains(member)));
        assert_eq!(texts(client.ask(&["SRANDMEMBER", "s", "-30"])).len(), 30);
        assert!(members.contains(&text(&client.ask(&["SRANDMEMBER", "s"]))));
        assert_eq!(texts(client.ask(&["SPOP", "s", "3"])).len(), 3);
        assert!(members.contains(&text(&client.ask(&["SPOP", "s"]))));
        assert_eq!(client.ask(&["SCARD", "s"]), integer(size - 4));
        assert_eq!(texts(client.ask(&["SPOP", "s", "100000"])).len() as i64, size - 4);
        assert_eq!(client.ask(&["EXISTS", "s"]), integer(0));
    }
}

/// Waits until the members of the database's collections are gone.
fn wait_until_tidy(db: &Db) {
    let members = db.keyspace_names().contains(&"default.members".to_owned());
    assert!(members);
    let deadline = Instant::now() + Duration::from_secs(60);
    let members = db
        .keyspace_with(
            "default.members",
            &alluvium::KeyspaceOptions::semi_sorted(alluvium::PrefixRule::Length { bytes: 8 }),
        )
        .unwrap();
    while members.count().unwrap() > 0 {
        assert!(Instant::now() < deadline, "{} members are left", members.count().unwrap());
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn members_go_after_their_key_however_it_goes() {
    let directory = tempfile::tempdir().unwrap();
    let db = database(&directory);
    let options = ServerOptions { address: SocketAddr::from(([127, 0, 0, 1], 0)), ..Default::default() };
    let server = Running::run(Server::bind(options, db.clone()).unwrap(), directory);
    let mut client = server.client();
    let fields: Vec<String> = (0..3_000).map(|number| format!("f{number}")).collect();
    for ways in [
        &[&["DEL", "h"][..]][..],
        &[&["SET", "h", "string"]],
        &[&["SET", "h", "string", "XX"]],
        &[&["PEXPIRE", "h", "1"]],
        &[&["EXPIRE", "h", "-1"]],
        &[&["FLUSHDB"]],
        &[&["MULTI"], &["DEL", "h"], &["EXEC"]],
    ] {
        let mut words = vec!["HSET", "h"];
        words.extend(fields.iter().flat_map(|field| [field.as_str(), "value"]));
        assert_eq!(client.ask(&words), integer(3_000));
        for way in ways {
            client.ask(way);
        }
        wait_until_tidy(&db);
        client.ask(&["DEL", "h"]);
    }
    // What a key refers to stays.
    client.ask(&["HSET", "h", "f", "v"]);
    thread::sleep(Duration::from_millis(1_500));
    assert_eq!(client.ask(&["HGET", "h", "f"]), bulk("v"));
}

#[test]
fn hashes_survive_a_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Db::builder(directory.path()).durability(Durability::Buffered).open().unwrap();
    let serve = |db: &Db| {
        let options = ServerOptions { address: SocketAddr::from(([127, 0, 0, 1], 0)), ..Default::default() };
        Running::run(Server::bind(options, db.clone()).unwrap(), tempfile::tempdir().unwrap())
    };
    for round in 0..3 {
        let db = open();
        let server = serve(&db);
        let mut client = server.client();
        assert_eq!(client.ask(&["HLEN", "h"]), integer(round));
        assert_eq!(client.ask(&["HSET", "h", &format!("f{round}"), "v"]), integer(1));
        assert_eq!(client.ask(&["SADD", &format!("s{round}"), "m"]), integer(1));
        drop((client, server));
        db.close().unwrap();
    }
}

#[test]
fn concurrent_changes_of_one_hash_are_all_counted() {
    let server = Running::start(ServerOptions { workers: 3.try_into().unwrap(), ..Default::default() });
    thread::scope(|scope| {
        for writer in 0..4 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.client();
                for number in 0..100 {
                    client.ask(&["HINCRBY", "h", "sum", "1"]);
                    client.ask(&["HSET", "h", &format!("{writer}-{number}"), "x"]);
                    if number % 10 == 9 {
                        assert_eq!(client.ask(&["HDEL", "h", &format!("{writer}-{number}")]), integer(1));
                    }
                }
            });
        }
    });
    let mut client = server.client();
    assert_eq!(client.ask(&["HGET", "h", "sum"]), bulk("400"));
    assert_eq!(client.ask(&["HLEN", "h"]), integer(361));
    assert_eq!(texts(client.ask(&["HKEYS", "h"])).len(), 361);
}

/// Each of two clients reads all fields of one hash and writes a field of the other, if none is set. Only one may win.
#[cfg(feature = "scripting")]
#[test]
fn transactions_that_read_whole_hashes_are_serializable() {
    const SCRIPT: &str = "for _, value in ipairs(redis.call('HVALS', KEYS[1])) do
            if value ~= '0' then return 0 end
        end
        redis.call('HSET', KEYS[2], 'f', '1')
        return 1";
    let server = Running::start(ServerOptions { workers: 2.try_into().unwrap(), ..Default::default() });
    let mut clients = [server.client(), server.client()];
    for round in 0..300 {
        for key in ["a", "b"] {
            clients[0].ask(&["HSET", key, "f", "0", "g", "0"]);
        }
        clients[0].send_request(&["EVAL", SCRIPT, "2", "a", "b"]);
        clients[1].send_request(&["EVAL", SCRIPT, "2", "b", "a"]);
        let won = clients.each_mut().map(|client| client.reply().unwrap());
        assert_ne!(won, [integer(1), integer(1)], "round {round}");
    }
}
