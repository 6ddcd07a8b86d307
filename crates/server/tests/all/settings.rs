//! `CONFIG SET` and what can be seen of its effects: `SLOWLOG`, `LATENCY` and the counters of `INFO`.

use crate::common::{Client, Running, bulk, ok};
use alluvium_protocol::Value;

fn error(client: &mut Client, words: &[&str]) -> String {
    match client.ask(words) {
        Value::Error(text) => String::from_utf8(text).unwrap(),
        other => panic!("no error: {other:?}"),
    }
}

fn array(value: Value) -> Vec<Value> {
    match value {
        Value::Array(members) => members,
        other => panic!("no array: {other:?}"),
    }
}

#[test]
fn settings_change_together_or_not_at_all() {
    let server = Running::start(Default::default());
    let client = &mut server.client();
    let get = |client: &mut Client, name: &str| array(client.ask(&["CONFIG", "GET", name]))[1].clone();
    let set = ["CONFIG", "SET", "slowlog-max-len", "7", "Latency-Monitor-Threshold", "20"];
    assert_eq!(client.ask(&set), ok());
    assert_eq!(get(client, "slowlog-max-len"), bulk("7"));
    for (words, text) in [
        (
            &["CONFIG", "SET", "slowlog-max-len", "8", "port", "1"][..],
            "ERR CONFIG SET failed (possibly related to argument 'port') - can't set immutable config",
        ),
        (
            &["CONFIG", "SET", "slowlog-max-len", "8", "maxmemory", "1"],
            "ERR CONFIG SET failed (possibly related to argument 'maxmemory') - memory is divided when the server \
             starts: see its option --memory",
        ),
        (
            &["CONFIG", "SET", "slowlog-max-len", "8", "maxclients", "0"],
            "ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument must be between its limits \
             inclusive",
        ),
        (
            &["CONFIG", "SET", "slowlog-max-len", "8", "slowlog-max-len", "9"],
            "ERR CONFIG SET failed (possibly related to argument 'slowlog-max-len') - duplicate parameter",
        ),
        (
            &["CONFIG", "SET", "slowlog-max-len", "8", "what", "9"],
            "ERR Unknown option or number of arguments for CONFIG SET - 'what'",
        ),
        (
            &["CONFIG", "SET", "slowlog-max-len", "x"],
            "ERR CONFIG SET failed (possibly related to argument 'slowlog-max-len') - argument couldn't be parsed into \
             an integer",
        ),
        (&["CONFIG", "SET", "slowlog-max-len"], "ERR wrong number of arguments for 'config|set' command"),
        (&["CONFIG", "REWRITE"], "ERR The server is running without a config file"),
    ] {
        assert_eq!(error(client, words), text);
    }
    assert_eq!(get(client, "slowlog-max-len"), bulk("7"));
    // Any parameter may be set to the value that it has.
    let all = array(client.ask(&["CONFIG", "GET", "*"]));
    for pair in all.chunks(2) {
        let [Value::Bulk(name), Value::Bulk(value)] = pair else { panic!("{pair:?}") };
        let [name, value] = [name, value].map(|text| std::str::from_utf8(text).unwrap());
        assert_eq!(client.ask(&["CONFIG", "SET", name, value]), ok(), "{name}");
    }
}

#[test]
fn the_number_of_clients_and_their_timeout_can_be_changed() {
    let server = Running::start(Default::default());
    let client = &mut server.client();
    assert_eq!(client.ask(&["CONFIG", "SET", "maxclients", "1"]), ok());
    assert_eq!(server.client().raw_to_end(), b"-ERR max number of clients reached\r\n");
    assert_eq!(client.ask(&["CONFIG", "SET", "maxclients", "2"]), ok());
    let other = &mut server.client();
    assert_eq!(other.ask(&["PING"]), Value::Simple(b"PONG".to_vec()));
    assert_eq!(client.ask(&["CONFIG", "SET", "timeout", "1"]), ok());
    assert_eq!(client.ask(&["CONFIG", "GET", "timeout"]), Value::Array(vec![bulk("timeout"), bulk("1")]));
    assert_eq!(other.reply(), None);
}

