//! Lua scripts.
#![cfg(feature = "scripting")]

use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Client, Running, bulk, error, ok};
use alluvium_protocol::Value;
use alluvium_server::ServerOptions;

fn eval(client: &mut Client, script: &str, keys: &[&str], arguments: &[&str]) -> Value {
    let count = keys.len().to_string();
    client.ask(&[&["EVAL", script, &count], keys, arguments].concat())
}

fn integer(number: i64) -> Value {
    Value::Integer(number)
}

#[test]
fn values_are_converted_as_in_redis() {
    let server = Running::start(ServerOptions::default());
    let mut client = server.client();
    for (script, expected) in [
        ("return 3.9", integer(3)),
        ("return 'text'", bulk("text")),
        ("return true", integer(1)),
        ("return false", Value::Null),
        ("return nil", Value::Null),
        (
            "return {1, 'two', {3}, nil, 5}",
            Value::Array(vec![integer(1), bulk("two"), Value::Array(vec![integer(3)])]),
        ),
        ("return {ok = 'fine'}", Value::Simple(b"fine".to_vec())),
        ("return {err = 'MY error'}", error("MY error")),
        ("return redis.error_reply('MY error')", error("MY error")),
        ("return redis.status_reply('fine')", Value::Simple(b"fine".to_vec())),
        ("return redis.call('PING')", Value::Simple(b"PONG".to_vec())),
        ("return type(redis.call('GET', 'none'))", bulk("boolean")),
        ("return redis.sha1hex('')", bulk("da39a3ee5e6b4b0d3255bfef95601890afd80709")),
        ("return cjson.encode({1, 2, {a = 'b/\"'}})", bulk(r#"[1,2,{"a":"b\/\""}]"#)),
        ("return cjson.decode('{\"a\": [1, 2.5, null, \"x\"]}').a[2] * 2", integer(5)),
        ("return cjson.decode('[null]')[1] == cjson.null", integer(1)),
        ("return bit.tohex(bit.bxor(0xffff, bit.lshift(1, 31)))", bulk("8000ffff")),
        ("return cjson.decode(cjson.encode({a = {1}})).a[1]", integer(1)),
        ("cjson.encode_max_depth(1) return cjson.encode_max_depth()", integer(1)),
        // Settings are those of one script.
        ("return cjson.encode_max_depth()", integer(1000)),
        ("cjson.encode_invalid_numbers('null') return cjson.encode({0 / 0})", bulk("[null]")),
        ("return cmsgpack.unpack(cmsgpack.pack({1, 'two', {three = 3}}))[3].three", integer(3)),
        ("return {cmsgpack.unpack_one('\\1\\2', 1)}", Value::Array(vec![integer(-1), integer(2)])),
        ("return struct.unpack('>I2', struct.pack('>I2', 258))", integer(258)),
        ("return redis.acl_check_cmd('GET', 'a')", integer(1)),
        ("return pcall(redis.call, 'NOSUCH')", Value::Null),
        ("local _, thrown = pcall(cjson.decode, '{') return type(thrown)", bulk("string")),
        ("return #!lua and 1", error("ERR Error compiling script (new function): ")),
        ("#!lua\nreturn 7", integer(7)),
        ("return tostring(_G == nil)", bulk("false")),
    ] {
        let reply = eval(&mut client, script, &[], &[]);
        match (&reply, &expected) {
            (Value::Error(found), Value::Error(start)) => {
                assert!(found.starts_with(start), "{script}: {}", found.escape_ascii());
            }
            _ => assert_eq!(reply, expected, "{script}"),
        }
    }
    let reply = eval(&mut client, "return {KEYS[2], ARGV[1], #ARGV}", &["a", "b"], &["x"]);
    assert_eq!(reply, Value::Array(vec![bulk("b"), bulk("x"), integer(1)]));
}

#[test]
fn errors_name_script_and_line() {
    let server = Running::start(ServerOptions::default());
    let mut client = server.client();
    client.ask(&["SADD", "set", "member"]);
    let mut fails = |script: &str, start: &str, line: u32| {
        let Value::Error(text) = eval(&mut client, script, &[], &[]) else {
            panic!("{script} does not fail")
        };
        let text = String::from_utf8(text).unwrap();
        assert!(text.starts_with(start), "{script}: {text}");
        assert!(text.ends_with(&format!(", on @user_script:{line}.")), "{script}: {text}");
    };
    fails("\nredis.call('GET', 'set')", "WRONGTYPE Operation against a key", 2);
    fails("redis.call('NOSUCH')", "ERR Unknown Redis command called from script", 1);
    fails("redis.call('SUBSCRIBE', 'x')", "ERR This Redis command is not allowed from script", 1);
    fails("redis.call('GET')", "ERR Wrong number of args calling Redis command from script", 1);
    fails("getmetatable(_G).__index = nil", "ERR user_script:1: Attempt to modify a readonly table", 1);
    fails("setmetatable(_G, {})", "ERR user_script:1: Attempt to modify a readonly table", 1);
    fails("redis.sha1hex()", "ERR wrong number of arguments", 1);
    fails("return redis.call('NOSUCH')", "ERR Unknown Redis command called from script", 1);
    fails("\nerror({err = 'MY error'})", "MY error", 2);
    fails("redis.log(9, 'x')", "ERR Invalid debug level.", 1);
    fails(r"loadstring('\27Lua')()", "ERR user_script:1: attempt to call a nil value", 1);
    fails("redis.call({})", "ERR Lua redis lib command arguments must be strings or integers", 1);
    fails(
        "return none.x",
        "ERR user_script:1: Script attempted to access nonexistent global variable 'none'",
        1,
    );
    fails("\n\nx = 1", "ERR user_script:3: Attempt to modify a readonly table", 3);
    for script in
        ["string.format = nil", "redis.call = 1", "rawset(_G, 'x', 1)", "getmetatable('').__index = {}"]
    {
        assert!(matches!(eval(&mut client, script, &[], &[]), Value::Error(_)), "{script}");
    }
    for name in ["io", "os", "require", "load", "dofile", "debug", "package", "print", "coroutine"] {
        let script = format!("return {name}");
        assert!(matches!(eval(&mut client, &script, &[], &[]), Value::Error(_)), "{script}");
    }
    for (head, start) in [
        ("#!lisp", "ERR Unexpected engine in script shebang"),
        ("#!lua bad=1", "ERR Unknown lua shebang option: bad=1"),
        ("#!lua flags=bad", "ERR Unexpected flag in script shebang: bad"),
        ("#!lua flags=no-writes", "ERR Write commands are not allowed from read-only scripts."),
    ] {
        let script = format!("{head}\nredis.call('SET', 'a', 1)");
        let Value::Error(text) = eval(&mut client, &script, &[], &[]) else {
            panic!("{script} does not fail")
        };
        assert!(text.starts_with(start.as_bytes()), "{script}: {}", text.escape_ascii());
    }
    let caught = "local reply = redis.pcall('GET', 'set') return reply.err";
    assert_eq!(
        eval(&mut client, caught, &[], &[]),
        bulk("WRONGTYPE Operation against a key holding the wrong kind of value")
    );
}

#[test]
fn scripts_are_cached_until_they_are_flushed() {
    let server = Running::start(ServerOptions::default());
    let mut client = server.client();
    let digest = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    let missing = error("NOSCRIPT No matching script. Please use EVAL.");
    assert_eq!(client.ask(&["EVALSHA", digest, "0"]), missing);
    assert_eq!(client.ask(&["SCRIPT", "LOAD", "return 1"]), bulk(digest));
    assert_eq!(client.ask(&["EVALSHA", &digest.to_uppercase(), "0"]), integer(1));
    assert_eq!(client.ask(&["SCRIPT", "EXISTS", digest, "x"]), Value::Array(vec![integer(1), integer(0)]));
    assert_eq!(client.ask(&["SCRIPT", "FLUSH"]), ok());
    assert_eq!(client.ask(&["EVALSHA", digest, "0"]), missing);
    assert!(matches!(client.ask(&["SCRIPT", "LOAD", "return ("]), Value::Error(_)));
    assert_eq!(client.ask(&["SCRIPT", "KILL"]), error("NOTBUSY No scripts in execution right now."));
}

#[test]
fn a_script_takes_effect_at_one_moment() {
    const SCRIPT: &str = "local one = tonumber(redis.call('GET', KEYS[1]))
        local two = tonumber(redis.call('GET', KEYS[2]))
        redis.call('SET', KEYS[1], one - 1)
        redis.call('SET', KEYS[2], two + 1)
        return one + two";
    let server = Running::start(ServerOptions { workers: 3.try_into().unwrap(), ..Default::default() });
    server.client().ask(&["MSET", "a", "500", "b", "500"]);
    thread::scope(|scope| {
        for number in 0..4 {
            let server = &server;
            scope.spawn(move || {
                let mut client = server.client();
                let keys = if number % 2 == 0 { ["a", "b"] } else { ["b", "a"] };
                for _ in 0..100 {
                    assert_eq!(eval(&mut client, SCRIPT, &keys, &[]), integer(1_000));
                }
            });
        }
    });
    let mut client = server.client();
    assert_eq!(client.ask(&["MGET", "a", "b"]), Value::Array(vec![bulk("500"), bulk("500")]));
    // In a transaction, and with other databases and types.
    client.ask(&["MULTI"]);
    client.ask(&["EVAL", "redis.call('SELECT', 3) return redis.call('HSET', 'h', 'f', 'v')", "0"]);
    client.ask(&["EVAL", "return redis.call('INCR', 'a')", "0"]);
    assert_eq!(client.ask(&["EXEC"]), Value::Array(vec![integer(1), integer(501)]));
    let refusal = eval_ro(&mut client, "return redis.call('SET', 'a', 1)");
    assert!(matches!(refusal, Value::Error(text) if text.starts_with(b"ERR Write commands are not allowed")));
    assert_eq!(eval_ro(&mut client, "return redis.call('GET', 'a')"), bulk("501"));
}

fn eval_ro(client: &mut Client, script: &str) -> Value {
    client.ask(&["EVAL_RO", script, "0"])
}

#[test]
fn endless_scripts_end_without_effect() {
    let server = Running::start(ServerOptions { workers: 2.try_into().unwrap(), ..Default::default() });
    let (mut client, mut killer) = (server.client(), server.client());
    let endless = "redis.call('SET', 'a', 1) while true do pcall(function() while true do end end) end";
    client.send_request(&["EVAL", endless, "0"]);
    let began = Instant::now();
    while killer.ask(&["SCRIPT", "KILL"]) != ok() {
        thread::sleep(Duration::from_millis(1));
    }
    let Some(Value::Error(text)) = client.reply() else { panic!("no error") };
    assert!(text.starts_with(b"ERR Error running script: Script killed"), "{}", text.escape_ascii());
    assert!(began.elapsed() < Duration::from_secs(4));
    assert_eq!(killer.ask(&["GET", "a"]), Value::Null);
    // The next script of the worker runs.
    assert_eq!(eval(&mut client, "return 1", &[], &[]), integer(1));
    // Few tables that have many values when they are written.
    let wide = "local t = {} for i = 1, 40 do t = {t, t} end return ";
    for returned in ["t", "cjson.encode(t)", "cmsgpack.pack(t)"] {
        let reply = eval(&mut client, &format!("{wide}{returned}"), &[], &[]);
        assert!(
            returned.starts_with("cmsgpack") || matches!(reply, Value::Error(_)),
            "{returned}: {reply:?}"
        );
    }
    let hungry = "local text = 'x' while true do text = text .. text end";
    assert!(matches!(eval(&mut client, hungry, &[], &[]), Value::Error(_)));
    assert_eq!(eval(&mut client, "return 2", &[], &[]), integer(2));
    let Value::Error(text) = eval(&mut client, endless, &[], &[]) else { panic!("no error") };
    assert!(text.starts_with(b"ERR the script was stopped"), "{}", text.escape_ascii());
}
