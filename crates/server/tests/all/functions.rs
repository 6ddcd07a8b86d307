//! Calling functions of libraries.
#![cfg(feature = "scripting")]

use std::thread;
use std::time::Duration;

use alluvium_protocol::Value;
use alluvium_server::ServerOptions;

use crate::common::{Client, Running, bulk, error, ok};

fn integer(number: i64) -> Value {
    Value::Integer(number)
}

/// A library with one function `f` of this body.
pub fn function(name: &str, body: &str) -> String {
    format!("#!lua name={name}\nredis.register_function('f', function(keys, args) {body} end)")
}

pub fn load(client: &mut Client, source: &str) -> Value {
    client.ask(&["FUNCTION", "LOAD", "REPLACE", source])
}

#[track_caller]
pub fn fails(reply: Value, start: &str) {
    let Value::Error(text) = reply else { panic!("{reply:?} instead of {start}") };
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(text.starts_with(start), "{text} instead of {start}");
}

#[test]
fn functions_are_called_with_keys_and_arguments() {
    let server = Running::start(ServerOptions::default());
    let mut client = server.client();
    let source = function(
        "lib",
        "redis.call('SET', keys[1], args[1]) return {#keys, #args, redis.call('GET', keys[1])}",
    );
    assert_eq!(client.ask(&["FUNCTION", "LOAD", &source]), bulk("lib"));
    let expected = Value::Array(vec![integer(1), integer(2), bulk("v")]);
    assert_eq!(client.ask(&["FCALL", "f", "1", "k", "v", "w"]), expected);
    assert_eq!(client.ask(&["fcall", "F", "1", "k", "v", "w"]), expected);
    fails(client.ask(&["FCALL", "none", "0"]), "ERR Function not found");
    fails(client.ask(&["FCALL", "f", "x"]), "ERR Bad number of keys provided");
    fails(client.ask(&["FCALL", "f", "2", "k"]), "ERR Number of keys can't be greater than number of args");
    fails(client.ask(&["FCALL", "f", "-1"]), "ERR Number of keys can't be negative");
    fails(
        client.ask(&["FCALL_RO", "f", "1", "k", "v"]),
        "ERR Can not execute a script with write flag using *_ro command.",
    );
    let source = "#!lua name=reads\nredis.register_function{function_name = 'get', flags = {'no-writes'},
        description = 'reads', callback = function(keys) return redis.call('GET', keys[1]) end}
        redis.register_function{function_name = 'set', flags = {'No-Writes', 'allow-oom'},
        callback = function(keys) return redis.call('SET', keys[1], 'x') end}";
    assert_eq!(load(&mut client, source), bulk("reads"));
    assert_eq!(client.ask(&["FCALL_RO", "get", "1", "k"]), bulk("v"));
    assert_eq!(client.ask(&["FCALL", "get", "1", "k"]), bulk("v"));
    fails(
        client.ask(&["FCALL", "set", "1", "k"]),
        "ERR Write commands are not allowed from read-only scripts.",
    );
    let text = |text: &str| Value::Simple(text.as_bytes().to_vec());
    let functions = Value::Array(vec![
        Value::Array(vec![
            bulk("name"),
            bulk("get"),
            bulk("description"),
            bulk("reads"),
            bulk("flags"),
            Value::Array(vec![text("no-writes")]),
        ]),
        Value::Array(vec![
            bulk("name"),
            bulk("set"),
            bulk("description"),
            Value::Null,
            bulk("flags"),
            Value::Array(vec![text("no-writes"), text("allow-oom")]),
        ]),
    ]);
    let library = vec![
        bulk("library_name"),
        bulk("reads"),
        bulk("engine"),
        bulk("LUA"),
        bulk("functions"),
        functions,
        bulk("library_code"),
        bulk(source),
    ];
    let listed = client.ask(&["FUNCTION", "LIST", "WITHCODE", "LIBRARYNAME", "rea*"]);
    assert_eq!(listed, Value::Array(vec![Value::Array(library)]));
    assert_eq!(
        client.ask(&["COMMAND", "GETKEYS", "FCALL", "f", "1", "k", "v"]),
        Value::Array(vec![bulk("k")])
    );
    let Value::Bulk(info) = client.ask(&["INFO", "memory"]) else { panic!("no text") };
    let info = String::from_utf8(info).unwrap();
    assert!(info.contains("number_of_functions:3\r\nnumber_of_libraries:2\r\n"), "{info}");
}

#[test]
fn a_function_is_part_of_a_transaction() {
    let server = Running::start(ServerOptions { workers: 2.try_into().unwrap(), ..Default::default() });
    let mut client = server.client();
    load(&mut client, &function("lib", "return redis.call('INCR', keys[1])"));
    client.ask(&["MULTI"]);
    client.ask(&["FCALL", "f", "1", "n"]);
    client.ask(&["FCALL", "f", "1", "n"]);
    assert_eq!(client.ask(&["EXEC"]), Value::Array(vec![integer(1), integer(2)]));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = server.client();
                (0..50).for_each(|_| drop(client.ask(&["FCALL", "f", "1", "n"])));
            });
        }
    });
    assert_eq!(client.ask(&["GET", "n"]), bulk("202"));
}

