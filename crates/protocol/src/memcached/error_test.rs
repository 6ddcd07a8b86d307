//! Exact error lines. Every line here was answered so by memcached 1.6.18, except where a test says otherwise.

use super::*;

const FORMAT: &str = "CLIENT_ERROR bad command line format";
const FLAG: &str = "CLIENT_ERROR invalid or duplicate flag";

/// What is answered to `line`, given a value that is as long as it may be; `None` if it is a request.
fn answer(line: &str) -> Option<String> {
    let mut parser = Parser::new(Limits::default());
    let bytes = format!("{line}\r\n").into_bytes();
    let mut out = Vec::new();
    match parser.parse(&bytes) {
        Progress::Refused { consumed, refusal } => {
            assert_eq!(consumed, bytes.len(), "{line:?}");
            refusal.write(&mut out);
            Some(String::from_utf8(out).expect("a line"))
        }
        _ => None,
    }
}

fn check(cases: &[(&str, &str)]) {
    for (line, text) in cases {
        assert_eq!(answer(line), Some(format!("{text}\r\n")), "{line:?}");
    }
}

#[test]
fn unknown_commands_and_wrong_numbers_of_words() {
    for line in [
        "",
        " ",
        "a",
        "m",
        "mx",
        "mgx key",
        "foo",
        "GET key",
        "Set key 0 0 1",
        "get",
        "gets",
        "gat",
        "gats",
        "bget",
        "getx key",
        "set",
        "set key",
        "set key 0 0",
        "set key 0 0 1 noreply x",
        "add key 0 0",
        "cas key 0 0 1",
        "cas key 0 0 1 1 noreply x",
        "delete",
        "delete key 0 noreply x",
        "incr",
        "incr key",
        "incr key 1 noreply x",
        "decr key",
        "touch",
        "touch key",
        "touch key 1 noreply x",
        "flush_all 0 noreply x",
        "verbosity",
        "verbosity 1 2 3",
        "stats foo",
        "stats Items",
        "mg",
        "ms",
        "md",
        "ma",
        "get/ HTTP/1.1",
        "delete / HTTP/1.1 x x",
    ] {
        assert_eq!(answer(line).as_deref(), Some("ERROR\r\n"), "{line:?}");
    }
}

#[test]
fn classic_arguments() {
    let long = "k".repeat(251);
    check(&[
        (&format!("get {long}"), FORMAT),
        (&format!("get a b {long} c"), FORMAT),
        (&format!("gat 0 {long}"), FORMAT),
        (&format!("set {long} 0 0 1"), FORMAT),
        (&format!("set {long} x 0 1"), FORMAT),
        (&format!("delete {long}"), FORMAT),
        (&format!("incr {long} 1"), FORMAT),
        (&format!("incr {long} x"), FORMAT),
        (&format!("touch {long} x"), FORMAT),
        ("set key x 0 1", FORMAT),
        ("set key -1 0 1", FORMAT),
        ("set key 0 x 1", FORMAT),
        ("set key 0 0 x", FORMAT),
        ("set key 0 0 -1", FORMAT),
        ("set key 0 0 2147483646", FORMAT),
        ("set key 0 0 1x", FORMAT),
        ("cas key 0 0 1 x", FORMAT),
        ("cas key 0 0 1 -1", FORMAT),
        ("gat x key", "CLIENT_ERROR invalid exptime argument"),
        ("gats 1x key", "CLIENT_ERROR invalid exptime argument"),
        ("touch key x", "CLIENT_ERROR invalid exptime argument"),
        ("flush_all x", "CLIENT_ERROR invalid exptime argument"),
        ("flush_all x y", "CLIENT_ERROR invalid exptime argument"),
        ("incr key x", "CLIENT_ERROR invalid numeric delta argument"),
        ("incr key -1", "CLIENT_ERROR invalid numeric delta argument"),
        ("decr key 18446744073709551616", "CLIENT_ERROR invalid numeric delta argument"),
        ("delete key 1", "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]"),
        ("delete key 0 0", "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]"),
        ("delete key noreply 0", "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]"),
        (&format!("delete {long} 1"), "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]"),
        ("verbosity x", FORMAT),
        ("verbosity -1", FORMAT),
        ("stats detail", "CLIENT_ERROR usage: stats detail on|off|dump"),
        ("stats detail maybe", "CLIENT_ERROR usage: stats detail on|off|dump"),
        ("stats cachedump", "CLIENT_ERROR bad command line"),
        ("stats cachedump 1", "CLIENT_ERROR bad command line"),
        ("stats cachedump 1 x", FORMAT),
        ("stats cachedump 64 x", FORMAT),
        ("stats cachedump 64 0", "CLIENT_ERROR Illegal slab id"),
        ("set key 0 0 1048577", "SERVER_ERROR object too large for cache"),
        ("ms key 1048577", "SERVER_ERROR object too large for cache"),
    ]);
}

