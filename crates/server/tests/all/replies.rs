//! Requests and the exact bytes of their replies, as given by Redis 7.0.15.
//!
//! With `ALLUVIUM_REFERENCE=host:port` the same table runs against a Redis server instead, which shows that the table
//! is correct; that server's data are flushed.

use std::io::Write;

use crate::common::{Client, Running};

/// One line per step: the inline request, ` => `, the reply with its line ends escaped. A table starts with an empty
/// store.
const STRINGS: &str = r#"
GET key => $-1\r\n
SET key value => +OK\r\n
get key => $5\r\nvalue\r\n
SET key "" => +OK\r\n
GET key => $0\r\n\r\n
SET "" empty => +OK\r\n
GET "" => $5\r\nempty\r\n
SET bin "a\x00\r\n\xff" => +OK\r\n
GET bin => $5\r\na\x00\r\n\xff\r\n
STRLEN bin => :5\r\n
STRLEN absent => :0\r\n
SET key a NX => $-1\r\n
SET new a NX => +OK\r\n
SET absent a XX => $-1\r\n
SET new b xx => +OK\r\n
SET new c GET => $1\r\nb\r\n
SET new2 c GET => $-1\r\n
SET new d NX GET => $1\r\nc\r\n
GET new => $1\r\nc\r\n
SET absent d XX GET => $-1\r\n
GET absent => $-1\r\n
SET new e KEEPTTL => +OK\r\n
SET key a NX XX => -ERR syntax error\r\n
SET key a WHAT => -ERR syntax error\r\n
SET key => -ERR wrong number of arguments for 'set' command\r\n
GET => -ERR wrong number of arguments for 'get' command\r\n
GET a b => -ERR wrong number of arguments for 'get' command\r\n
MSET a 1 b 2 a 3 => +OK\r\n
MGET a b nothing a => *4\r\n$1\r\n3\r\n$1\r\n2\r\n$-1\r\n$1\r\n3\r\n
MGET => -ERR wrong number of arguments for 'mget' command\r\n
MSET a 1 b => -ERR wrong number of arguments for 'mset' command\r\n
MSET a => -ERR wrong number of arguments for 'mset' command\r\n
EXISTS a b a nothing => :3\r\n
DEL a nothing a => :1\r\n
EXISTS a => :0\r\n
UNLINK b => :1\r\n
TYPE new => +string\r\n
TYPE nothing => +none\r\n
APPEND log one => :3\r\n
APPEND log two => :6\r\n
GET log => $6\r\nonetwo\r\n
FLUSHALL => +OK\r\n
DBSIZE => :0\r\n
SET key value => +OK\r\n
FLUSHDB sync => +OK\r\n
FLUSHALL ASYNC => +OK\r\n
FLUSHALL now => -ERR syntax error\r\n
FLUSHALL sync sync => -ERR syntax error\r\n
GET key => $-1\r\n
"#;

const COUNTERS: &str = r#"
INCR n => :1\r\n
INCR n => :2\r\n
DECR n => :1\r\n
INCRBY n 41 => :42\r\n
DECRBY n 43 => :-1\r\n
GET n => $2\r\n-1\r\n
INCR n extra => -ERR wrong number of arguments for 'incr' command\r\n
INCRBY n x => -ERR value is not an integer or out of range\r\n
INCRBY n 9223372036854775808 => -ERR value is not an integer or out of range\r\n
SET n text => +OK\r\n
INCR n => -ERR value is not an integer or out of range\r\n
GET n => $4\r\ntext\r\n
SET n " 1" => +OK\r\n
INCR n => -ERR value is not an integer or out of range\r\n
SET n 01 => +OK\r\n
DECR n => -ERR value is not an integer or out of range\r\n
SET n 9223372036854775806 => +OK\r\n
INCR n => :9223372036854775807\r\n
INCR n => -ERR increment or decrement would overflow\r\n
SET n -9223372036854775808 => +OK\r\n
DECR n => -ERR increment or decrement would overflow\r\n
DECRBY n -9223372036854775808 => -ERR decrement would overflow\r\n
DECRBY n -9223372036854775807 => :-1\r\n
GET n => $2\r\n-1\r\n
"#;

