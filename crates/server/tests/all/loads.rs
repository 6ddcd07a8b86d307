//! Many requests, many clients, slow clients and hostile ones.

use std::io::Write;
use std::num::NonZeroUsize;
use std::time::Duration;

use crate::common::{Running, bulk, ok};
use alluvium_protocol::{Value, request};
use alluvium_server::{Limits, ServerOptions};

fn options(workers: usize) -> ServerOptions {
    ServerOptions { workers: NonZeroUsize::new(workers).unwrap(), ..Default::default() }
}

#[test]
fn ten_thousand_pipelined_commands_are_answered_in_order() {
    let server = Running::start(options(2));
    let mut client = server.client();
    let mut bytes = Vec::new();
    for step in 0..10_000 {
        let key = format!("key{}", step % 100);
        match step % 4 {
            0 => request::encode(&["SET", &key, &step.to_string()], &mut bytes),
            3 => request::encode(&["ECHO", &step.to_string()], &mut bytes),
            _ => request::encode(&["GET", &format!("key{}", step % 100 / 4 * 4)], &mut bytes),
        }
    }
    let mut stream = client.stream.try_clone().unwrap();
    let writer = std::thread::spawn(move || stream.write_all(&bytes).unwrap());
    for step in 0..10_000 {
        let expected = match step % 4 {
            0 => ok(),
            3 => bulk(&step.to_string()),
            _ => bulk(&(step / 4 * 4).to_string()),
        };
        assert_eq!(client.reply(), Some(expected), "step {step}");
    }
    writer.join().unwrap();
}

#[test]
fn a_client_that_reads_slowly_is_made_to_wait_and_loses_nothing() {
    let server = Running::start(ServerOptions { output_pause_bytes: 16 << 10, ..options(1) });
    let mut slow = server.client();
    let value = "v".repeat(1_500);
    assert_eq!(slow.ask(&["SET", "big", &value]), ok());
    let mut bytes = Vec::new();
    for step in 0..20_000 {
        request::encode(&["GET", "big"], &mut bytes);
        request::encode(&["ECHO", &step.to_string()], &mut bytes);
    }
    let mut stream = slow.stream.try_clone().unwrap();
    let writer = std::thread::spawn(move || stream.write_all(&bytes).unwrap());
    // Meanwhile the same worker serves other clients.
    let mut other = server.client();
    for _ in 0..100 {
        assert_eq!(other.ask(&["PING"]), Value::Simple(b"PONG".to_vec()));
    }
    for step in 0..20_000 {
        assert_eq!(slow.reply(), Some(bulk(&value)));
        assert_eq!(slow.reply(), Some(bulk(&step.to_string())));
    }
    writer.join().unwrap();
}

#[test]
fn five_hundred_clients_at_once() {
    let server = Running::start(options(2));
    let mut clients: Vec<_> = (0..500).map(|_| server.client()).collect();
    for round in 0..5 {
        for (number, client) in clients.iter_mut().enumerate() {
            client.send_request(&["SET", &format!("client{number}"), &format!("{round}")]);
            client.send_request(&["GET", &format!("client{number}")]);
            client.send_request(&["INCR", "all"]);
        }
        for client in &mut clients {
            assert_eq!(client.reply(), Some(ok()));
            assert_eq!(client.reply(), Some(bulk(&round.to_string())));
            assert!(matches!(client.reply(), Some(Value::Integer(_))));
        }
    }
    assert_eq!(clients[0].ask(&["GET", "all"]), bulk("2500"));
}

#[test]
fn counters_of_concurrent_clients_lose_no_increment() {
    let server = Running::start(options(2));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = server.client();
                for _ in 0..500 {
                    client.send_request(&["INCR", "n"]);
                }
                let sums: Vec<_> = (0..500).map(|_| client.reply().unwrap()).collect();
                assert!(sums.windows(2).all(|pair| match pair {
                    [Value::Integer(before), Value::Integer(after)] => before < after,
                    _ => false,
                }));
            });
        }
    });
    assert_eq!(server.client().ask(&["GET", "n"]), bulk("4000"));
}

#[test]
fn requests_may_come_byte_by_byte() {
    let server = Running::start(options(1));
    let mut client = server.client();
    let mut bytes = Vec::new();
    request::encode(&["SET", "key", "value"], &mut bytes);
    bytes.extend_from_slice(b"GET \"key\"\r\n");
    request::encode(&["GET", "key"], &mut bytes);
    for byte in bytes {
        client.send(&[byte]);
    }
    assert_eq!(client.reply(), Some(ok()));
    assert_eq!(client.reply(), Some(bulk("value")));
    assert_eq!(client.reply(), Some(bulk("value")));
}

#[test]
fn arguments_of_many_reads_arrive_whole() {
    let server = Running::start(options(1));
    let mut client = server.client();
    let message: String = (0..400_000).map(|number| number.to_string()).collect();
    assert_eq!(client.ask(&["ECHO", &message]), bulk(&message));
    assert_eq!(client.ask(&["PING"]), Value::Simple(b"PONG".to_vec()));
}

