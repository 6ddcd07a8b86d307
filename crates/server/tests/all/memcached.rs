//! memcached clients, as memcached 1.6.18 answers them.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::common::{Client, Running, bulk, database, ok};
use alluvium_protocol::Value;
use alluvium_server::{MemcachedLimits, Password, Server, ServerOptions};

/// Sends `request` and compares the reply. `mn` behind it shows that nothing else comes.
#[track_caller]
fn ask(client: &mut Client, request: &str, reply: &str) {
    client.send(format!("{request}mn\r\n").as_bytes());
    let mut received = Vec::new();
    while !received.ends_with(b"MN\r\n") {
        let byte = client.raw(1);
        assert!(!byte.is_empty(), "{request:?}: closed after {}", received.escape_ascii());
        received.extend(byte);
    }
    assert_eq!(String::from_utf8_lossy(&received), format!("{reply}MN\r\n"), "{request:?}");
}

fn running() -> Running {
    Running::start(ServerOptions::default())
}

#[test]
fn classic_requests() {
    let running = running();
    let mut client = running.client();
    for (request, reply) in [
        ("get a\r\n", "END\r\n"),
        ("set a 7 0 5\r\nhello\r\n", "STORED\r\n"),
        ("get a b a\r\n", "VALUE a 7 5\r\nhello\r\nVALUE a 7 5\r\nhello\r\nEND\r\n"),
        ("add a 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
        ("add b 4294967295 0 1\r\nx\r\n", "STORED\r\n"),
        ("get b\r\n", "VALUE b 4294967295 1\r\nx\r\nEND\r\n"),
        ("replace c 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
        ("append a 9 0 1\r\n!\r\n", "STORED\r\n"),
        ("prepend a 9 0 1\r\n>\r\n", "STORED\r\n"),
        ("get a\r\n", "VALUE a 7 7\r\n>hello!\r\nEND\r\n"),
        ("append c 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
        ("cas c 0 0 1 5\r\nx\r\n", "NOT_FOUND\r\n"),
        ("cas a 0 0 1 5\r\nx\r\n", "EXISTS\r\n"),
        ("set n 3 0 2\r\n10\r\n", "STORED\r\n"),
        ("incr n 5\r\n", "15\r\n"),
        ("decr n 7\r\n", "8\r\n"),
        ("get n\r\n", "VALUE n 3 2\r\n8 \r\nEND\r\n"),
        ("decr n 9\r\n", "0\r\n"),
        ("incr n 18446744073709551615\r\n", "18446744073709551615\r\n"),
        ("incr n 2\r\n", "1\r\n"),
        ("incr a 1\r\n", "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
        ("incr c 1\r\n", "NOT_FOUND\r\n"),
        ("incr n x\r\n", "CLIENT_ERROR invalid numeric delta argument\r\n"),
        ("touch a 100\r\n", "TOUCHED\r\n"),
        ("touch c 100\r\n", "NOT_FOUND\r\n"),
        ("gat 200 a c\r\n", "VALUE a 7 7\r\n>hello!\r\nEND\r\n"),
        ("gat 0\r\n", "END\r\n"),
        ("delete a\r\n", "DELETED\r\n"),
        ("delete a noreply\r\n", ""),
        ("delete a\r\n", "NOT_FOUND\r\n"),
        ("set a 0 -1 1\r\nx\r\n", "STORED\r\n"),
        ("get a\r\n", "END\r\n"),
        ("set a 0 0 1 noreply\r\nx\r\n", ""),
        ("gat -1 a\r\n", "VALUE a 0 1\r\nx\r\nEND\r\n"),
        ("get a\r\n", "END\r\n"),
        ("set a 0 1000000000 1\r\nx\r\n", "STORED\r\n"),
        ("get a\r\n", "END\r\n"),
        ("set a 0 0 1\r\nxy\r\n", "CLIENT_ERROR bad data chunk\r\nERROR\r\n"),
        ("bogus\r\n", "ERROR\r\n"),
        ("verbosity 1\r\n", "OK\r\n"),
        ("version\r\n", "VERSION 1.6.18\r\n"),
        ("shutdown\r\n", "ERROR: shutdown not enabled\r\n"),
        ("stats slabs\r\n", "STAT active_slabs 0\r\nSTAT total_malloced 0\r\nEND\r\n"),
        ("stats items\r\n", "END\r\n"),
        ("stats reset\r\n", "RESET\r\n"),
        ("flush_all\r\n", "OK\r\n"),
        ("get n\r\n", "END\r\n"),
    ] {
        ask(&mut client, request, reply);
    }
    client.send(b"quit\r\n");
    assert_eq!(client.raw_to_end(), b"");
}

#[test]
fn meta_requests() {
    let running = running();
    let mut client = running.client();
    for (request, reply) in [
        ("mg a v\r\n", "EN\r\n"),
        ("mg a v q\r\n", ""),
        ("ms a 2 F5 T0 s\r\nhi\r\n", "HD s2\r\n"),
        ("mg a v f s t k O7\r\n", "VA 2 f5 s2 t-1 ka O7\r\nhi\r\n"),
        ("mg a\r\n", "HD\r\n"),
        ("mg YQ== b k v\r\n", "VA 2 kYQ== b\r\nhi\r\n"),
        ("mg a T100 t\r\n", "HD t100\r\n"),
        ("mg a t\r\n", "HD t100\r\n"),
        ("mg a R200 t\r\n", "HD t100 W\r\n"),
        ("mg a R200 t\r\n", "HD t100 Z\r\n"),
        ("ms a 2 ME\r\nxx\r\n", "NS\r\n"),
        ("ms a 1 MA\r\n!\r\n", "HD\r\n"),
        ("mg a v\r\n", "VA 3\r\nhi!\r\n"),
        ("ms a 2 C1\r\nxx\r\n", "EX\r\n"),
        ("md a I T30\r\n", "HD\r\n"),
        ("mg a v\r\n", "VA 3 X W\r\nhi!\r\n"),
        ("mg a v\r\n", "VA 3 Z X\r\nhi!\r\n"),
        ("ms a 3\r\nnew\r\n", "HD\r\n"),
        ("mg a v\r\n", "VA 3\r\nnew\r\n"),
        ("md a q\r\n", ""),
        ("md a\r\n", "NF\r\n"),
        ("mg v N30 v t\r\n", "VA 0 t30 W\r\n\r\n"),
        ("mg v N30 v\r\n", "VA 0 Z\r\n\r\n"),
        ("ma n\r\n", "NF\r\n"),
        ("ma n N0 J5 v\r\n", "VA 1\r\n5\r\n"),
        ("ma n D10 v t\r\n", "VA 2 t-1\r\n15\r\n"),
        ("ma n MD D20 v\r\n", "VA 1\r\n0\r\n"),
        ("me nothing\r\n", "EN\r\n"),
    ] {
        ask(&mut client, request, reply);
    }
}

#[test]
fn a_cas_identifier_stands_for_a_value() {
    let running = running();
    let mut client = running.client();
    ask(&mut client, "set a 1 0 3\r\none\r\n", "STORED\r\n");
    let identifier = |client: &mut Client| {
        client.send(b"gets a\r\n");
        let mut line = Vec::new();
        while !line.ends_with(b"END\r\n") {
            line.extend(client.raw(1));
        }
        let text = String::from_utf8(line).unwrap();
        text.lines().next().unwrap().rsplit(' ').next().unwrap().to_owned()
    };
    let cas = identifier(&mut client);
    ask(&mut client, "touch a 100\r\n", "TOUCHED\r\n");
    assert_eq!(identifier(&mut client), cas, "touched");
    ask(&mut client, &format!("cas a 1 0 3 {cas}\r\ntwo\r\n"), "STORED\r\n");
    ask(&mut client, &format!("cas a 1 0 3 {cas}\r\ntwo\r\n"), "EXISTS\r\n");
    let cas = identifier(&mut client);
    ask(&mut client, &format!("md a C{cas}\r\n"), "HD\r\n");
    ask(&mut client, "ms a 1 E77 c\r\nx\r\n", "HD c77\r\n");
    ask(&mut client, "mg a c\r\n", "HD c77\r\n");
    ask(&mut client, "ms a 1 C76 I c E78\r\ny\r\n", "HD c78\r\n");
    ask(&mut client, "mg a v c\r\n", "VA 1 c78 X W\r\ny\r\n");
}

#[test]
fn both_protocols_see_the_same_strings() {
    let running = running();
    let (mut redis, mut memcached) = (running.client(), running.client());
    ask(&mut memcached, "set a 3221225477 0 2\r\nhi\r\n", "STORED\r\n");
    assert_eq!(redis.ask(&["GET", "a"]), bulk("hi"));
    assert_eq!(redis.ask(&["SET", "b", "there"]), ok());
    ask(&mut memcached, "get a b\r\n", "VALUE a 3221225477 2\r\nhi\r\nVALUE b 0 5\r\nthere\r\nEND\r\n");
    // A line in upper case, or of the shape of Redis, is of Redis.
    let mut inline = running.client();
    inline.send(b"set c value\r\nget c\r\n");
    assert_eq!((inline.reply(), inline.reply()), (Some(ok()), Some(bulk("value"))));
}

#[test]
fn a_port_of_its_own_speaks_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let options =
        ServerOptions { address: loopback, memcached_address: Some(loopback), ..Default::default() };
    let server = Server::bind(options, database(&directory)).unwrap();
    let address = server.memcached_address().unwrap();
    let running = Running::run(server, directory);
    let mut client = Client::connect(address);
    ask(&mut client, "set a value\r\n", "ERROR\r\n");
    ask(&mut client, "PING\r\n", "ERROR\r\n");
    assert_eq!(running.client().ask(&["PING"]), Value::Simple(b"PONG".to_vec()));
}

#[test]
fn a_password_is_the_value_of_the_first_set() {
    let running = Running::start(ServerOptions { password: Password::new("secret"), ..Default::default() });
    let mut client = running.client();
    client.send(b"get a\r\n");
    assert_eq!(client.raw(30), b"CLIENT_ERROR unauthenticated\r\n");
    client.send(b"set user 0 0 9\r\nme wrong1\r\n");
    assert_eq!(client.raw(37), b"CLIENT_ERROR authentication failure\r\n");
    client.send(b"set user 0 0 9\r\nme secret\r\n");
    assert_eq!(client.raw(8), b"STORED\r\n");
    ask(&mut client, "get user\r\n", "END\r\n");
}

#[test]
fn a_delayed_flush_happens_without_requests() {
    let running = running();
    let mut client = running.client();
    ask(&mut client, "set a 0 0 1\r\nx\r\n", "STORED\r\n");
    ask(&mut client, "flush_all 1\r\n", "OK\r\n");
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut redis = running.client();
    while redis.ask(&["EXISTS", "a"]) == Value::Integer(1) {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
    }
    ask(&mut client, "set a 0 0 1\r\nx\r\n", "STORED\r\n");
    ask(&mut client, "flush_all 1000\r\n", "OK\r\n");
    ask(&mut client, "get a\r\n", "VALUE a 0 1\r\nx\r\nEND\r\n");
}

#[test]
fn large_values_and_long_lines_are_refused() {
    let limits = MemcachedLimits { value_bytes_max: 100, ..Default::default() };
    let running = Running::start(ServerOptions { memcached_limits: limits, ..Default::default() });
    let mut client = running.client();
    let (fits, large) = ("v".repeat(100), "v".repeat(101));
    ask(&mut client, &format!("set a 0 0 100\r\n{fits}\r\n"), "STORED\r\n");
    ask(&mut client, "append a 0 0 1\r\nx\r\n", "NOT_STORED\r\n");
    ask(&mut client, "get a\r\n", &format!("VALUE a 0 100\r\n{fits}\r\nEND\r\n"));
    // The old value is gone, so that nobody takes it for the new one.
    ask(&mut client, &format!("set a 0 0 101\r\n{large}\r\n"), "SERVER_ERROR object too large for cache\r\n");
    ask(&mut client, "get a\r\n", "END\r\n");
    let key = "k".repeat(251);
    ask(&mut client, &format!("get {key}\r\n"), "CLIENT_ERROR bad command line format\r\n");
    client.send(&vec![b'x'; 3000]);
    assert_eq!(client.raw_to_end(), b"");
}

#[test]
fn one_request_for_many_keys_is_answered_in_order() {
    let running = running();
    let mut client = running.client();
    let mut expected = String::new();
    let mut keys = String::new();
    for number in 0..1000 {
        client.send(format!("set key{number} 0 0 4 noreply\r\n{number:04}\r\n").as_bytes());
        keys.push_str(&format!(" key{number} absent"));
        expected.push_str(&format!("VALUE key{number} 0 4\r\n{number:04}\r\n"));
    }
    ask(&mut client, &format!("get{keys}\r\n"), &format!("{expected}END\r\n"));
    // However the bytes are cut.
    for piece in b"set a 0 0 3\r\na\r\n\r\nget a key7\r\nmg a v\r\n".chunks(1) {
        client.send(piece);
    }
    ask(
        &mut client,
        "",
        "STORED\r\nVALUE a 0 3\r\na\r\n\r\nVALUE key7 0 4\r\n0007\r\nEND\r\nVA 3\r\na\r\n\r\n",
    );
}

#[test]
fn replies_to_one_request_are_bounded_unless_they_are_streamed() {
    let options = ServerOptions { output_bytes_max: 10 << 20, ..Default::default() };
    let running = Running::start(options);
    let mut client = running.client();
    let set = |client: &mut Client, len: usize| {
        ask(client, &format!("set a 0 0 {len}\r\n{}\r\n", "v".repeat(len)), "STORED\r\n");
    };
    // Read while they are sent.
    set(&mut client, 1 << 20);
    client.send(format!("get{}\r\n", " a".repeat(30)).as_bytes());
    let item_bytes = "VALUE a 0 1048576\r\n\r\n".len() + (1 << 20);
    let received = client.raw(30 * item_bytes + "END\r\n".len());
    assert!(received.ends_with(b"v\r\nEND\r\n"));
    // Collected: the connection is closed, after a part of the reply at most.
    set(&mut client, 32 << 10);
    client.send(format!("get{}\r\n", " a".repeat(10_000)).as_bytes());
    assert!(client.raw_to_end().len() < 300 << 20);
    ask(&mut running.client(), "", "");
}

#[test]
fn statistics_count_requests() {
    let running = running();
    let mut client = running.client();
    ask(&mut client, "set a 0 0 1\r\nx\r\nget a b\r\n", "STORED\r\nVALUE a 0 1\r\nx\r\nEND\r\n");
    client.send(b"stats\r\nmn\r\n");
    let mut received = Vec::new();
    while !received.ends_with(b"MN\r\n") {
        received.extend(client.raw(1));
    }
    let text = String::from_utf8(received).unwrap();
    for line in ["STAT get_hits 1", "STAT get_misses 1", "STAT cmd_set 1", "STAT version 1.6.18"] {
        assert!(text.lines().any(|other| other == line), "{line} in {text}");
    }
}

#[test]
fn a_pause_holds_memcached_clients_too() {
    let running = running();
    let (mut redis, mut client) = (running.client(), running.client());
    ask(&mut client, "set a 0 0 1\r\nx\r\n", "STORED\r\n");
    assert_eq!(redis.ask(&["CLIENT", "PAUSE", "60000", "WRITE"]), ok());
    ask(&mut client, "get a\r\n", "VALUE a 0 1\r\nx\r\nEND\r\n");
    client.send(b"set a 0 0 1\r\ny\r\nget a\r\nmn\r\n");
    let is_held = |info: Value| {
        let Value::Bulk(text) = info else { panic!("{info:?}") };
        String::from_utf8_lossy(&text).contains("blocked_clients:1\r\n")
    };
    while !is_held(redis.ask(&["INFO", "clients"])) {
        std::thread::yield_now();
    }
    assert_eq!(redis.ask(&["GET", "a"]), bulk("x"));
    assert_eq!(redis.ask(&["CLIENT", "UNPAUSE"]), ok());
    let reply = "STORED\r\nVALUE a 0 1\r\ny\r\nEND\r\nMN\r\n";
    assert_eq!(String::from_utf8_lossy(&client.raw(reply.len())), reply);
}
