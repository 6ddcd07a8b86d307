//! Requests and replies as bytes, without a server.

use super::mix::{Mix, Operation};
use super::wire::{Protocol, Reply, Request};

fn reply(protocol: Protocol, operation: Operation, bytes: &[u8]) -> Option<Reply> {
    protocol.reply(Request { operation, item: 7 }, 10, bytes).ok()
}

/// The value of item 7, as a client would send it.
fn value(protocol: Protocol) -> Vec<u8> {
    let mut out = Vec::new();
    protocol.encode(Request { operation: Operation::Set, item: 7 }, 10, &mut out);
    let end = out.len() - 2;
    out[end - 10..end].to_vec()
}

#[test]
fn values_are_verified() {
    for (protocol, head, absent) in [(Protocol::Resp, "$10", "$-1\r\n"), (Protocol::Meta, "VA 10", "EN\r\n")]
    {
        let mut bytes = [head.as_bytes(), b"\r\n", &value(protocol), b"\r\n"].concat();
        let whole = Some(Reply::Present(bytes.len()));
        assert_eq!(reply(protocol, Operation::Get, &bytes), whole);
        for end in 0..bytes.len() {
            assert_eq!(reply(protocol, Operation::Get, &bytes[..end]), Some(Reply::Incomplete));
        }
        let last = bytes.len() - 3;
        bytes[last] ^= 1;
        assert_eq!(reply(protocol, Operation::Get, &bytes), None);
        let nothing = Some(Reply::Absent(absent.len()));
        assert_eq!(reply(protocol, Operation::Get, absent.as_bytes()), nothing);
    }
}

#[test]
fn errors_are_wrong_answers() {
    for operation in [Operation::Get, Operation::Set, Operation::Increment] {
        assert_eq!(reply(Protocol::Resp, operation, b"-ERR no commit\r\n"), None);
        assert_eq!(reply(Protocol::Meta, operation, b"SERVER_ERROR no commit\r\n"), None);
        assert_eq!(reply(Protocol::Meta, operation, b"V\n"), None);
    }
    assert_eq!(reply(Protocol::Resp, Operation::Exists, b":0\r\n"), Some(Reply::Absent(4)));
    assert_eq!(reply(Protocol::Resp, Operation::Increment, b":12\r\n"), Some(Reply::Present(5)));
}

#[test]
fn a_mix_is_written_as_it_is_read() {
    let mix: Mix = "get=95,incr=3,del".parse().unwrap();
    assert_eq!(mix.to_string(), "get=95,incr=3,del=1");
    assert!(mix.has(Operation::Increment) && !mix.is_of(&[Operation::Get]));
    for text in ["", "get=0", "put=1", "get=x"] {
        text.parse::<Mix>().unwrap_err();
    }
}