#[test]
fn errors_name_function_and_line() {
    let server = Running::start(ServerOptions::default());
    let mut client = server.client();
    let mut fails_at = |body: &str, expected: &str| {
        assert_eq!(load(&mut client, &function("lib", body)), bulk("lib"));
        let found = client.ask(&["FCALL", "f", "0"]);
        assert_eq!(found, error(expected), "{body}");
    };
    for (body, expected) in [
        (
            "return redis.call('NONE')",
            "ERR Unknown Redis command called from script script: f, on @user_function:2.",
        ),
        ("\nerror('x')", "ERR user_function:3: x script: f, on @user_function:3."),
        ("error({err = 'MY error'})", "MY error script: f, on @user_function:2."),
        (
            "return KEYS",
            "ERR user_function:2: Script attempted to access nonexistent global variable 'KEYS' script: f, on \
             @user_function:2.",
        ),
        (
            "redis.register_function('g', f)",
            "ERR user_function:2: Script attempted to access nonexistent global variable 'f' script: f, on \
             @user_function:2.",
        ),
        (
            "redis.call = 1",
            "ERR user_function:2: Attempt to modify a readonly table script: f, on @user_function:2.",
        ),
        ("redis.setresp(4)", "ERR RESP version must be 2 or 3. script: f, on @user_function:2."),
        ("return redis.error_reply('MY error')", "MY error"),
    ] {
        fails_at(body, expected);
    }
    let Value::Bulk(info) = client.ask(&["INFO", "errorstats"]) else { panic!("no text") };
    let info = String::from_utf8(info).unwrap();
    assert!(info.contains("errorstat_MY:count=2"), "{info}");
    let caught =
        function("lib", "local _, thrown = pcall(redis.call, 'NONE') return {type(thrown), thrown.err}");
    load(&mut client, &caught);
    let expected = Value::Array(vec![bulk("table"), bulk("ERR Unknown Redis command called from script")]);
    assert_eq!(client.ask(&["FCALL", "f", "0"]), expected);
}

#[test]
fn endless_functions_end_without_effect() {
    let server = Running::start(ServerOptions { workers: 2.try_into().unwrap(), ..Default::default() });
    let (mut client, mut killer) = (server.client(), server.client());
    load(
        &mut client,
        &function(
            "lib",
            "redis.call('SET', 'a', 1) while true do pcall(function() while true do end end) end",
        ),
    );
    fails(killer.ask(&["FUNCTION", "KILL"]), "NOTBUSY No scripts in execution right now.");
    client.send_request(&["FCALL", "f", "0", "x"]);
    let stats = loop {
        let Value::Array(stats) = killer.ask(&["FUNCTION", "STATS"]) else { panic!("no statistics") };
        if stats[1] != Value::Null {
            break stats;
        }
        thread::sleep(Duration::from_millis(1));
    };
    let Value::Array(running) = &stats[1] else { panic!("{stats:?}") };
    assert_eq!(running[..2], [bulk("name"), bulk("f")]);
    let command = ["FCALL", "f", "0", "x"].map(bulk).to_vec();
    assert_eq!(running[2..4], [bulk("command"), Value::Array(command)]);
    let engine = Value::Array(vec![bulk("libraries_count"), integer(1), bulk("functions_count"), integer(1)]);
    assert_eq!(stats[3], Value::Array(vec![bulk("LUA"), engine]));
    fails(
        killer.ask(&["SCRIPT", "KILL"]),
        "BUSY Redis is busy running a script. You can only call FUNCTION KILL",
    );
    assert_eq!(killer.ask(&["FUNCTION", "KILL"]), ok());
    fails(client.reply().unwrap(), "ERR Error running script: Script killed by user with FUNCTION KILL.");
    assert_eq!(killer.ask(&["GET", "a"]), Value::Null);
    client.send_request(&["EVAL", "while true do end", "0"]);
    while killer.ask(&["FUNCTION", "KILL"]) == error("NOTBUSY No scripts in execution right now.") {
        thread::sleep(Duration::from_millis(1));
    }
    fails(
        killer.ask(&["FUNCTION", "KILL"]),
        "BUSY Redis is busy running a script. You can only call SCRIPT KILL",
    );
    assert_eq!(killer.ask(&["SCRIPT", "KILL"]), ok());
    fails(client.reply().unwrap(), "ERR Error running script: Script killed by user with SCRIPT KILL.");
    fails(
        client.ask(&["FCALL", "f", "0"]),
        "ERR the function was stopped after 5 seconds. It has written nothing",
    );
    load(&mut client, &function("lib", "return 1"));
    assert_eq!(client.ask(&["FCALL", "f", "0"]), integer(1));
}

#[test]
fn users_need_permission() {
    let server = Running::start(ServerOptions::default());
    let mut client = server.client();
    load(&mut client, &function("lib", "return redis.call('SET', keys[1], 'v')"));
    let rules = ["ACL", "SETUSER", "bob", "on", ">pw", "+fcall", "+get", "~a*"];
    assert_eq!(client.ask(&rules), ok());
    let mut bob = server.client();
    assert_eq!(bob.ask(&["AUTH", "bob", "pw"]), ok());
    fails(bob.ask(&["FCALL", "f", "1", "b"]), "NOPERM");
    fails(bob.ask(&["FCALL", "f", "1", "a"]), "ERR The user executing the script can't run this command");
    fails(bob.ask(&["FUNCTION", "LIST"]), "NOPERM");
    fails(bob.ask(&["FUNCTION", "LOAD", "x"]), "NOPERM");
    let check = "return {redis.acl_check_cmd('GET', 'a'), redis.acl_check_cmd('GET', 'b')}";
    load(&mut client, &function("lib", check));
    assert_eq!(bob.ask(&["FCALL", "f", "0"]), Value::Array(vec![integer(1), Value::Null]));
    let Value::Array(commands) = client.ask(&["ACL", "CAT", "scripting"]) else { panic!("no list") };
    for name in ["fcall", "fcall_ro", "function|load", "function|dump", "function|restore"] {
        assert!(commands.contains(&bulk(name)), "{name}");
    }
}