#[test]
fn noreply_hides_errors_and_is_seen_in_any_place_that_ends_the_line() {
    let long = format!("set {} 0 0 1 noreply", "k".repeat(251));
    for line in [
        &long,
        "set key x 0 1 noreply",
        "set key 0 0 noreply",
        "cas key 0 0 1 noreply",
        "set key 0 0 1048577 noreply",
        "delete key 1 noreply",
        "delete key noreply noreply",
        "incr key noreply",
        "incr key x noreply",
        "touch key noreply",
        "flush_all x noreply",
        "flush_all noreply noreply",
        "verbosity noreply",
    ] {
        assert_eq!(answer(line).as_deref(), Some(""), "{line:?}");
    }
    for line in
        ["set key 0 0 1 foo", "cas key 0 0 1 1 foo", "incr key 1 foo", "touch key 1 foo", "flush_all 0 foo"]
    {
        assert_eq!(answer(line), None, "{line:?}: what should be noreply is not looked at");
    }
}

#[test]
fn meta_flags() {
    let long = "k".repeat(251);
    let opaque = "O12345678901234567890123456789012";
    let seventeen = "s v t f k c h l u q b O P L T1 R1 N1";
    check(&[
        (&format!("mg {long}"), FORMAT),
        (&format!("ms {long} 1"), FORMAT),
        (&format!("md {long}"), FORMAT),
        (&format!("ma {long}"), FORMAT),
        (&format!("me {long}"), FORMAT),
        ("me", FORMAT),
        ("me key b", FORMAT),
        ("ms key", FORMAT),
        ("ms key x", FORMAT),
        ("ms key -1", FORMAT),
        ("mg key z", "CLIENT_ERROR invalid flag"),
        ("ms key 1 z", "CLIENT_ERROR invalid flag"),
        ("mg key Tx z", "CLIENT_ERROR invalid flag"),
        ("mg key z k k", "CLIENT_ERROR invalid flag"),
        ("mg key k k", "CLIENT_ERROR duplicate flag"),
        ("mg key kx ky z", "CLIENT_ERROR duplicate flag"),
        ("mg key \u{7f}", "CLIENT_ERROR duplicate flag"),
        ("mg key é", "CLIENT_ERROR duplicate flag"),
        ("mg key T", "CLIENT_ERROR bad token in command line format"),
        ("mg key Tx", "CLIENT_ERROR bad token in command line format"),
        ("mg key N", "CLIENT_ERROR bad token in command line format"),
        ("mg key R1x", "CLIENT_ERROR bad token in command line format"),
        ("mg key C-1", "CLIENT_ERROR bad token in command line format"),
        ("mg key b", "CLIENT_ERROR error decoding key"),
        ("mg Zm9 b", "CLIENT_ERROR error decoding key"),
        ("mg key b Tx", "CLIENT_ERROR bad token in command line format"),
        ("mg key Tx b", "CLIENT_ERROR error decoding key"),
        ("mg key M", "CLIENT_ERROR incorrect length for M token"),
        ("mg key MSS", "CLIENT_ERROR incorrect length for M token"),
        ("mg key Jx", "CLIENT_ERROR invalid numeric initial value"),
        ("mg key Dx", "CLIENT_ERROR invalid numeric delta value"),
        ("mg key Dx Jx", "CLIENT_ERROR invalid numeric initial value"),
        ("mg key Fx", FORMAT),
        ("mg key Fx Tx", "CLIENT_ERROR bad token in command line format"),
        ("mg key Tx Fx", "CLIENT_ERROR bad token in command line format"),
        (&format!("mg key {opaque}"), "CLIENT_ERROR opaque token too long"),
        (&format!("md key {opaque}"), "CLIENT_ERROR opaque token too long"),
        (&format!("ma key {opaque}"), "CLIENT_ERROR opaque token too long"),
        (&format!("ms key 1 {opaque}"), "CLIENT_ERROR opaque token too long"),
        (&format!("mg key {opaque} z"), "CLIENT_ERROR invalid flag"),
        (&format!("ms key 1 {opaque} MX"), "CLIENT_ERROR invalid mode for ms M token"),
        (&format!("ms key 1048577 {opaque}"), "CLIENT_ERROR opaque token too long"),
        ("ms key 1 MX", "CLIENT_ERROR invalid mode for ms M token"),
        ("ms key 1 MI", "CLIENT_ERROR invalid mode for ms M token"),
        ("ms key 1 Me", "CLIENT_ERROR invalid mode for ms M token"),
        ("ma key MX", "CLIENT_ERROR invalid mode for ma M token"),
        ("ma key ME", "CLIENT_ERROR invalid mode for ma M token"),
        (&format!("mg key {seventeen} I"), "CLIENT_ERROR options flags are too long"),
        (&format!("md key {seventeen} I"), "CLIENT_ERROR options flags too long"),
        (&format!("ma key {seventeen} I"), "CLIENT_ERROR options flags too long"),
        (&format!("ms key 1 {seventeen}"), "CLIENT_ERROR options flags too long"),
        (&format!("ms key x {seventeen}"), "CLIENT_ERROR options flags too long"),
        ("mg key z z z z z z z z z z z z z z z z z z", "CLIENT_ERROR options flags are too long"),
        ("mg key z z z z z z z z z z z z z z z z z", "CLIENT_ERROR invalid flag"),
        ("md key z", FLAG),
        ("md key k k", FLAG),
        ("md key Tx", FLAG),
        ("md key b", FLAG),
        ("ma key Dx", FLAG),
        ("ma key Fx", FLAG),
        ("ma key M", FLAG),
    ]);
    for line in
        ["mg key vx kk", "mg key O1234567890123456789012345678901", "me key x", "mn x", "mg key Ph Lp"]
    {
        assert_eq!(answer(line), None, "{line:?}");
    }
    assert_eq!(answer(&format!("mg Zm9v {seventeen}")), None);
}

