//! Commits that fail, and those that are not needed.

use std::ops::Range;
use std::sync::atomic::AtomicUsize;

use super::RoundWrites;
use crate::connections::Connections;
use crate::get_batch::tests::{Echo, connections};

/// Appends a reply to a connection; returns where it is.
fn reply(connections: &mut Connections, number: usize, text: &str) -> Range<usize> {
    let output = &mut connections[number].output;
    let start = output.len();
    output.extend_from_slice(text.as_bytes());
    start..output.len()
}

#[test]
fn replies_to_writes_become_errors_if_the_commit_fails() {
    let mut connections = connections(2);
    let (mut writes, writers) = (RoundWrites::default(), AtomicUsize::new(0));
    for (number, text, is_write) in [
        (0, "+OK\r\n", true),
        (1, ":1\r\n", true),
        (0, "$1\r\na\r\n", false),
        (0, "+OK\r\n", true),
        (0, ":7\r\n", false),
    ] {
        let bytes = reply(&mut connections, number, text);
        if is_write {
            writes.begin(&writers);
            writes.add(number, bytes);
        }
    }
    writes.commit(&mut connections, &Echo { fails: true }, &writers);
    let outputs = [0, 1].map(|number| connections[number].output.escape_ascii().to_string());
    assert_eq!(outputs[0], r"-ERR no commit\r\n$1\r\na\r\n-ERR no commit\r\n:7\r\n");
    assert_eq!(outputs[1], r"-ERR no commit\r\n");
    assert_eq!(writers.into_inner(), 0);
}

#[test]
fn a_round_of_reads_commits_only_beside_writers() {
    let mut connections = connections(1);
    let (mut writes, writers) = (RoundWrites::default(), AtomicUsize::new(0));
    let store = Echo { fails: false };
    reply(&mut connections, 0, ":1\r\n");
    writes.commit(&mut connections, &store, &writers);
    assert_eq!(connections[0].output, b":1\r\n");
    let mut others = RoundWrites::default();
    others.begin(&writers);
    others.begin(&writers);
    // It fails, but there is no reply to a write.
    writes.commit(&mut connections, &Echo { fails: true }, &writers);
    assert_eq!(connections[0].output, b":1\r\n");
    others.commit(&mut connections, &store, &writers);
    assert_eq!(writers.into_inner(), 0);
}
