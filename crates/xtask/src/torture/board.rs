//! The present content of every key, for threads that read beside its writer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use super::clock::Watch;
use super::key::{Key, Outcome, Seen, Times, keys_of, spaces};
use super::ledger::Base;
use super::whole::{Lived, Lives, explain};

/// The state of a session that all of its threads share.
#[derive(Debug)]
pub struct Board {
    pub writers: u8,
    cells: Vec<Vec<Mutex<Cell>>>,
    /// Operations on each keyspace as a whole.
    pub lives: Vec<Lives>,
    stamp: AtomicU64,
    /// The last operation of each writer that has ended, followed by the last one on whole keyspaces.
    ended: Vec<AtomicU64>,
    pub operations: AtomicU64,
    pub is_over: AtomicBool,
    pub watch: Watch,
    /// The list to which entries are appended.
    pub list: AtomicU64,
}

/// The content of a key, as its writer knows it.
#[derive(Clone, Debug)]
pub struct Cell {
    pub lived: Lived,
    /// The last operation on it that has ended, and the last that has started.
    pub ended: u64,
    pub started: u64,
    /// The last operation that has started and after which the key may be absent.
    pub started_absent: u64,
}

/// Keys that are about to be read.
#[derive(Debug)]
pub struct Window {
    before: Vec<(Key, Cell, u32)>,
    earliest: u64,
}

/// A window after the reading, or at the moment of a snapshot.
#[derive(Clone, Debug)]
pub struct ClosedWindow {
    keys: Vec<ClosedKey>,
    times: Times,
}

#[derive(Clone, Debug)]
struct ClosedKey {
    key: Key,
    before: Cell,
    /// The last operations, single and on the whole keyspace, that had started.
    started: u64,
    started_absent: u64,
    lives: (u32, u32),
}

impl ClosedWindow {
    /// The same window for a reading that continues until this time, in milliseconds.
    pub fn until(&self, latest: u64) -> Self {
        Self { times: Times { latest, ..self.times }, keys: self.keys.clone() }
    }
}

impl Board {
    pub fn new(base: &Base, watch: Watch) -> Self {
        let writers = (base.next_op.len() - 1) as u8;
        let cell = |key| {
            let outcome = base.outcomes.get(&key).cloned().unwrap_or(Outcome::Absent);
            Mutex::new(Cell {
                lived: Lived { outcome, low: 0, high: 0 },
                ended: 0,
                started: 0,
                started_absent: 0,
            })
        };
        let cells = |space| (0..keys_of(space, writers)).map(|number| cell(Key { space, number })).collect();
        let last_list = base.shared.lists.keys().next_back().copied().unwrap_or(0);
        Self {
            writers,
            cells: (0..spaces(writers)).map(cells).collect(),
            lives: (0..spaces(writers)).map(|_| Lives::default()).collect(),
            stamp: AtomicU64::new(1),
            ended: base.next_op.iter().map(|next| AtomicU64::new(next - 1)).collect(),
            operations: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            watch,
            list: AtomicU64::new(u64::from(last_list)),
        }
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// A point in the order of all operations.
    pub fn stamp(&self) -> u64 {
        self.stamp.fetch_add(1, Ordering::SeqCst)
    }

    pub fn cell(&self, key: Key) -> MutexGuard<'_, Cell> {
        let cell = &self.cells[usize::from(key.space)][key.number as usize];
        cell.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn lives_of(&self, key: Key) -> &Lives {
        &self.lives[usize::from(key.space)]
    }

    /// Records that a writer's operation has ended.
    pub fn end(&self, writer: u8, op: u64) {
        self.ended[usize::from(writer)].store(op, Ordering::SeqCst);
        self.operations.fetch_add(1, Ordering::Relaxed);
    }

    /// The last operations that have ended, of each writer and on whole keyspaces.
    pub fn all_ended(&self) -> Vec<u64> {
        self.ended.iter().map(|ended| ended.load(Ordering::SeqCst)).collect()
    }

    /// Records the content of keys before they are read.
    pub fn open(&self, keys: impl IntoIterator<Item = Key>) -> Window {
        let earliest = self.watch.earliest();
        let before = keys.into_iter().map(|key| {
            let ended = self.lives_of(key).ended();
            (key, self.cell(key).clone(), ended)
        });
        Window { before: before.collect(), earliest }
    }

    /// Records what may have changed since.
    pub fn close(&self, window: Window) -> ClosedWindow {
        let keys = window.before.into_iter().map(|(key, before, ended)| {
            let (started, started_absent) = {
                let cell = self.cell(key);
                (cell.started, cell.started_absent)
            };
            let lives = (ended, self.lives_of(key).started());
            ClosedKey { key, before, started, started_absent, lives }
        });
        let keys = keys.collect();
        let earliest = window.earliest.min(self.watch.earliest());
        ClosedWindow { keys, times: Times { earliest, latest: self.watch.latest() } }
    }

    /// Whether `seen` is a possible content of the window's key with this number.
    pub fn check(&self, window: &ClosedWindow, number: usize, seen: &Seen) -> Result<(), String> {
        self.check_at(window, &window.keys[number], seen)
    }

    /// The keys of a window.
    pub fn keys<'a>(&self, window: &'a ClosedWindow) -> impl Iterator<Item = Key> + 'a {
        window.keys.iter().map(|one| one.key)
    }

    fn check_at(&self, window: &ClosedWindow, one: &ClosedKey, seen: &Seen) -> Result<(), String> {
        let ClosedKey { key, before, started, started_absent, lives } = one;
        let (key, started) = (*key, *started);
        let whole = self.lives_of(key);
        let found =
            whole.with(|ops| explain(ops, (key, self.writers), &before.lived, seen, *lives, window.times));
        if !found.is_empty() {
            return Ok(());
        }
        if before.ended < started {
            // Its writer was changing it: the result of any operation that it has started since is possible.
            let fits = match seen {
                Seen::Absent => *started_absent > before.ended || lives.1 > before.lived.low,
                Seen::Value { writer, op } if *writer == self.writers => whole.with(|ops| {
                    let later = ops.iter().skip(before.lived.low as usize);
                    later.take(lives.1 as usize).any(|whole| whole.op == *op)
                }),
                Seen::Value { op, .. } => (before.ended + 1..=started).contains(op),
                Seen::Raw(_) => true,
            };
            if fits {
                return Ok(());
            }
        }
        Err(format!(
            "{key}: found {seen:?}; expected {:?}, last operation {}, of those begun {started}, lives {lives:?}, times \
             {:?}, whole {}",
            before.lived,
            before.ended,
            window.times,
            whole.with(|ops| format!("{:?}", ops.iter().rev().take(4).collect::<Vec<_>>()))
        ))
    }
}
