//! [`History`]: the operations of one session's clients on each key, and their times.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The value of a key: a number that is unique to a write, or the sum of a counter.
pub(super) type State = Option<i64>;

/// The effect of an operation on a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Read,
    Set(State),
    Add(i64),
    Swap { expected: State, new: State },
}

/// The answer to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// None: the operation may have happened or not.
    Unknown,
    /// The operation happened.
    Done,
    /// The value before the operation.
    Saw(State),
    /// The key did not have this value.
    Missed(State),
    /// Whether the key had a value.
    Present(bool),
    /// The value after the operation.
    Sum(i64),
    Swapped(bool),
    /// The operation did not happen. Such operations are not recorded.
    Refused,
}

/// An operation on one key. An operation on several keys is recorded as one per key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub call: u64,
    /// [`NEVER`] if a crash or a failure came before the end.
    pub ret: u64,
    pub effect: Effect,
    pub answer: Answer,
    /// Whether the answer promises that the effect, and everything that it depends on, survives a crash, or the death
    /// of the process if only that is promised.
    pub durable: bool,
    pub client: usize,
    pub what: &'static str,
}

/// The end of an operation that did not end.
pub(super) const NEVER: u64 = u64::MAX;

#[derive(Debug)]
pub(super) struct History {
    ticks: AtomicU64,
    /// By key.
    keys: Vec<Mutex<Vec<Operation>>>,
    /// The beginning of each operation that made everything before it durable.
    persisted: Mutex<Vec<(u64, &'static str)>>,
}

impl History {
    pub fn new(keys: usize) -> Self {
        let keys = (0..keys).map(|_| Mutex::default()).collect();
        Self { ticks: AtomicU64::new(0), keys, persisted: Mutex::default() }
    }

    /// A moment after all previous ones.
    pub fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::Relaxed)
    }

    pub fn record(&self, key: usize, operation: Operation) {
        self.keys[key].lock().unwrap_or_else(PoisonError::into_inner).push(operation);
    }

    /// Records that the value of this number may expire: it may disappear at any moment from now on, or stay, but it
    /// disappears only once. Neither it nor what it hides reappears.
    pub fn may_expire(&self, key: usize, number: i64, client: usize) {
        let effect = Effect::Swap { expected: Some(number), new: None };
        let (call, ret, answer) = (self.tick(), NEVER, Answer::Unknown);
        self.record(key, Operation { call, ret, effect, answer, durable: false, client, what: "expiry" });
    }

    /// Records that everything that had returned by `call` is durable.
    pub fn persisted(&self, call: u64, what: &'static str) {
        self.persisted.lock().unwrap_or_else(PoisonError::into_inner).push((call, what));
    }

    /// The operations on a key.
    pub fn of(&self, key: usize) -> Vec<Operation> {
        self.keys[key].lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The beginning and the name of the last operation that made everything before it durable.
    pub fn last_persisted(&self) -> Option<(u64, &'static str)> {
        self.persisted.lock().unwrap_or_else(PoisonError::into_inner).iter().max().copied()
    }
}
