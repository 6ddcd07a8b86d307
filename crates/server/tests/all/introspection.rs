//! What clients ask on connecting, in both versions of the protocol, and scans over a changing store.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use crate::common::{Client, Running, bulk, database, ok};
use alluvium_protocol::Value;
use alluvium_server::{Server, ServerError, ServerOptions};

fn text(value: &Value) -> String {
    match value {
        Value::Bulk(bytes) | Value::Simple(bytes) | Value::Verbatim(bytes) => {
            String::from_utf8(bytes.clone()).unwrap()
        }
        other => panic!("no text: {other:?}"),
    }
}

/// A map reply of either version.
fn pairs(value: Value) -> BTreeMap<String, Value> {
    match value {
        Value::Map(pairs) => pairs.into_iter().map(|(key, value)| (text(&key), value)).collect(),
        Value::Array(members) => members.chunks(2).map(|pair| (text(&pair[0]), pair[1].clone())).collect(),
        other => panic!("no map: {other:?}"),
    }
}

#[test]
fn hello_switches_the_version_and_reset_switches_back() {
    let server = Running::start(Default::default());
    let mut client = server.client();
    let hello = pairs(client.ask(&["HELLO"]));
    assert_eq!(hello["proto"], Value::Integer(2));
    assert_eq!(hello["version"], bulk("7.0.15"));
    client.send_request(&["GET", "nothing"]);
    assert_eq!(client.raw(5), b"$-1\r\n");
    let hello = client.ask(&["HELLO", "3", "AUTH", "default", "any", "SETNAME", "me"]);
    assert!(matches!(hello, Value::Map(_)));
    assert_eq!(pairs(hello)["proto"], Value::Integer(3));
    assert_eq!(client.ask(&["CLIENT", "GETNAME"]), bulk("me"));
    client.send_request(&["GET", "nothing"]);
    assert_eq!(client.raw(3), b"_\r\n");
    assert!(matches!(client.ask(&["CONFIG", "GET", "*"]), Value::Map(_)));
    assert_eq!(client.ask(&["RESET"]), Value::Simple(b"RESET".to_vec()));
    client.send_request(&["GET", "nothing"]);
    assert_eq!(client.raw(5), b"$-1\r\n");
}

#[test]
fn a_failed_hello_changes_nothing() {
    let server = Running::start(Default::default());
    let mut client = server.client();
    assert!(matches!(client.ask(&["HELLO", "3", "SETNAME", "me", "WHAT"]), Value::Error(_)));
    assert_eq!(client.ask(&["CLIENT", "GETNAME"]), Value::Null);
    client.send_request(&["GET", "nothing"]);
    assert_eq!(client.raw(5), b"$-1\r\n");
}

#[test]
fn info_has_what_clients_look_for() {
    let server = Running::start(Default::default());
    let mut client = server.client();
    assert_eq!(client.ask(&["SET", "key", "value"]), ok());
    let info = text(&client.ask(&["INFO"]));
    let fields: BTreeMap<&str, &str> = info.lines().filter_map(|line| line.split_once(':')).collect();
    for (name, value) in [
        ("redis_version", "7.0.15"),
        ("redis_mode", "standalone"),
        ("arch_bits", "64"),
        ("loading", "0"),
        ("role", "master"),
        ("cluster_enabled", "0"),
        ("connected_clients", "1"),
        ("maxmemory", "0"),
        ("db0", "keys=1,expires=0,avg_ttl=0"),
    ] {
        assert_eq!(fields.get(name), Some(&value), "{name}");
    }
    for name in ["used_memory", "uptime_in_seconds"] {
        assert!(fields[name].parse::<u64>().is_ok(), "{name}");
    }
    let one = text(&client.ask(&["INFO", "replication"]));
    assert!(one.starts_with("# Replication\r\nrole:master\r\n") && !one.contains("redis_version"));
    assert_eq!(text(&client.ask(&["INFO", "everything"])).matches('#').count(), 12);
}

