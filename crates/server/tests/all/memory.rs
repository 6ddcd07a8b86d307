//! One bound for what all clients make the server hold, and long values that are streamed.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

use crate::common::{Client, Running, bulk, database, ok};
use alluvium_protocol::{Value, request};
use alluvium_server::{Server, ServerOptions};

/// Never.
const PATIENT: Duration = Duration::from_secs(3600);

fn server(client_bytes_max: usize, client_patience: Duration) -> Running {
    let workers = NonZeroUsize::MIN;
    Running::start(ServerOptions { workers, client_bytes_max, client_patience, ..Default::default() })
}

fn set(key: &str, len: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    request::encode(&["SET", key, &"x".repeat(len)], &mut frame);
    frame
}

fn figure(client: &mut Client, name: &str) -> usize {
    let Value::Bulk(text) = client.ask(&["INFO", "everything"]) else { panic!("no text") };
    let text = String::from_utf8(text).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.unwrap_or_else(|| panic!("{name} in {text}")).parse().unwrap()
}

fn wait_until(client: &mut Client, name: &str, holds: impl Fn(usize) -> bool) {
    while !holds(figure(client, name)) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_client_above_the_bound_waits_and_goes_on() {
    let server = server(4 << 20, PATIENT);
    let (mut honest, mut first, mut second) = (server.client(), server.client(), server.client());
    let (one, two) = (set("one", 1_900_000), set("two", 1_900_000));
    first.send(&one[..1_800_000]);
    wait_until(&mut honest, "mem_clients_normal", |bytes| bytes > 1_800_000);
    // The second one is favoured, so the first must wait.
    second.send(&two[..1_500_000]);
    wait_until(&mut honest, "mem_clients_normal", |bytes| bytes > 3_300_000);
    first.send(&one[1_800_000..]);
    wait_until(&mut honest, "mem_clients_waiting", |waiting| waiting == 1);
    assert_eq!(honest.ask(&["SET", "small", "value"]), ok());
    second.send(&two[1_500_000..]);
    assert_eq!(second.reply(), Some(ok()));
    assert_eq!(first.reply(), Some(ok()));
    assert_eq!(honest.ask(&["STRLEN", "one"]), Value::Integer(1_900_000));
    assert_eq!(figure(&mut honest, "mem_clients_waiting"), 0);
    assert_eq!(figure(&mut honest, "evicted_clients"), 0);
    assert!(figure(&mut honest, "mem_clients_normal") < 100_000);
}

#[test]
fn half_requests_do_not_keep_others_waiting() {
    let server = server(4 << 20, Duration::from_millis(50));
    let mut honest = server.client();
    let frame = set("half", 1_900_000);
    let mut halves: Vec<Client> = (0..4).map(|_| server.client()).collect();
    for half in &mut halves {
        // What does not fit stays in the sockets, until the server has waited for half a request long enough and closes
        // its connection.
        half.stream.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
        let _ = std::io::Write::write_all(&mut half.stream, &frame[..1_500_000]);
    }
    let mut uploader = server.client();
    uploader.send(&set("whole", 1_000_000));
    assert_eq!(uploader.reply(), Some(ok()));
    assert!(figure(&mut honest, "mem_clients_normal") <= 4 << 20);
    wait_until(&mut honest, "evicted_clients", |evicted| evicted >= 1);
}

#[test]
fn requests_and_replies_take_at_most_half() {
    let server = server(4 << 20, PATIENT);
    let mut client = server.client();
    client.send(b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$2097153\r\n");
    assert_eq!(client.raw_to_end(), b"-ERR Protocol error: invalid bulk length\r\n");
    let mut client = server.client();
    client.send(&set("value", 150_000));
    assert_eq!(client.reply(), Some(ok()));
    for (words, fits) in [(vec!["value"; 13], true), (vec!["value"; 14], false)] {
        let reply = client.ask(&[&["MGET"][..], &words].concat());
        assert_eq!(matches!(reply, Value::Array(values) if values.len() == words.len()), fits, "{words:?}");
    }
    assert_eq!(client.reply(), None);
}

#[test]
fn a_reply_waits_for_memory() {
    let server = server(4 << 20, PATIENT);
    let (mut holder, mut reader, mut honest) = (server.client(), server.client(), server.client());
    reader.send(&set("value", 100_000));
    assert_eq!(reader.reply(), Some(ok()));
    // Commands that are queued, and half a request: more than there is room for beside the reply below.
    assert_eq!(holder.ask(&["MULTI"]), ok());
    for _ in 0..19 {
        holder.send(&set("queued", 100_000));
        assert_eq!(holder.reply(), Some(Value::Simple(b"QUEUED".to_vec())));
    }
    let mut half = server.client();
    half.send(&set("half", 1_800_000)[..1_000_000]);
    wait_until(&mut honest, "mem_clients_normal", |bytes| bytes > 2_800_000);
    reader.send_request(&[&["MGET"][..], &["value"; 18]].concat());
    wait_until(&mut honest, "mem_clients_waiting", |waiting| waiting >= 1);
    assert_eq!(honest.ask(&["PING"]), Value::Simple(b"PONG".to_vec()));
    drop((holder, half));
    assert!(matches!(reader.reply(), Some(Value::Array(values)) if values.len() == 18));
}

#[test]
fn values_of_a_reply_without_room_are_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let db = database(&directory);
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = ServerOptions { address, client_bytes_max: 4 << 20, ..Default::default() };
    let server = Running::run(Server::bind(options, db.clone()).unwrap(), directory);
    let (mut client, keys) = (server.client(), ["0", "1", "2", "3"]);
    for key in keys {
        client.send(&set(key, 1_000_000));
        assert_eq!(client.reply(), Some(ok()));
    }
    let before = db.stats().traffic.blob_reads;
    let Value::Error(text) = client.ask(&[&["MGET"], &keys[..]].concat()) else { panic!("no error") };
    assert_eq!(text, b"ERR reply exceeds the output limit of this server");
    assert_eq!(db.stats().traffic.blob_reads, before);
    let mut client = server.client();
    assert!(matches!(client.ask(&["MGET", "0"]), Value::Array(values) if values.len() == 1));
    assert!(db.stats().traffic.blob_reads > before);
}

#[test]
fn a_streamed_value_stays_what_it_was() {
    let server = server(64 << 20, PATIENT);
    let (mut reader, mut writer) = (server.client(), server.client());
    let bytes = |seed: usize| -> String {
        (0..24 << 20).map(|at: usize| char::from(b'a' + ((at * 31 + at / 251 + seed) % 23) as u8)).collect()
    };
    let (old, new) = (bytes(0), bytes(7));
    assert_eq!(writer.ask(&["SET", "long", &old]), ok());
    assert_eq!(writer.ask(&["SET", "short", "value"]), ok());
    reader.send(b"PING\r\nGET short\r\n");
    reader.send(b"*2\r\n$3\r\nGET\r\n$4\r\nlong\r\n*2\r\n$3\r\nGET\r\n$5\r\nshort\r\n");
    reader.send(b"*2\r\n$3\r\nGET\r\n$4\r\nlong\r\n*2\r\n$3\r\nGET\r\n$5\r\nother\r\n");
    reader.send(b"*2\r\n$6\r\nSTRLEN\r\n$4\r\nlong\r\n");
    assert_eq!(reader.reply(), Some(Value::Simple(b"PONG".to_vec())));
    assert_eq!(reader.reply(), Some(bulk("value")));
    assert_eq!(reader.raw(11), b"$25165824\r\n");
    // The stream has begun, and the socket holds less than it: what is read from now on was overwritten.
    assert_eq!(writer.ask(&["SET", "long", &new]), ok());
    assert!(figure(&mut writer, "mem_clients_normal") < 1 << 20);
    assert!(reader.raw(24 << 20) == old.as_bytes(), "the value at the time of the request");
    assert_eq!(reader.raw(2), b"\r\n");
    assert_eq!(reader.reply(), Some(bulk("value")));
    // This one was looked up after the first one was sent.
    assert!(reader.reply() == Some(bulk(&new)), "the value of now");
    assert_eq!(reader.reply(), Some(Value::Null));
    assert_eq!(reader.reply(), Some(Value::Integer(24 << 20)));
}

#[test]
fn long_values_of_memcached_are_streamed() {
    let server = server(64 << 20, PATIENT);
    let mut client = server.client();
    let value = "v".repeat(500_000);
    client.send(format!("set long 1234567890 0 500000\r\n{value}\r\nset short 7 0 1\r\ns\r\n").as_bytes());
    client.send(b"get short long absent\r\nget long short long\r\ngets short\r\nmg long v\r\nmn\r\n");
    client.send(b"quit\r\n");
    let (short, long) = ("VALUE short 7 1\r\ns\r\n", format!("VALUE long 1234567890 500000\r\n{value}\r\n"));
    let got = String::from_utf8(client.raw_to_end()).unwrap();
    let expected = format!("STORED\r\nSTORED\r\n{short}{long}END\r\n{long}{short}{long}END\r\n");
    let rest = got.strip_prefix(&expected).unwrap_or_else(|| panic!("{} bytes", got.len()));
    assert!(
        rest.starts_with("VALUE short 7 1 ") && rest.ends_with(&format!("VA 500000\r\n{value}\r\nMN\r\n"))
    );
}