#[test]
fn connections_of_browsers_are_closed() {
    for line in ["GET / HTTP/1.1", "POST / HTTP/1.0", "foo HTTP/", "quit/ HTTP/2"] {
        let bytes = format!("{line}\r\n").into_bytes();
        let Progress::Refused { refusal, .. } = Parser::new(Limits::default()).parse(&bytes) else {
            panic!("{line}")
        };
        assert_eq!((refusal.error, refusal.error.closes()), (Error::Http, true), "{line}");
        assert_eq!(answer(line).as_deref(), Some(""), "{line}");
    }
}

/// memcached takes such keys, and wraps such numbers.
#[test]
fn we_refuse_what_memcached_misunderstands() {
    check(&[
        ("get a\tb", FORMAT),
        ("get a b\x7f", FORMAT),
        ("get a\0b", FORMAT),
        ("set a\tb 0 0 1", FORMAT),
        ("ms a\tb 1", FORMAT),
        ("mg a\x01", FORMAT),
        ("set key 0 0 4294967297", FORMAT),
        ("set key 4294967296 0 1", FORMAT),
        ("ms key 1 F4294967296", FORMAT),
        ("set key 0 9223372036854775808 1", FORMAT),
    ]);
    assert_eq!(answer("set key 0 5000000000 1"), None, "an expiry time after 2038");
}