const PARTS: &str = r#"
INCRBYFLOAT f 1.5 => $3\r\n1.5\r\n
INCRBYFLOAT f 1e3 => $6\r\n1001.5\r\n
INCRBYFLOAT f -1001.5 => $1\r\n0\r\n
INCRBYFLOAT f 0.1 => $3\r\n0.1\r\n
INCRBYFLOAT f 1e-17 => $19\r\n0.10000000000000001\r\n
INCRBYFLOAT f x => -ERR value is not a valid float\r\n
INCRBYFLOAT f inf => -ERR increment would produce NaN or Infinity\r\n
INCRBYFLOAT f 1e5000 => -ERR value is not a valid float\r\n
SET f "1 " => +OK\r\n
INCRBYFLOAT f 1 => -ERR value is not a valid float\r\n
SETRANGE r 2 ab => :4\r\n
GET r => $4\r\n\x00\x00ab\r\n
SETRANGE r 0 "" => :4\r\n
SETRANGE none 5 "" => :0\r\n
EXISTS none => :0\r\n
SETRANGE r -1 x => -ERR offset is out of range\r\n
SETRANGE r 9223372036854775807 x => -ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n
MSET a ohmytext b mynewtext => +OK\r\n
LCS a b => $6\r\nmytext\r\n
LCS a b LEN => :6\r\n
LCS a b IDX MINMATCHLEN 4 => *4\r\n$7\r\nmatches\r\n*1\r\n*2\r\n*2\r\n:4\r\n:7\r\n*2\r\n:5\r\n:8\r\n$3\r\nlen\r\n:6\r\n
LCS a b LEN IDX => -ERR If you want both the length and indexes, please just use IDX.\r\n
LCS a b what => -ERR syntax error\r\n
SETBIT bits 7 1 => :0\r\n
SETBIT bits 7 0 => :1\r\n
SETBIT bits 20 1 => :0\r\n
STRLEN bits => :3\r\n
GETBIT bits 20 => :1\r\n
GETBIT bits 1000000 => :0\r\n
SETBIT bits x 1 => -ERR bit offset is not an integer or out of range\r\n
SETBIT bits -1 1 => -ERR bit offset is not an integer or out of range\r\n
SETBIT bits 1 2 => -ERR bit is not an integer or out of range\r\n
SET text foobar => +OK\r\n
BITCOUNT text => :26\r\n
BITCOUNT text 0 0 => :4\r\n
BITCOUNT text 5 30 BIT => :17\r\n
BITCOUNT text 1 => -ERR syntax error\r\n
BITCOUNT none 1 => :0\r\n
BITPOS text 1 => :1\r\n
BITPOS text 0 2 => :16\r\n
BITPOS text 1 7 15 BIT => :9\r\n
BITPOS text 2 => -ERR The bit argument must be 1 or 0.\r\n
BITPOS none 0 => :0\r\n
BITPOS none 1 => :-1\r\n
SET ones "\xff\xff" => +OK\r\n
BITPOS ones 0 => :16\r\n
BITPOS ones 0 0 -1 => :-1\r\n
BITOP XOR result ones text => :6\r\n
GET result => $6\r\n\x99\x90obar\r\n
BITOP NOT result ones => :2\r\n
GET result => $2\r\n\x00\x00\r\n
BITOP AND result none => :0\r\n
EXISTS result => :0\r\n
BITOP NOT result a b => -ERR BITOP NOT must be called with a single source key.\r\n
BITOP what result a => -ERR syntax error\r\n
BITFIELD field SET i8 0 -100 GET u8 0 => *2\r\n:0\r\n:156\r\n
BITFIELD field INCRBY i8 0 -100 OVERFLOW SAT INCRBY i8 0 100 => *2\r\n:56\r\n:127\r\n
BITFIELD field OVERFLOW FAIL INCRBY i8 0 1 => *1\r\n$-1\r\n
BITFIELD field GET u4 #1 => *1\r\n:15\r\n
BITFIELD field OVERFLOW x => -ERR Invalid OVERFLOW type specified\r\n
BITFIELD_RO field SET u8 0 1 => -ERR BITFIELD_RO only supports the GET subcommand\r\n
BITFIELD_RO field GET u8 0 => *1\r\n:127\r\n
"#;

