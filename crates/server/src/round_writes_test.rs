//! Rounds whose commits fail, and those that are held.

use std::ops::Range;

use super::RoundWrites;
use crate::connections::Connections;
use crate::get_batch::tests::connections;
use crate::mail::Outbox;

/// Appends a reply to a connection; returns where it is.
fn reply(connections: &mut Connections, number: usize, text: &str) -> Range<u64> {
    let start = connections[number].output_end();
    connections[number].output.extend_from_slice(text.as_bytes());
    start..connections[number].output_end()
}

/// Adds replies, those to writes as such; the session of a connection has its number.
fn execute(writes: &mut RoundWrites, connections: &mut Connections, replies: &[(usize, &str, bool)]) {
    for &(number, text, is_write) in replies {
        let bytes = reply(connections, number, text);
        if is_write {
            writes.add(number, number as u64, bytes);
        }
    }
}

fn text(connections: &Connections, number: usize) -> String {
    connections[number].output.escape_ascii().to_string()
}

#[test]
fn replies_to_writes_become_errors_if_the_commit_fails() {
    let mut connections = connections(2);
    let mut writes = RoundWrites::default();
    let replies = [
        (0, "+OK\r\n", true),
        (1, ":1\r\n", true),
        (0, "$1\r\na\r\n", false),
        (0, "+OK\r\n", true),
        (0, ":7\r\n", false),
    ];
    execute(&mut writes, &mut connections, &replies);
    writes.end(&mut connections, &Err("no commit".into()));
    assert_eq!(text(&connections, 0), r"-ERR no commit\r\n$1\r\na\r\n-ERR no commit\r\n:7\r\n");
    assert_eq!(text(&connections, 1), r"-ERR no commit\r\n");
}

#[test]
fn held_replies_are_sent_in_order_and_after_their_commits() {
    let mut connections = connections(2);
    let (mut writes, mut outbox) = (RoundWrites::default(), Outbox::default());
    execute(&mut writes, &mut connections, &[(0, "+OK\r\n", true), (1, ":1\r\n", true)]);
    writes.hold(7, &mut connections, &[0, 1], &mut outbox, 2);
    execute(&mut writes, &mut connections, &[(0, "+second\r\n", true), (1, "+read\r\n", false)]);
    writes.hold(8, &mut connections, &[0, 1], &mut outbox, 1);
    execute(&mut writes, &mut connections, &[(0, "+third\r\n", true)]);
    writes.hold(8, &mut connections, &[0], &mut outbox, 1);
    let sendable = |connections: &Connections| [0, 1].map(|number| connections[number].sendable_bytes());
    assert_eq!(sendable(&connections), [0, 0]);
    assert!(writes.release(&mut connections, 6, &Ok(())).is_none());
    let (round, ends) = writes.release(&mut connections, 7, &Ok(())).unwrap();
    assert_eq!((round.metered, ends.len()), (2, 2));
    assert!(writes.release(&mut connections, 7, &Ok(())).is_none());
    assert_eq!(sendable(&connections), ["+OK\r\n".len(), ":1\r\n".len()]);
    let (round, ends) = writes.release(&mut connections, 8, &Ok(())).unwrap();
    assert_eq!((round.metered, ends.len()), (2, 3));
    assert_eq!(sendable(&connections), ["+OK\r\n+second\r\n+third\r\n".len(), ":1\r\n+read\r\n".len()]);
    assert!(!writes.are_held());
}

#[test]
fn errors_move_what_later_rounds_hold() {
    let mut connections = connections(1);
    let (mut writes, mut outbox) = (RoundWrites::default(), Outbox::default());
    execute(&mut writes, &mut connections, &[(0, "+OK\r\n", true), (0, "+read\r\n", false)]);
    writes.hold(1, &mut connections, &[0], &mut outbox, 1);
    execute(&mut writes, &mut connections, &[(0, "+OK\r\n", true)]);
    writes.hold(2, &mut connections, &[0], &mut outbox, 1);
    execute(&mut writes, &mut connections, &[(0, "+OK\r\n", true)]);
    writes.release(&mut connections, 1, &Err("full".into())).unwrap();
    assert_eq!(connections[0].sendable_bytes(), "-ERR full\r\n+read\r\n".len());
    writes.hold(3, &mut connections, &[0], &mut outbox, 1);
    writes.release(&mut connections, 2, &Ok(())).unwrap();
    assert_eq!(connections[0].sendable_bytes(), "-ERR full\r\n+read\r\n+OK\r\n".len());
    writes.release(&mut connections, 3, &Err("full".into())).unwrap();
    assert_eq!(text(&connections, 0), r"-ERR full\r\n+read\r\n+OK\r\n-ERR full\r\n");
    assert_eq!(connections[0].sendable_bytes(), connections[0].output.len());
}

#[test]
fn a_connection_that_took_the_place_of_another_is_left_alone() {
    let mut connections = connections(2);
    let (mut writes, mut outbox) = (RoundWrites::default(), Outbox::default());
    execute(&mut writes, &mut connections, &[(0, "+OK\r\n", true)]);
    writes.hold(1, &mut connections, &[0], &mut outbox, 1);
    let other = connections.remove(1).unwrap();
    connections.remove(0);
    assert_eq!(connections.insert(other), 0);
    let (_, ends) = writes.release(&mut connections, 1, &Err("full".into())).unwrap();
    assert!(ends.is_empty());
}