#[test]
fn clients_have_numbers_names_and_libraries() {
    let server = Running::start(Default::default());
    let (mut one, mut two) = (server.client(), server.client());
    let ids = [one.ask(&["CLIENT", "ID"]), two.ask(&["CLIENT", "ID"])];
    assert_eq!(ids.map(|id| matches!(id, Value::Integer(1..))), [true, true]);
    assert_ne!(one.ask(&["CLIENT", "ID"]), two.ask(&["CLIENT", "ID"]));
    assert_eq!(one.ask(&["CLIENT", "SETINFO", "lib-name", "tests"]), ok());
    assert_eq!(one.ask(&["CLIENT", "SETINFO", "LIB-VER", "1.0"]), ok());
    assert_eq!(one.ask(&["CLIENT", "SETNAME", "me"]), ok());
    let info = text(&one.ask(&["CLIENT", "INFO"]));
    for part in [" name=me ", " lib-name=tests ", " lib-ver=1.0", " resp=2 "] {
        assert!(info.contains(part), "{info}");
    }
    assert_eq!(
        one.ask(&["CLIENT", "SETINFO", "lib-name", "a b"]),
        Value::Error(b"ERR lib-name cannot contain spaces, newlines or special characters.".to_vec())
    );
    assert_eq!(
        one.ask(&["CLIENT", "SETINFO", "what", "x"]),
        Value::Error(b"ERR Unrecognized option 'what'".to_vec())
    );
    assert!(matches!(one.ask(&["CLIENT", "HELP"]), Value::Array(lines) if lines.len() == 35));
}

#[test]
fn the_command_table_describes_itself() {
    let server = Running::start(Default::default());
    let mut client = server.client();
    let Value::Integer(count) = client.ask(&["COMMAND", "COUNT"]) else { panic!("no count") };
    let Value::Array(commands) = client.ask(&["COMMAND"]) else { panic!("no list") };
    assert_eq!(commands.len() as i64, count);
    assert_eq!(client.ask(&["COMMAND", "INFO"]), Value::Array(commands));
    let Value::Array(names) = client.ask(&["COMMAND", "LIST"]) else { panic!("no names") };
    // Subcommands are listed, too.
    assert_eq!(names.iter().filter(|name| !text(name).contains('|')).count() as i64, count);
    let Value::Array(infos) = client.ask(&["COMMAND", "INFO", "mset", "nothing"]) else { panic!("no info") };
    let Value::Array(mset) = &infos[0] else { panic!("no description") };
    assert_eq!(mset[..2], [bulk("mset"), Value::Integer(-3)]);
    assert_eq!(mset[3..6], [Value::Integer(1), Value::Integer(-1), Value::Integer(2)]);
    assert_eq!((mset.len(), &infos[1]), (10, &Value::Null));
    let set = pairs(pairs(client.ask(&["COMMAND", "DOCS", "set"]))["set"].clone());
    let Value::Array(arguments) = &set["arguments"] else { panic!("no arguments") };
    assert_eq!(pairs(arguments[0].clone())["type"], bulk("key"));
    let docs = pairs(client.ask(&["COMMAND", "DOCS"]));
    assert_eq!(docs.len() as i64, count);
    for (name, document) in docs {
        let document = pairs(document);
        for part in ["summary", "since", "group", "complexity"] {
            assert!(!text(&document[part]).is_empty(), "{name} {part}");
        }
    }
    let client_docs = pairs(pairs(client.ask(&["COMMAND", "DOCS", "client"])).remove("client").unwrap());
    assert!(pairs(client_docs["subcommands"].clone()).contains_key("client|setinfo"));
}

fn scan(client: &mut Client, words: &[&str]) -> (String, Vec<String>) {
    match client.ask(words) {
        Value::Array(parts) => match &parts[..] {
            [cursor, Value::Array(keys)] => (text(cursor), keys.iter().map(text).collect()),
            other => panic!("no scan: {other:?}"),
        },
        other => panic!("no scan: {other:?}"),
    }
}

#[test]
fn a_scan_sees_every_key_that_stays() {
    let server = Running::start(Default::default());
    let mut client = server.client();
    let stay: BTreeSet<String> = (0..1000).map(|number| format!("stay:{number}")).collect();
    for key in &stay {
        assert_eq!(client.ask(&["SET", key, "x"]), ok());
    }
    let (mut cursor, mut seen, mut calls) = ("0".to_owned(), BTreeSet::new(), 0);
    loop {
        let (next, keys) = scan(&mut client, &["SCAN", &cursor, "MATCH", "stay:*", "COUNT", "37"]);
        assert!(keys.len() < 100);
        seen.extend(keys);
        calls += 1;
        client.ask(&["SET", &format!("come:{calls}"), "x"]);
        client.ask(&["DEL", &format!("come:{}", calls / 2)]);
        if next == "0" {
            break;
        }
        cursor = next;
    }
    assert_eq!(seen, stay);
}