const KEYS: &str = r#"
RANDOMKEY => $-1\r\n
KEYS * => *0\r\n
SET number 12 => +OK\r\n
RANDOMKEY => $6\r\nnumber\r\n
KEYS n?mber => *1\r\n$6\r\nnumber\r\n
KEYS x* => *0\r\n
OBJECT ENCODING number => $3\r\nint\r\n
OBJECT ENCODING none => $-1\r\n
OBJECT REFCOUNT none => $-1\r\n
OBJECT ENCODING => -ERR wrong number of arguments for 'object|encoding' command\r\n
SET text "a text of eleven words is longer than forty-four bytes" => +OK\r\n
OBJECT ENCODING text => $3\r\nraw\r\n
SET text "a short text" => +OK\r\n
OBJECT ENCODING text => $6\r\nembstr\r\n
MEMORY USAGE none => $-1\r\n
MEMORY USAGE number SAMPLES => -ERR syntax error\r\n
DUMP none => $-1\r\n
DUMP number => $13\r\n\x00\xc0\x0c\x0a\x00\x3c\x2a\xf8\x51\x5c\x04\xbc\xd5\r\n
RESTORE copy 0 "\x00\xc0\x0c\x0a\x00\x3c\x2a\xf8\x51\x5c\x04\xbc\xd5" => +OK\r\n
GET copy => $2\r\n12\r\n
TTL copy => :-1\r\n
RESTORE copy 0 x => -BUSYKEY Target key name already exists.\r\n
RESTORE copy 0 x REPLACE => -ERR DUMP payload version or checksum are wrong\r\n
RESTORE copy -1 x REPLACE => -ERR Invalid TTL value, must be >= 0\r\n
RESTORE copy 0 x what => -ERR syntax error\r\n
RESTORE copy 0 x FREQ 256 => -ERR Invalid FREQ value, must be >= 0 and <= 255\r\n
RESTORE copy 0 x IDLETIME -1 => -ERR Invalid IDLETIME value, must be >= 0\r\n
RESTORE copy 1 "\x00\xc0\x0c\x0a\x00\x3c\x2a\xf8\x51\x5c\x04\xbc\xd5" REPLACE ABSTTL => +OK\r\n
EXISTS copy => :0\r\n
SET a 1 PX 100000 => +OK\r\n
RENAME a b => +OK\r\n
EXISTS a => :0\r\n
PERSIST b => :1\r\n
RENAME a b => -ERR no such key\r\n
RENAME b b => +OK\r\n
RENAMENX b b => :0\r\n
SET a 2 => +OK\r\n
RENAMENX a b => :0\r\n
RENAMENX a c => :1\r\n
RENAMENX a c => -ERR no such key\r\n
COPY b c => :0\r\n
COPY b c REPLACE => :1\r\n
GET c => $1\r\n1\r\n
COPY none c => :0\r\n
COPY b b => -ERR source and destination objects are the same\r\n
COPY b c DB 77 => -ERR DB index is out of range\r\n
COPY b c DB x => -ERR value is not an integer or out of range\r\n
COPY b c what => -ERR syntax error\r\n
COPY b c DB 3 => :1\r\n
MOVE c 3 => :0\r\n
MOVE b 3 => :1\r\n
MOVE b 3 => :0\r\n
MOVE b 0 => -ERR source and destination objects are the same\r\n
SELECT 3 => +OK\r\n
MGET b c => *2\r\n$1\r\n1\r\n$1\r\n1\r\n
SELECT 0 => +OK\r\n
MSETNX x 1 y 2 => :1\r\n
MSETNX z 3 y 4 => :0\r\n
MSETNX z => -ERR wrong number of arguments for 'msetnx' command\r\n
MSETNX z 1 y => -ERR wrong number of arguments for 'msetnx' command\r\n
MGET x y z => *3\r\n$1\r\n1\r\n$1\r\n2\r\n$-1\r\n
HSET h f v => :1\r\n
PEXPIRE h 100000 => :1\r\n
RENAME h x => +OK\r\n
TYPE x => +hash\r\n
HGET x f => $1\r\nv\r\n
COPY x h => :1\r\n
HSET h f w => :0\r\n
HGET x f => $1\r\nv\r\n
PERSIST h => :1\r\n
MOVE x 3 => :1\r\n
EXISTS x => :0\r\n
RENAME h x => +OK\r\n
SELECT 3 => +OK\r\n
HGET x f => $1\r\nv\r\n
PERSIST x => :1\r\n
SELECT 0 => +OK\r\n
HGET x f => $1\r\nw\r\n
BITOP NOT y x => -WRONGTYPE Operation against a key holding the wrong kind of value\r\n
LCS x y => -ERR The specified keys must contain string values\r\n
FUNCTION FLUSH => +OK\r\n
FUNCTION FLUSH now => -ERR FUNCTION FLUSH only supports SYNC|ASYNC option\r\n
FUNCTION LIST => *0\r\n
SCRIPT FLUSH SYNC => +OK\r\n
SCRIPT EXISTS a b => *2\r\n:0\r\n:0\r\n
SCRIPT KILL => -NOTBUSY No scripts in execution right now.\r\n
"#;

