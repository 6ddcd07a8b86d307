//! `MONITOR`: clients that are shown all commands.

use crate::common::{Client, Running, error, ok};
use alluvium_protocol::Value;
use alluvium_server::{Password, ServerOptions};

fn server() -> Running {
    Running::start(ServerOptions { workers: 3.try_into().unwrap(), ..Default::default() })
}

/// The next line, without the time and the address.
fn next(client: &mut Client) -> String {
    let Some(Value::Simple(line)) = client.reply() else { panic!("no line") };
    let line = String::from_utf8(line).unwrap();
    let (time, rest) = line.split_once(' ').unwrap();
    let (seconds, micros) = time.split_once('.').unwrap();
    assert!(seconds.parse::<u64>().unwrap() > 1_700_000_000 && micros.len() == 6, "{line}");
    let (place, command) = rest.split_once("] ").unwrap();
    let (database, client) = place.strip_prefix('[').unwrap().split_once(' ').unwrap();
    let client = if client == "lua" { "lua " } else { "" };
    format!("{database} {client}{command}")
}

#[test]
fn a_monitor_sees_what_is_executed() {
    let server = server();
    let (mut client, mut monitor) = (server.client(), server.client());
    assert_eq!(monitor.ask(&["MONITOR"]), ok());
    client.ask(&["SET", "a\n", "1"]);
    client.ask(&["GET", "a\n"]);
    client.ask(&["MULTI"]);
    client.ask(&["INCR", "n"]);
    client.ask(&["EXEC"]);
    client.ask(&["NONSENSE"]);
    client.ask(&["GET"]);
    client.ask(&["CONFIG", "GET", "port"]);
    client.ask(&["SELECT", "5"]);
    client.ask(&["EVAL", "return redis.call('get', KEYS[1])", "1", "k"]);
    for line in [
        r#"0 "SET" "a\n" "1""#,
        r#"0 "GET" "a\n""#,
        r#"0 "MULTI""#,
        r#"0 "INCR" "n""#,
        r#"0 "EXEC""#,
        r#"5 "SELECT" "5""#,
        r#"5 "EVAL" "return redis.call('get', KEYS[1])" "1" "k""#,
        r#"5 lua "get" "k""#,
    ] {
        assert_eq!(next(&mut monitor), line);
    }
    let refusal = "ERR Replica can't interact with the keyspace";
    assert_eq!(monitor.ask(&["GET", "a"]), error(refusal));
    assert_eq!(monitor.ask(&["RESET"]), Value::Simple(b"RESET".to_vec()));
    client.ask(&["SET", "b", "1"]);
    assert_eq!(monitor.ask(&["GET", "b"]), Value::Null);
}

#[test]
fn secrets_are_not_shown() {
    let password = Password::new("secret");
    let server = Running::start(ServerOptions { password, ..Default::default() });
    let (mut client, mut monitor) = (server.client(), server.client());
    monitor.ask(&["AUTH", "secret"]);
    monitor.ask(&["MONITOR"]);
    // What is refused is not shown.
    client.ask(&["GET", "a"]);
    client.ask(&["AUTH", "default", "secret"]);
    client.ask(&["HELLO", "3", "AUTH", "default", "secret", "SETNAME", "n"]);
    assert_eq!(next(&mut monitor), r#"0 "AUTH" "(redacted)" "(redacted)""#);
    let hello = r#"0 "HELLO" "3" "AUTH" "(redacted)" "(redacted)" "SETNAME" "n""#;
    assert_eq!(next(&mut monitor), hello);
}

#[test]
fn a_monitor_that_does_not_read_is_disconnected() {
    let server = server();
    let (mut client, mut monitor) = (server.client(), server.client());
    monitor.ask(&["MONITOR"]);
    let value = "x".repeat(1 << 20);
    for _ in 0..64 {
        assert_eq!(client.ask(&["SET", "a", &value]), ok());
    }
    // Of 64 MiB it gets what the sockets held, and what waited for it when it was closed.
    assert!(monitor.raw_to_end().len() < 60 << 20);
    assert_eq!(client.ask(&["SET", "a", "1"]), ok());
}
