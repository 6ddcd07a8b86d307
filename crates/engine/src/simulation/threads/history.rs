//! [`History`]: what the clients of one session did to each key, and when.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// What is under a key: a number that no two writes share, or the sum of a counter.
pub(super) type State = Option<i64>;

/// What an operation does to a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Read,
    Set(State),
    Add(i64),
    Swap { expected: State, new: State },
}

/// What its caller was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// Nothing: it may have happened or not.
    Unknown,
    /// That it happened.
    Done,
    /// What was there before.
    Saw(State),
    /// That this was not there.
    Missed(State),
    /// Whether something was there.
    Present(bool),
    /// What is there now.
    Sum(i64),
    Swapped(bool),
    /// That it did not happen; such operations are not recorded.
    Refused,
}

/// An operation on one key. Those on several keys are one for each.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operation {
    pub call: u64,
    /// [`NEVER`] where a crash or a failure came before.
    pub ret: u64,
    pub effect: Effect,
    pub answer: Answer,
    /// Whether the answer promises that the effect, and what it follows from, survives a crash.
    pub durable: bool,
    pub client: usize,
    pub what: &'static str,
}

/// The end of what did not end.
pub(super) const NEVER: u64 = u64::MAX;

#[derive(Debug)]
pub(super) struct History {
    ticks: AtomicU64,
    /// By key.
    keys: Vec<Mutex<Vec<Operation>>>,
    /// Begin of each operation that made everything before it durable.
    persisted: Mutex<Vec<(u64, &'static str)>>,
}

impl History {
    pub fn new(keys: usize) -> Self {
        let keys = (0..keys).map(|_| Mutex::default()).collect();
        Self { ticks: AtomicU64::new(0), keys, persisted: Mutex::default() }
    }

    /// A moment after all before.
    pub fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::Relaxed)
    }

    pub fn record(&self, key: usize, operation: Operation) {
        self.keys[key].lock().unwrap_or_else(PoisonError::into_inner).push(operation);
    }

    /// Notes that the value of this number may expire: it may go at any moment from now on, or stay, but it goes once.
    /// Neither it nor what it hides comes back.
    pub fn may_expire(&self, key: usize, number: i64, client: usize) {
        let effect = Effect::Swap { expected: Some(number), new: None };
        let (call, ret, answer) = (self.tick(), NEVER, Answer::Unknown);
        self.record(key, Operation { call, ret, effect, answer, durable: false, client, what: "expiry" });
    }

    /// Notes that everything that had returned by `call` is durable.
    pub fn persisted(&self, call: u64, what: &'static str) {
        self.persisted.lock().unwrap_or_else(PoisonError::into_inner).push((call, what));
    }

    /// The operations on a key.
    pub fn of(&self, key: usize) -> Vec<Operation> {
        self.keys[key].lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// When the last operation began that made everything before it durable, and what it was.
    pub fn last_persisted(&self) -> Option<(u64, &'static str)> {
        self.persisted.lock().unwrap_or_else(PoisonError::into_inner).iter().max().copied()
    }
}