const CONNECTIONS: &str = r#"
PING => +PONG\r\n
PING "hello there" => $11\r\nhello there\r\n
PING a b => -ERR wrong number of arguments for 'ping' command\r\n
ECHO 'single \' quoted' => $15\r\nsingle ' quoted\r\n
ECHO => -ERR wrong number of arguments for 'echo' command\r\n
SELECT 0 => +OK\r\n
SELECT 99 => -ERR DB index is out of range\r\n
SELECT x => -ERR value is not an integer or out of range\r\n
CLIENT GETNAME => $-1\r\n
CLIENT SETNAME me => +OK\r\n
CLIENT GETNAME => $2\r\nme\r\n
CLIENT SETNAME "a b" => -ERR Client names cannot contain spaces, newlines or special characters.\r\n
CLIENT SETNAME => -ERR wrong number of arguments for 'client|setname' command\r\n
CLIENT ID x => -ERR wrong number of arguments for 'client|id' command\r\n
CLIENT => -ERR wrong number of arguments for 'client' command\r\n
CLIENT what => -ERR unknown subcommand 'what'. Try CLIENT HELP.\r\n
RESET => +RESET\r\n
CLIENT GETNAME => $-1\r\n
HELLO 4 => -NOPROTO unsupported protocol version\r\n
HELLO x => -ERR Protocol version is not an integer or out of range\r\n
HELLO 2 WHAT => -ERR Syntax error in HELLO option 'WHAT'\r\n
HELLO 2 SETNAME => -ERR Syntax error in HELLO option 'SETNAME'\r\n
HELLO 2 AUTH nobody secret => -WRONGPASS invalid username-password pair or user is disabled.\r\n
HELLO 3 SETNAME "a b" => -ERR Client names cannot contain spaces, newlines or special characters.\r\n
GET nothing => $-1\r\n
what => -ERR unknown command 'what', with args beginning with: \r\n
WHAT is this => -ERR unknown command 'WHAT', with args beginning with: 'is' 'this' \r\n
"wh\r\nat" => -ERR unknown command 'wh  at', with args beginning with: \r\n
SCAN x => -ERR invalid cursor\r\n
SCAN 0 COUNT 0 => -ERR syntax error\r\n
SCAN 0 COUNT x => -ERR value is not an integer or out of range\r\n
SCAN 0 MATCH => -ERR syntax error\r\n
SCAN 0 WHAT x => -ERR syntax error\r\n
SCAN 0 => *2\r\n$1\r\n0\r\n*0\r\n
SET key value => +OK\r\n
SCAN 0 match k* count 5 type string => *2\r\n$1\r\n0\r\n*1\r\n$3\r\nkey\r\n
SCAN 0 match x* => *2\r\n$1\r\n0\r\n*0\r\n
SCAN 0 TYPE list => *2\r\n$1\r\n0\r\n*0\r\n
CONFIG GET save => *2\r\n$4\r\nsave\r\n$0\r\n\r\n
CONFIG GET appendonl[x-z] => *2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n
CONFIG GET nothing => *0\r\n
CONFIG GET => -ERR wrong number of arguments for 'config|get' command\r\n
CONFIG WHAT => -ERR unknown subcommand 'WHAT'. Try CONFIG HELP.\r\n
COMMAND WHAT => -ERR unknown subcommand 'WHAT'. Try COMMAND HELP.\r\n
COMMAND COUNT x => -ERR wrong number of arguments for 'command|count' command\r\n
COMMAND INFO nothing => *1\r\n$-1\r\n
COMMAND DOCS nothing => *0\r\n
INFO nothing => $0\r\n\r\n
SHUTDOWN what => -ERR syntax error\r\n
SHUTDOWN SAVE NOSAVE => -ERR syntax error\r\n
SHUTDOWN ABORT => -ERR No shutdown in progress.\r\n
TIME x => -ERR wrong number of arguments for 'time' command\r\n
QUIT => +OK\r\n
"#;