#[test]
fn only_loopback_addresses_are_served_unless_allowed() {
    let directory = tempfile::tempdir().unwrap();
    let db = database(&directory);
    let options = ServerOptions { address: SocketAddr::from(([0, 0, 0, 0], 0)), ..Default::default() };
    let refused = Server::bind(options.clone(), db.clone()).err().unwrap();
    assert!(matches!(refused, ServerError::RemoteAddress(_)), "{refused}");
    Server::bind(ServerOptions { allow_remote: true, ..options }, db).unwrap();
}

#[test]
fn items_outlive_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let options = ServerOptions { address: SocketAddr::from(([127, 0, 0, 1], 0)), ..Default::default() };
    for round in 0..3 {
        let db = database(&directory);
        let server = Server::bind(options.clone(), db.clone()).unwrap();
        let (address, shutdown) = (server.local_address(), server.shutdown_handle());
        let serving = std::thread::spawn(|| server.run());
        let mut client = Client::connect(address);
        assert_eq!(client.ask(&["INCR", "rounds"]), Value::Integer(round + 1));
        assert_eq!(client.ask(&["MSET", "a", "1", "b", "2"]), ok());
        shutdown.shutdown();
        serving.join().unwrap().unwrap();
        db.close().unwrap();
    }
}

#[test]
fn commands_tell_where_their_keys_are() {
    let server = Running::start(Default::default());
    let client = &mut server.client();
    let words = |client: &mut Client, request: &[&str]| match client.ask(request) {
        Value::Array(members) => members.iter().map(text).collect::<Vec<_>>(),
        Value::Error(error) => vec![String::from_utf8(error).unwrap()],
        other => panic!("{other:?}"),
    };
    for (request, expected) in [
        (&["get", "a"][..], &["a"][..]),
        (&["mset", "a", "1", "b", "2"], &["a", "b"]),
        (&["lcs", "a", "b", "LEN"], &["a", "b"]),
        (&["memory", "usage", "a"], &["a"]),
        (&["bitop", "and", "a", "b", "c"], &["a", "b", "c"]),
        (&["sintercard", "2", "a", "b", "LIMIT", "1"], &["a", "b"]),
        (&["eval", "return 1", "1", "a", "b"], &["a"]),
        (&["eval", "return 1", "0"], &[]),
        (&["eval", "return 1", "7"], &[]),
        (&["sintercard", "7", "a"], &["ERR Invalid arguments specified for command"]),
        (&["ping"], &["ERR The command has no key arguments"]),
        (&["what"], &["ERR Invalid command specified"]),
        (&["get"], &["ERR Invalid number of arguments specified for command"]),
    ] {
        assert_eq!(words(client, &[&["COMMAND", "GETKEYS"], request].concat()), expected, "{request:?}");
    }
    let flags = client.ask(&["COMMAND", "GETKEYSANDFLAGS", "set", "a", "1"]);
    let update = Value::Array(["OW", "update"].map(|word| Value::Simple(word.into())).to_vec());
    assert_eq!(flags, Value::Array(vec![Value::Array(vec![bulk("a"), update])]));
    assert_eq!(
        words(client, &["COMMAND", "LIST", "FILTERBY", "PATTERN", "config|re*"]),
        ["config|resetstat", "config|rewrite"]
    );
    let strings = words(client, &["COMMAND", "LIST", "FILTERBY", "ACLCAT", "bitmap"]);
    assert!(strings.contains(&"bitop".to_owned()) && !strings.contains(&"get".to_owned()));
    assert_eq!(words(client, &["COMMAND", "LIST", "FILTERBY", "MODULE", "none"]), [""; 0]);
    assert!(words(client, &["COMMAND", "LIST"]).contains(&"client|help".to_owned()));
    assert_eq!(words(client, &["COMMAND", "LIST", "what"]), ["ERR syntax error"]);
}
