//! Loading libraries of functions, and keeping them.
#![cfg(feature = "scripting")]

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use alluvium_protocol::{Value, dump};
use alluvium_server::{CacheSettings, CacheStore, Server, ServerOptions};
use tempfile::TempDir;

use crate::common::{self, Client, Running, bulk, ok};
use crate::functions::{fails, function, load};

fn integer(number: i64) -> Value {
    Value::Integer(number)
}

fn names(client: &mut Client) -> Vec<String> {
    let Value::Array(libraries) = client.ask(&["FUNCTION", "LIST"]) else { panic!("no list") };
    let name = |library: Value| match library {
        Value::Array(fields) => match &fields[1] {
            Value::Bulk(name) => String::from_utf8(name.clone()).unwrap(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    libraries.into_iter().map(name).collect()
}

#[test]
fn libraries_are_replaced_and_deleted_for_all_workers() {
    let server = Running::start(ServerOptions { workers: 3.try_into().unwrap(), ..Default::default() });
    let mut clients: Vec<Client> = (0..6).map(|_| server.client()).collect();
    for number in 0..20 {
        assert_eq!(
            load(&mut clients[number % 6], &function("lib", &format!("return {number}"))),
            bulk("lib")
        );
        for client in &mut clients {
            assert_eq!(client.ask(&["FCALL", "f", "0"]), integer(number as i64));
        }
    }
    let [client, other, ..] = &mut clients[..] else { unreachable!() };
    fails(client.ask(&["FUNCTION", "LOAD", &function("lib", "")]), "ERR Library 'lib' already exists");
    fails(load(client, &function("two", "")), "ERR Function f already exists");
    fails(load(client, "#!lua name=lib\nreturn 1"), "ERR No functions registered");
    assert_eq!(other.ask(&["FCALL", "f", "0"]), integer(19));
    assert_eq!(client.ask(&["FLUSHALL"]), ok());
    assert_eq!(client.ask(&["FUNCTION", "DELETE", "lib"]), ok());
    fails(client.ask(&["FUNCTION", "DELETE", "lib"]), "ERR Library not found");
    fails(other.ask(&["FCALL", "f", "0"]), "ERR Function not found");
    load(client, &function("lib", "return 1"));
    assert_eq!(client.ask(&["FUNCTION", "FLUSH", "ASYNC"]), ok());
    fails(other.ask(&["FCALL", "f", "0"]), "ERR Function not found");
    assert!(names(client).is_empty());
    client.ask(&["MULTI"]);
    fails(client.ask(&["FUNCTION", "FLUSH"]), "ERR Command not allowed inside a transaction");
    assert_eq!(client.ask(&["DISCARD"]), ok());
    let inside = "return redis.call('FUNCTION', 'FLUSH')";
    fails(client.ask(&["EVAL", inside, "0"]), "ERR This Redis command is not allowed from script");
}

#[test]
fn sources_can_only_register_functions() {
    let server = Running::start(ServerOptions::default());
    let mut client = server.client();
    for (body, expected) in [
        (
            "redis.call('SET', 'a', 1)",
            "ERR Error registering functions: ERR user_function:2: Script attempted to",
        ),
        ("math.random()", "ERR Error registering functions: ERR user_function:2: Script attempted to access"),
        ("tostring(1)", "ERR Error registering functions: ERR user_function:2: Script attempted to access"),
        ("x = 1", "ERR Error registering functions: ERR user_function:2: Attempt to modify a readonly table"),
        ("redis.x = 1", "ERR Error registering functions: ERR user_function:2: Attempt to modify a readonly"),
        ("return (", "ERR Error compiling function: user_function:2: unexpected symbol"),
        ("redis.register_function('a', 1)", "ERR Error registering functions: ERR second argument to"),
        (
            "redis.register_function('a b', function() end)",
            "ERR Error registering functions: ERR Library names",
        ),
        ("redis.register_function{flags = {'x'}}", "ERR Error registering functions: ERR unknown flag given"),
        (
            "redis.register_function{callback = 1}",
            "ERR Error registering functions: ERR callback argument given",
        ),
        ("redis.register_function{[{}] = 1}", "ERR Error registering functions: ERR named argument key"),
        ("redis.log('x', 'y')", "ERR Error registering functions: ERR First argument must be a number"),
        (
            "local t = {} t = t .. t",
            "ERR Error registering functions: ERR user_function:2: attempt to concatenate",
        ),
        (
            "local function f() return f() + 1 end f()",
            "ERR Error registering functions: ERR user_function:2: ",
        ),
        (
            "local s = 'x' while true do s = s .. s end",
            "ERR Error registering functions: ERR not enough memory",
        ),
        ("while true do end", "ERR Error registering functions: FUNCTION LOAD timeout"),
        (
            "local function f() while true do end end while true do f() end",
            "ERR Error registering functions: FUNC",
        ),
        ("\u{1b}Lua", "ERR Error compiling function: "),
    ] {
        let reply = load(&mut client, &format!("#!lua name=lib\n{body}"));
        let Value::Error(text) = reply else { panic!("{body}: {reply:?}") };
        let text = String::from_utf8_lossy(&text);
        assert!(text.starts_with(expected), "{body}: {text}");
    }
    let began = Instant::now();
    fails(
        load(&mut client, "#!lua name=lib\nwhile true do end"),
        "ERR Error registering functions: FUNCTION LOAD",
    );
    assert!(began.elapsed() < Duration::from_secs(3));
    // What a source keeps of its own environment is of no use to its functions, and the other way round.
    let kept = "#!lua name=lib\nlocal loading = redis
        redis.register_function('a', function() loading.register_function('b', function() end) end)
        redis.register_function('c', function() redis.register_function('b', function() end) end)
        redis.register_function('d', function() loading.call('PING') end)";
    assert_eq!(load(&mut client, kept), bulk("lib"));
    fails(
        client.ask(&["FCALL", "a", "0"]),
        "ERR redis.register_function can only be called on FUNCTION LOAD command",
    );
    fails(
        client.ask(&["FCALL", "c", "0"]),
        "ERR user_function:4: attempt to call field 'register_function' (a nil",
    );
    fails(
        client.ask(&["FCALL", "d", "0"]),
        "ERR user_function:5: Script attempted to access nonexistent global",
    );
    assert_eq!(client.ask(&["EVAL", "return 1", "0"]), integer(1));
}

#[test]
fn functions_and_libraries_are_bounded() {
    let server = Running::start(ServerOptions::default());
    let mut client = server.client();
    let many = "#!lua name=lib\nlocal n = 0 while true do n = n + 1
        redis.register_function('f' .. n, function() end) end";
    fails(
        load(&mut client, many),
        "ERR Error registering functions: ERR a server has at most 10000 functions",
    );
    let long =
        "#!lua name=lib\nlocal s = 'x' for _ = 1, 20 do s = s .. s end local n = 0 while true do n = n + 1
        redis.register_function{function_name = 'f' .. n, callback = function() end, description = s} end";
    fails(
        load(&mut client, long),
        "ERR Error registering functions: ERR a server has at most 10000 functions and",
    );
    let name = "n".repeat(1025);
    fails(
        load(&mut client, &function(&name, "")),
        "ERR names of libraries and functions have at most 1024 bytes",
    );
    assert_eq!(load(&mut client, &function(&name[1..], "")), bulk(&name[1..]));
    assert_eq!(client.ask(&["FUNCTION", "FLUSH"]), ok());
    let text = |number: usize| {
        format!("#!lua name=l{number}\nredis.register_function('f{number}', function() return {number} end)")
    };
    for number in 0..1000 {
        assert_eq!(load(&mut client, &text(number)), bulk(&format!("l{number}")));
    }
    fails(load(&mut client, &text(1000)), "ERR a server has at most 1000 libraries");
    assert_eq!(client.ask(&["FCALL", "f999", "0"]), integer(999));
}

#[test]
fn libraries_are_dumped_and_restored() {
    let server = Running::start(ServerOptions::default());
    let mut client = server.client();
    let one = function("one", "return 1");
    load(&mut client, &one);
    let expected = dump::encode_libraries([one.as_bytes()].into_iter());
    assert_eq!(client.ask(&["FUNCTION", "DUMP"]), Value::Bulk(expected.clone()));
    let mut restore = |payload: &[u8], policy: &[&str]| {
        let mut request = Vec::new();
        let words = [&b"FUNCTION"[..], b"RESTORE", payload].into_iter();
        let words: Vec<&[u8]> = words.chain(policy.iter().map(|word| word.as_bytes())).collect();
        alluvium_protocol::request::encode(&words, &mut request);
        client.send(&request);
        client.reply().unwrap()
    };
    let payload = |sources: &[&str]| dump::encode_libraries(sources.iter().map(|source| source.as_bytes()));
    fails(restore(&expected, &[]), "ERR Library one already exists");
    fails(restore(&expected, &["APPEND"]), "ERR Library one already exists");
    assert_eq!(restore(&expected, &["REPLACE"]), ok());
    let two = "#!lua name=two\nredis.register_function('g', function() return 2 end)";
    let other = function("other", "return 3");
    fails(restore(&payload(&[&other]), &["REPLACE"]), "ERR Function f already exists");
    // All or none.
    fails(restore(&payload(&[two, &other]), &[]), "ERR Function f already exists");
    fails(restore(&payload(&[two, two]), &["FLUSH"]), "ERR Library 'two' already exists");
    fails(restore(&payload(&[two, "x"]), &["FLUSH"]), "ERR Missing library metadata");
    fails(restore(&payload(&[two, "#!lua name=x\n("]), &["FLUSH"]), "ERR Error compiling function");
    fails(restore(b"x", &[]), "ERR DUMP payload version or checksum are wrong");
    fails(restore(&dump::encode_string(b"x"), &[]), "ERR given type is not a function");
    fails(restore(&expected, &["X"]), "ERR Wrong restore policy given");
    fails(
        restore(&expected, &["X", "Y"]),
        "ERR unknown subcommand or wrong number of arguments for 'RESTORE'",
    );
    assert_eq!(restore(&payload(&[two]), &[]), ok());
    assert_eq!(names(&mut client), ["one", "two"]);
    assert_eq!(client.ask(&["FCALL", "g", "0"]), integer(2));
    let mut request = Vec::new();
    alluvium_protocol::request::encode(
        &[b"FUNCTION", &b"RESTORE"[..], &payload(&[&other]), b"flush"],
        &mut request,
    );
    client.send(&request);
    assert_eq!(client.reply(), Some(ok()));
    assert_eq!(names(&mut client), ["other"]);
    assert_eq!(client.ask(&["FCALL", "f", "0"]), integer(3));
}

fn start_over(directory: &TempDir) -> (Client, thread::JoinHandle<()>, alluvium_server::ShutdownHandle) {
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let db = common::database(directory);
    let server = Server::bind(ServerOptions { address, ..Default::default() }, db.clone()).unwrap();
    let (client, handle) = (Client::connect(server.local_address()), server.shutdown_handle());
    let thread = thread::spawn(move || {
        server.run().unwrap();
        db.close().unwrap();
    });
    (client, thread, handle)
}

#[test]
fn libraries_survive_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let (mut client, thread, handle) = start_over(&directory);
    load(&mut client, &function("one", "return 1"));
    load(&mut client, "#!lua name=two\nredis.register_function('g', function() return 2 end)");
    load(&mut client, "#!lua name=three\nredis.register_function('h', function() return 3 end)");
    assert_eq!(client.ask(&["FUNCTION", "DELETE", "three"]), ok());
    load(&mut client, &function("one", "return 4"));
    drop(client);
    handle.shutdown();
    thread.join().unwrap();
    {
        // A library that a later version may have accepted, and one that has lost its first line.
        let db = common::database(&directory);
        let keyspace = db.keyspace("functions").unwrap();
        keyspace.insert("later", "#!lua name=later\ngoto x").unwrap();
        keyspace.insert("lost", "return 1").unwrap();
        db.close().unwrap();
    }
    let (mut client, thread, handle) = start_over(&directory);
    assert_eq!(names(&mut client), ["later", "lost", "one", "two"]);
    assert_eq!(client.ask(&["FCALL", "f", "0"]), integer(4));
    assert_eq!(client.ask(&["FCALL", "g", "0"]), integer(2));
    let text =
        "ERR Function not found. The library 'later' could not be loaded: ERR Error compiling function: ";
    fails(client.ask(&["FCALL", "h", "0"]), text);
    let Value::Bulk(payload) = client.ask(&["FUNCTION", "DUMP"]) else { panic!("no payload") };
    let sources = dump::decode_libraries(&payload, alluvium_protocol::Limits::default()).unwrap();
    assert_eq!(sources.len(), 4);
    assert_eq!(client.ask(&["FUNCTION", "DELETE", "later"]), ok());
    assert_eq!(
        load(&mut client, "#!lua name=lost\nredis.register_function('h', function() return 5 end)"),
        bulk("lost")
    );
    assert_eq!(client.ask(&["FCALL", "h", "0"]), integer(5));
    assert_eq!(client.ask(&["FUNCTION", "FLUSH"]), ok());
    drop(client);
    handle.shutdown();
    thread.join().unwrap();
    let (mut client, thread, handle) = start_over(&directory);
    assert!(names(&mut client).is_empty());
    drop(client);
    handle.shutdown();
    thread.join().unwrap();
}

#[test]
fn a_cache_has_functions_in_memory() {
    let store = CacheStore::new(CacheSettings::new(64 << 20), 2).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = ServerOptions { address, ..Default::default() };
    let server = Server::with_store(options, std::sync::Arc::new(store)).unwrap();
    let server = Running::run(server, tempfile::tempdir().unwrap());
    let mut client = server.client();
    load(&mut client, &function("lib", "return redis.call('INCR', keys[1])"));
    assert_eq!(client.ask(&["FCALL", "f", "1", "n"]), integer(1));
    assert_eq!(client.ask(&["FLUSHALL"]), ok());
    assert_eq!(client.ask(&["FCALL", "f", "1", "n"]), integer(1));
    assert_eq!(names(&mut client), ["lib"]);
}