#[test]
fn the_slow_log_keeps_commands_and_no_passwords() {
    let server = Running::start(Default::default());
    let client = &mut server.client();
    assert_eq!(client.ask(&["SLOWLOG", "LEN"]), Value::Integer(0));
    assert_eq!(client.ask(&["CLIENT", "SETNAME", "me"]), ok());
    assert_eq!(client.ask(&["CONFIG", "SET", "slowlog-log-slower-than", "0", "slowlog-max-len", "4"]), ok());
    client.ask(&["HELLO", "2", "AUTH", "default", "secret"]);
    let long = "x".repeat(130);
    let many: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    client.ask(&[&["DEL", &long][..], &many.iter().map(String::as_str).collect::<Vec<_>>()].concat());
    let entries = array(client.ask(&["SLOWLOG", "GET", "-1"]));
    let arguments: Vec<Vec<Value>> =
        entries.iter().map(|entry| array(array(entry.clone())[3].clone())).collect();
    assert_eq!(arguments[0].len(), 32);
    assert_eq!(arguments[0][1], bulk(&format!("{}... (2 more bytes)", "x".repeat(128))));
    assert_eq!(arguments[0][31], bulk("... (11 more arguments)"));
    assert_eq!(arguments[1][1..3], [bulk("2"), bulk("(redacted)")]);
    assert_eq!(array(entries[0].clone())[5], bulk("me"));
    client.ask(&["PING"]);
    client.ask(&["PING"]);
    assert_eq!(client.ask(&["SLOWLOG", "LEN"]), Value::Integer(4));
    assert_eq!(array(client.ask(&["SLOWLOG", "GET", "1"])).len(), 1);
    let text = "ERR count should be greater than or equal to -1";
    assert_eq!(error(client, &["SLOWLOG", "GET", "-2"]), text);
    assert_eq!(client.ask(&["CONFIG", "SET", "slowlog-log-slower-than", "-1"]), ok());
    assert_eq!(client.ask(&["SLOWLOG", "RESET"]), ok());
    assert_eq!(client.ask(&["SLOWLOG", "LEN"]), Value::Integer(0));
}

#[test]
fn latency_events_are_empty_below_the_threshold() {
    let server = Running::start(Default::default());
    let client = &mut server.client();
    assert_eq!(client.ask(&["LATENCY", "LATEST"]), Value::Array(vec![]));
    assert_eq!(client.ask(&["LATENCY", "HISTORY", "command"]), Value::Array(vec![]));
    assert_eq!(client.ask(&["LATENCY", "RESET"]), Value::Integer(0));
    assert!(matches!(client.ask(&["LATENCY", "DOCTOR"]), Value::Bulk(text) if text.starts_with(b"Latency")));
}

#[test]
fn info_counts_errors_until_it_is_reset() {
    let server = Running::start(Default::default());
    let client = &mut server.client();
    client.ask(&["what"]);
    client.ask(&["SET", "key", "value"]);
    client.ask(&["HGET", "key", "field"]);
    let errors = client.ask(&["INFO", "errorstats"]);
    assert_eq!(errors, bulk("# Errorstats\r\nerrorstat_ERR:count=1\r\nerrorstat_WRONGTYPE:count=1\r\n"));
    assert_eq!(client.ask(&["CONFIG", "RESETSTAT"]), ok());
    assert_eq!(client.ask(&["INFO", "errorstats"]), bulk("# Errorstats\r\n"));
}

#[test]
fn calls_of_commands_are_counted_until_the_counters_are_reset() {
    let server = Running::start(Default::default());
    let client = &mut server.client();
    let statistics = |client: &mut Client| match client.ask(&["INFO", "commandstats"]) {
        Value::Bulk(text) => String::from_utf8(text).unwrap(),
        other => panic!("{other:?}"),
    };
    assert_eq!(client.ask(&["SET", "key", "value"]), ok());
    assert_eq!(client.ask(&["GET", "key"]), bulk("value"));
    assert_eq!(client.ask(&["GET", "none"]), Value::Null);
    assert!(statistics(client).contains("cmdstat_get:calls=2,usec="));
    assert_eq!(client.ask(&["CONFIG", "RESETSTAT"]), ok());
    client.ask(&["INCR", "key"]);
    client.ask(&["EXPIRE", "key", "0"]);
    let text = statistics(client);
    assert!(text.contains("cmdstat_expire:calls=1,usec=") && !text.contains("cmdstat_get"), "{text}");
    assert!(text.contains(",rejected_calls=0,failed_calls=1\r\n"), "{text}");
    let histogram = array(client.ask(&["LATENCY", "HISTOGRAM", "incr", "what", "get"]));
    assert_eq!(histogram[0], bulk("incr"));
    let members = array(histogram[1].clone());
    assert_eq!(members[..3], [bulk("calls"), Value::Integer(1), bulk("histogram_usec")]);
    assert_eq!(array(members[3].clone())[1], Value::Integer(1));
}