#[test]
fn frames_over_a_limit_are_refused_and_others_served() {
    let limits =
        Limits { bulk_bytes_max: 100, arguments_max: 8, inline_bytes_max: 200, frame_bytes_max: 300 };
    let server = Running::start(ServerOptions { limits, ..options(1) });
    let long = vec![b'x'; 250];
    let cases: [(&[u8], &str); 4] = [
        (b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$101\r\n", "-ERR Protocol error: invalid bulk length\r\n"),
        (b"*9\r\n", "-ERR Protocol error: invalid multibulk length\r\n"),
        (&long, "-ERR Protocol error: too big inline request\r\n"),
        (
            &[&b"*4\r\n"[..], &[&b"$100\r\n"[..], &[b'x'; 100], b"\r\n"].concat().repeat(3)[..308]].concat(),
            "-ERR Protocol error: request exceeds the frame limit\r\n",
        ),
    ];
    let mut bystander = server.client();
    for (bytes, reply) in cases {
        let mut client = server.client();
        client.send(bytes);
        assert_eq!(String::from_utf8(client.raw_to_end()).unwrap(), reply);
        assert_eq!(bystander.ask(&["PING"]), Value::Simple(b"PONG".to_vec()));
    }
}

#[test]
fn one_client_too_many_is_turned_away() {
    let server = Running::start(ServerOptions { clients_max: 3, ..options(2) });
    let mut clients: Vec<_> = (0..3).map(|_| server.client()).collect();
    for client in &mut clients {
        assert_eq!(client.ask(&["PING"]), Value::Simple(b"PONG".to_vec()));
    }
    let mut refused = server.client();
    assert_eq!(refused.raw_to_end(), b"-ERR max number of clients reached\r\n");
    assert_eq!(clients[0].ask(&["QUIT"]), ok());
    assert_eq!(clients[0].reply(), None);
    assert_eq!(server.client().ask(&["PING"]), Value::Simple(b"PONG".to_vec()));
}

#[test]
fn a_reply_over_the_output_limit_ends_only_its_connection() {
    let server = Running::start(ServerOptions { output_bytes_max: 256 << 10, ..options(1) });
    let mut client = server.client();
    assert_eq!(client.ask(&["SET", "big", &"x".repeat(1_500)]), ok());
    let mut words = vec!["MGET"];
    words.resize(200, "big");
    assert_eq!(
        client.ask(&words),
        Value::Error(b"ERR reply exceeds the output limit of this server".to_vec())
    );
    assert_eq!(client.reply(), None);
    assert_eq!(server.client().ask(&["STRLEN", "big"]), Value::Integer(1_500));
}

#[test]
fn values_of_up_to_64_mebibytes_go_in_and_out() {
    let server = Running::start(options(1));
    let mut client = server.client();
    client.stream.set_read_timeout(None).unwrap();
    for len in [3_000, 1 << 20, 64 << 20] {
        let value: String = (0..len).map(|at| char::from(b'a' + (at % 251 % 26) as u8)).collect();
        assert_eq!(client.ask(&["SET", "large", &value]), ok());
        assert_eq!(client.ask(&["STRLEN", "large"]), Value::Integer(len as i64));
        assert!(client.ask(&["GET", "large"]) == bulk(&value), "a value of {len} bytes");
    }
    assert_eq!(client.ask(&["DEL", "large"]), Value::Integer(1));
    assert_eq!(client.ask(&["GET", "large"]), Value::Null);
}

#[test]
fn an_error_of_the_store_leaves_the_connection_open() {
    let server = Running::start(options(1));
    let mut client = server.client();
    let long = "k".repeat(alluvium::KEY_BYTES_MAX + 1);
    for words in [&["SET", &long, "x"][..], &["MSET", "key", "value", &long, "x"], &["INCR", &long]] {
        let Value::Error(text) = client.ask(words) else { panic!("a key was not too long") };
        assert!(text.starts_with(b"ERR "), "{}", text.escape_ascii());
    }
    // A batch is all or nothing.
    assert_eq!(client.ask(&["GET", "key"]), Value::Null);
    assert_eq!(client.ask(&["PING"]), Value::Simple(b"PONG".to_vec()));
}

#[test]
fn silent_clients_are_closed_after_the_idle_timeout() {
    let server =
        Running::start(ServerOptions { idle_timeout: Some(Duration::from_millis(100)), ..options(1) });
    let mut client = server.client();
    assert_eq!(client.ask(&["PING"]), Value::Simple(b"PONG".to_vec()));
    assert_eq!(client.reply(), None);
}

#[test]
fn a_half_closed_connection_gets_its_replies() {
    let server = Running::start(options(1));
    let mut client = server.client();
    client.send(b"PING\r\nECHO bye\r\nECHO never");
    client.stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(client.raw_to_end(), b"+PONG\r\n$3\r\nbye\r\n");
}

#[test]
fn shutdown_sends_what_is_owed_and_ends_the_server() {
    let server = Running::start(options(2));
    let mut idle = server.client();
    assert_eq!(idle.ask(&["PING"]), Value::Simple(b"PONG".to_vec()));
    let mut client = server.client();
    client.send(b"SET key value\r\nGET key\r\nSHUTDOWN NOSAVE\r\nPING\r\n");
    assert_eq!(client.raw_to_end(), b"+OK\r\n$5\r\nvalue\r\n");
    assert_eq!(idle.reply(), None);
    server.join().unwrap();
}

#[test]
fn the_shutdown_handle_ends_the_server() {
    let server = Running::start(options(2));
    let mut idle = server.client();
    assert_eq!(idle.ask(&["PING"]), Value::Simple(b"PONG".to_vec()));
    server.shutdown.shutdown();
    assert_eq!(idle.reply(), None);
    server.join().unwrap();
}