/// Requests that end the connection: request bytes and all reply bytes.
const FATAL: &[(&str, &str)] = &[
    (r"*x\r\n", r"-ERR Protocol error: invalid multibulk length\r\n"),
    (r"*1\r\n$x\r\n", r"-ERR Protocol error: invalid bulk length\r\n"),
    (r"*1\r\n$-5\r\n", r"-ERR Protocol error: invalid bulk length\r\n"),
    (r"*1\r\n$1000000000000\r\n", r"-ERR Protocol error: invalid bulk length\r\n"),
    (r"*1\r\nfoo\r\n", r"-ERR Protocol error: expected '$', got 'f'\r\n"),
    (r#"PING\r\nset "a b\r\n"#, r"+PONG\r\n-ERR Protocol error: unbalanced quotes in request\r\n"),
    (r"*2\r\n$3\r\nGET\r\n$1\r\na\r\n*1\r\n$x\r\n", r"$-1\r\n-ERR Protocol error: invalid bulk length\r\n"),
    (r"POST / HTTP/1.1\r\nHost: localhost\r\n\r\nFLUSHALL\r\n", ""),
    (r"QUIT\r\nPING\r\n", r"+OK\r\n"),
];

/// The bytes that an escaped text stands for.
fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let (byte, length) = match rest.get(..2) {
            Some(r"\r") => (b'\r', 2),
            Some(r"\n") => (b'\n', 2),
            Some(r"\x") => (u8::from_str_radix(&rest[2..4], 16).unwrap(), 4),
            _ => (u8::try_from(character).unwrap(), 1),
        };
        bytes.push(byte);
        rest = &rest[length..];
    }
    bytes
}

/// A client of `server`, or of the reference.
fn connect(server: &Running) -> Client {
    match std::env::var("ALLUVIUM_REFERENCE") {
        Ok(address) => Client::connect(address.parse().unwrap()),
        Err(_) => server.client(),
    }
}

fn check(table: &str, server: &Running) {
    let mut client = connect(server);
    client.ask(&["FLUSHALL"]);
    for line in table.lines().filter(|line| !line.is_empty()) {
        let (request, reply) = line.split_once(" => ").unwrap();
        client.send(request.as_bytes());
        client.send(b"\r\n");
        let expected = unescape(reply);
        let found = client.raw(expected.len());
        assert_eq!(found.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{request}");
    }
    // Nothing may follow the last reply.
    if client.stream.write_all(b"QUIT\r\n").is_ok() {
        let rest = client.raw_to_end();
        assert!(rest.is_empty() || rest == b"+OK\r\n", "{}", rest.escape_ascii());
    }
}

#[test]
fn strings() {
    check(STRINGS, &Running::start(Default::default()));
}

#[test]
fn counters() {
    check(COUNTERS, &Running::start(Default::default()));
}

#[test]
fn parts_and_bits() {
    check(PARTS, &Running::start(Default::default()));
}

#[test]
fn keys_and_dumps() {
    check(KEYS, &Running::start(Default::default()));
}

#[test]
fn connections_and_scans() {
    check(CONNECTIONS, &Running::start(Default::default()));
}

#[test]
fn what_ends_a_connection() {
    let server = Running::start(Default::default());
    for (request, reply) in FATAL {
        let mut client = connect(&server);
        client.send(&unescape(request));
        let found = client.raw_to_end().escape_ascii().to_string();
        assert_eq!(found, unescape(reply).escape_ascii().to_string(), "{request}");
    }
}
