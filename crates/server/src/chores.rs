//! [`Chores`]: work for clients that takes long, beside the workers.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::answer::{Asker, Finding};
use crate::store::StoreError;

/// Work that takes long: most of it reads or copies all that is stored.
#[derive(Debug)]
pub(crate) enum Chore {
    /// A backup into the directory of saves. It has begun in [`crate::saves::Saves`].
    Save,
    /// Reading and checking everything.
    Verify,
    /// A backup into this directory.
    BackUp(PathBuf),
    /// Something with built versions.
    Version(VersionChange),
}

/// What is done with built versions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum VersionChange {
    /// They are listed.
    List,
    /// That of this number is served, or the youngest complete one.
    Swap(Option<u64>),
    /// The one before is served again.
    RollBack,
}

/// One after the other is done. A connection waits for at most one, and at most one save is in progress, so the list is
/// no longer than that of connections and one.
#[derive(Default)]
pub(crate) struct Chores {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// The clients that wait for the outcome, if any do.
    chores: VecDeque<(Chore, Option<Asker>)>,
    is_stopped: bool,
}

impl Chores {
    pub(crate) fn add(&self, chore: Chore, asker: Option<Asker>) {
        self.queue().chores.push_back((chore, asker));
        self.changed.notify_one();
    }

    /// Ends [`Chores::run`] after the chore in progress. Those that wait are not begun.
    pub(crate) fn stop(&self) {
        self.queue().is_stopped = true;
        self.changed.notify_all();
    }

    /// Lets `execute` do chores until this is stopped.
    pub(crate) fn run(&self, execute: impl Fn(Chore) -> Result<Finding, StoreError>) {
        while let Some((chore, asker)) = self.next() {
            let outcome = execute(chore).map_err(|error| format!("ERR {error}"));
            if let Some(asker) = asker {
                asker.answer(outcome);
            }
        }
    }

    fn next(&self) -> Option<(Chore, Option<Asker>)> {
        let mut queue = self.queue();
        while queue.chores.is_empty() && !queue.is_stopped {
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if queue.is_stopped { None } else { queue.chores.pop_front() }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
