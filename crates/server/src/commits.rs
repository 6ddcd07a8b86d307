//! [`Commits`]: the writes of all workers become durable together, while the workers continue.
//!
//! A commit makes everything durable that was written before it began. Commits are numbered and come one after the
//! other, so the number of the next one is a ticket: a round that has written, or may have read what others wrote,
//! waits for it. All rounds that end while a commit is under way share the next.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::inbox::Inbox;
use crate::store::Store;

#[cfg(test)]
#[path = "commits_test.rs"]
mod tests;

/// Number of the commit after which replies may be sent.
pub(crate) type Ticket = u64;

/// What became of a commit; of a failed one, the text for clients.
pub(crate) type Outcome = Result<(), Arc<str>>;

/// What a worker must do before it sends the replies of a round.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    /// Nothing: all that the round can have seen is durable.
    Durable,
    /// Commit, by [`Commits::lead`].
    Leads,
    /// Wait until its inbox says that this commit has ended.
    Waits(Ticket),
}

/// The commits of a server.
#[derive(Default)]
pub(crate) struct Commits {
    state: Mutex<State>,
    /// Signalled when the committing thread has something to do.
    wanted: Condvar,
    /// Rounds whose writes have begun and that have not joined a commit. Grows before the first write of a round;
    /// shrinks under the lock of `state`.
    open: AtomicUsize,
    /// Rounds with writes that are not known to be durable, the open ones included. Grows before the first write.
    unsettled: AtomicUsize,
}

#[derive(Default)]
struct State {
    /// Number of the last commit that has begun.
    begun: Ticket,
    is_running: bool,
    /// The last commit that somebody waits for.
    requested: Ticket,
    /// The commit that makes the last writes of rounds that are not open durable.
    written: Ticket,
    /// Rounds with writes that wait for the next commit, and for the one under way.
    rounds_next: usize,
    rounds_now: usize,
    waiting: Vec<(Ticket, Arc<Inbox>)>,
    is_stopped: bool,
}

impl Commits {
    /// Must be called before the first write of a round.
    pub(crate) fn begin(&self) {
        self.open.fetch_add(1, Ordering::AcqRel);
        self.unsettled.fetch_add(1, Ordering::AcqRel);
    }

    /// Ends a round. Its replies must not be sent before the commit that makes its writes durable, and those of others
    /// that its reads may have seen: otherwise a client could be told what a crash takes away. `has_begun` says whether
    /// [`Commits::begin`] was called for the round, and `may_lead` whether the worker can wait for a commit.
    pub(crate) fn join(&self, has_begun: bool, may_lead: bool, inbox: &Arc<Inbox>) -> Joined {
        // What the round has seen was written after this number grew.
        if !has_begun && self.unsettled.load(Ordering::Acquire) == 0 {
            return Joined::Durable;
        }
        let mut state = self.state();
        let next = state.begun + 1;
        let ticket = if has_begun {
            self.open.fetch_sub(1, Ordering::AcqRel);
            state.rounds_next += 1;
            state.written = next;
            next
        } else if self.open.load(Ordering::Acquire) > 0 {
            next
        } else {
            // Nothing was written since that commit began.
            state.written
        };
        let ended = if state.is_running { state.begun - 1 } else { state.begun };
        if ticket <= ended {
            return Joined::Durable;
        }
        if ticket == next && may_lead && !state.is_running {
            state.begin_commit();
            return Joined::Leads;
        }
        if !state.waiting.iter().any(|(other, of)| *other == ticket && Arc::ptr_eq(of, inbox)) {
            state.waiting.push((ticket, Arc::clone(inbox)));
        }
        state.requested = state.requested.max(ticket);
        self.wake_if_due(&state);
        Joined::Waits(ticket)
    }

    /// Commits on behalf of all who wait for the commit that has begun.
    pub(crate) fn lead(&self, store: &dyn Store) -> Outcome {
        let outcome = store.commit().map_err(|error| Arc::from(error.to_string()));
        let mut state = self.state();
        let ended = state.begun;
        state.is_running = false;
        self.unsettled.fetch_sub(std::mem::take(&mut state.rounds_now), Ordering::AcqRel);
        let waiting = std::mem::take(&mut state.waiting).into_iter();
        let (served, others): (Vec<_>, Vec<_>) = waiting.partition(|(ticket, _)| *ticket <= ended);
        state.waiting = others;
        // Under the lock, so that a worker learns of commits in their order.
        served.iter().for_each(|(_, inbox)| inbox.end_commit(ended, outcome.clone()));
        self.wake_if_due(&state);
        drop(state);
        served.iter().for_each(|(_, inbox)| inbox.wake());
        outcome
    }

    /// Performs a write that belongs to no round, and its commit.
    pub(crate) fn write<R>(&self, write: impl FnOnce() -> R) -> R {
        self.begin();
        let outcome = write();
        let _state = self.state();
        self.open.fetch_sub(1, Ordering::AcqRel);
        self.unsettled.fetch_sub(1, Ordering::AcqRel);
        outcome
    }

    /// Ends a round over a store whose commits do not wait.
    pub(crate) fn commit_at_once(&self, has_begun: bool, store: &dyn Store) -> Option<Outcome> {
        if !has_begun && self.unsettled.load(Ordering::Acquire) == 0 {
            return None;
        }
        let outcome = store.commit().map_err(|error| Arc::from(error.to_string()));
        if has_begun {
            self.open.fetch_sub(1, Ordering::AcqRel);
            self.unsettled.fetch_sub(1, Ordering::AcqRel);
        }
        Some(outcome)
    }

    /// Commits for workers that wait, until it is stopped and none waits any more.
    pub(crate) fn run(&self, store: &dyn Store) {
        loop {
            let mut state = self.state();
            while !state.is_due() {
                if state.is_stopped {
                    return;
                }
                state = self.wanted.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.begin_commit();
            drop(state);
            let _ = self.lead(store);
        }
    }

    /// Ends [`Commits::run`].
    pub(crate) fn stop(&self) {
        self.state().is_stopped = true;
        self.wanted.notify_all();
    }

    fn wake_if_due(&self, state: &State) {
        if state.is_due() {
            self.wanted.notify_one();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether a commit should begin.
    fn is_due(&self) -> bool {
        !self.is_running && self.requested > self.begun
    }

    fn begin_commit(&mut self) {
        self.begun += 1;
        self.is_running = true;
        self.rounds_now = std::mem::take(&mut self.rounds_next);
    }
}
