//! Operations on whole keyspaces beside the writers, and their effect on a key.
//!
//! One thread performs them, so those of a keyspace have an order, and each single operation on a key happens between
//! two of them. The number of earlier ones is called its *life*. Two numbers bound it: how many had ended when the
//! operation started, and how many had started when it ended.

use std::sync::RwLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::journal::WholeKind;
use super::key::{Key, Outcome, Seen, Times};

/// An operation on a whole keyspace.
#[derive(Clone, Copy, Debug)]
pub struct WholeOp {
    pub op: u64,
    pub start: u64,
    pub ack: u64,
    pub space: u8,
    pub kind: WholeKind,
}

impl WholeOp {
    /// Whether it changes `key`.
    pub fn affects(&self, key: Key, writers: u8) -> bool {
        match self.kind {
            _ if key.space != self.space => false,
            WholeKind::Clear | WholeKind::Drop => true,
            WholeKind::DeletePrefix(prefix) => key.prefix(writers) == prefix,
            WholeKind::Ingest { divisor, remainder } => key.number % divisor == remainder,
        }
    }

    /// The content that it gives the keys that it changes. Its values have the number of an additional writer after all
    /// others.
    fn leaves(&self, writers: u8) -> Outcome {
        match self.kind {
            WholeKind::Ingest { .. } => Outcome::value(writers, self.op),
            _ => Outcome::Absent,
        }
    }

    /// Whether part of it may remain after a crash.
    pub fn is_parted(&self) -> bool {
        matches!(self.kind, WholeKind::Ingest { .. })
    }
}

/// The content of a key: what its owner stored, and in which lives that may have happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lived {
    pub outcome: Outcome,
    pub low: u32,
    pub high: u32,
}

/// What `outcome`, stored in life `born`, has become by life `life` of operations `ops`.
fn state<'a>(
    ops: impl DoubleEndedIterator<Item = &'a WholeOp>,
    key: Key,
    outcome: &Outcome,
    writers: u8,
) -> Outcome {
    let last = ops.rev().find(|op| op.affects(key, writers));
    last.map_or_else(|| outcome.clone(), |op| op.leaves(writers))
}

/// The lives between `low` and `high` in which a read of `key` may have seen `seen` if `lived` was stored before, each
/// with the content at that time. `ops` are the operations on the keyspace. Empty if `seen` is wrong.
pub fn explain(
    ops: &[WholeOp],
    (key, writers): (Key, u8),
    lived: &Lived,
    seen: &Seen,
    (low, high): (u32, u32),
    times: Times,
) -> Vec<(u32, Outcome)> {
    let mut found = Vec::new();
    let last = high.min(ops.len() as u32);
    for life in low..=last {
        for born in lived.low..=lived.high.min(life) {
            let ops = ops[born as usize..life as usize].iter();
            let outcome = state(ops, key, &lived.outcome, writers);
            if outcome.allows(seen, times) {
                found.push((life, outcome));
                break;
            }
        }
    }
    found
}

/// The operations on one keyspace in a session.
#[derive(Debug, Default)]
pub struct Lives {
    started: AtomicU32,
    ended: AtomicU32,
    ops: RwLock<Vec<WholeOp>>,
}

impl Lives {
    /// How many have ended: an operation that starts now has this life or a later one.
    pub fn ended(&self) -> u32 {
        self.ended.load(Ordering::SeqCst)
    }

    /// How many have started: an operation that has ended has this life or an earlier one.
    pub fn started(&self) -> u32 {
        self.started.load(Ordering::SeqCst)
    }

    pub fn begin(&self, op: WholeOp) {
        self.ops.write().unwrap_or_else(|poisoned| poisoned.into_inner()).push(op);
        self.started.fetch_add(1, Ordering::SeqCst);
    }

    pub fn end(&self) {
        self.ended.fetch_add(1, Ordering::SeqCst);
    }

    /// Calls `body` with those that have started.
    pub fn with<R>(&self, body: impl FnOnce(&[WholeOp]) -> R) -> R {
        body(&self.ops.read().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::MIXED;
    use super::*;

    const KEY: Key = Key { space: MIXED, number: 5 };
    const TIMES: Times = Times { earliest: 0, latest: 0 };

    fn lives_of(kinds: &[WholeKind], lived: (u32, u32), seen: &Seen, range: (u32, u32)) -> Vec<u32> {
        let of = |(number, &kind): (usize, &WholeKind)| WholeOp {
            op: number as u64 + 1,
            start: 0,
            ack: 0,
            space: MIXED,
            kind,
        };
        let ops: Vec<_> = kinds.iter().enumerate().map(of).collect();
        let lived = Lived { outcome: Outcome::value(1, 9), low: lived.0, high: lived.1 };
        explain(&ops, (KEY, 2), &lived, seen, range, TIMES).into_iter().map(|(life, _)| life).collect()
    }

    #[test]
    fn a_clear_after_a_write_hides_it_and_one_beside_it_may() {
        let (own, none) = (Seen::Value { writer: 1, op: 9 }, Vec::<u32>::new());
        let clear = [WholeKind::Clear];
        assert_eq!(lives_of(&clear, (0, 0), &own, (1, 1)), none.clone());
        assert_eq!(lives_of(&clear, (0, 0), &Seen::Absent, (1, 1)), [1]);
        assert_eq!(lives_of(&clear, (0, 1), &own, (1, 1)), [1]);
        assert_eq!(lives_of(&clear, (0, 1), &Seen::Absent, (1, 1)), [1]);
        assert_eq!(lives_of(&clear, (1, 1), &Seen::Absent, (1, 1)), none.clone());
        assert_eq!(lives_of(&clear, (0, 0), &own, (0, 1)), [0]);
    }

    #[test]
    fn an_ingest_replaces_what_was_before_it() {
        let ingest = |remainder| [WholeKind::Ingest { divisor: 2, remainder }];
        let (own, ingested) = (Seen::Value { writer: 1, op: 9 }, Seen::Value { writer: 2, op: 1 });
        let none = Vec::<u32>::new();
        assert_eq!(lives_of(&ingest(1), (0, 0), &own, (1, 1)), none.clone());
        assert_eq!(lives_of(&ingest(1), (0, 0), &ingested, (0, 1)), [1]);
        assert_eq!(lives_of(&ingest(0), (0, 0), &own, (1, 1)), [1]);
    }
}
