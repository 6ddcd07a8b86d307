//! The task of the calling thread, and its steps.

use std::cell::RefCell;
use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use super::execution::Execution;
use super::state::{State, TaskId, Wait};

/// The right to run, of which an execution has one.
#[derive(Debug, Default)]
pub(super) struct Baton {
    is_here: AtomicBool,
    thread: std::sync::OnceLock<Thread>,
}

impl Baton {
    pub fn give(&self) {
        self.is_here.store(true, Ordering::Release);
        // A thread that has not reached `wait_for` yet finds the baton there.
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn wait_for(&self) {
        while !self.is_here.swap(false, Ordering::Acquire) {
            thread::park();
        }
    }
}

/// A task as its own thread knows it.
#[derive(Debug, Clone)]
pub(super) struct Current {
    pub execution: Arc<Execution>,
    pub id: TaskId,
    baton: Arc<Baton>,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// Calls `body` with the task of the calling thread, if it is one.
pub(super) fn with_current<R>(body: impl FnOnce(&Current) -> R) -> Option<R> {
    CURRENT.try_with(|current| current.borrow().as_ref().map(body)).ok().flatten()
}

/// Whether the calling thread is a task of an execution.
pub fn is_task() -> bool {
    with_current(|_| ()).is_some()
}

/// The time of the execution's clock; zero in threads that are not its tasks.
pub fn now() -> Duration {
    with_current(|current| current.execution.state().now).unwrap_or_default()
}

/// Number of steps that the execution has taken; 0 in threads that are not its tasks.
pub fn step() -> u64 {
    with_current(|current| current.execution.state().steps).unwrap_or_default()
}

/// A number that follows from the seed of the execution; 0 in threads that are not its tasks.
pub fn random() -> u64 {
    with_current(|current| current.execution.state().next_random()).unwrap_or_default()
}

/// Lets another task run, if the scheduler says so. Does nothing in threads that are not tasks.
pub fn yield_point() {
    with_current(|current| current.go_on(|_| (), false));
}

/// Changes the state of the execution, and lets another task run if the scheduler says so.
pub(super) fn step_with(change: impl FnOnce(&mut State)) -> bool {
    with_current(|current| current.go_on(change, false)).is_some()
}

/// Lets another task run, if there is one. Returns `false` in threads that are not tasks.
pub(super) fn give_way() -> bool {
    with_current(|current| current.go_on(|_| (), true)).is_some()
}

/// Waits; returns whether the wait timed out. The calling thread is a task.
#[track_caller]
pub(super) fn wait(wait: Wait, time: Option<Duration>) -> bool {
    wait_after(|_| (), wait, time)
}

/// Waits like [`wait`], once the lock at this address, which the task just released, is known to be free.
#[track_caller]
pub(super) fn wait_released(lock: usize, wait: Wait, time: Option<Duration>) -> bool {
    wait_after(|state| state.release(lock), wait, time)
}

#[track_caller]
fn wait_after(change: impl FnOnce(&mut State), wait: Wait, time: Option<Duration>) -> bool {
    let at = Location::caller();
    with_current(|current| {
        let change = |state: &mut State| {
            change(state);
            let until = time.map(|time| state.now.saturating_add(time));
            state.wait(current.id, wait, until, at);
        };
        current.go_on(change, false);
        current.execution.state().timed_out(current.id)
    })
    .expect("a task waits")
}

impl Current {
    pub fn new(execution: Arc<Execution>, id: TaskId) -> Self {
        let baton = execution.state().baton(id);
        Self { execution, id, baton }
    }

    /// Makes the calling thread this task, once it may run.
    pub fn enter(self) {
        let baton = Arc::clone(&self.baton);
        baton.thread.set(thread::current()).expect("a task has one thread");
        CURRENT.with(|current| *current.borrow_mut() = Some(self));
        baton.wait_for();
    }

    /// Ends the task of the calling thread: from here on it runs beside the others and touches nothing of theirs.
    pub fn leave() {
        let current = CURRENT.with(|current| current.borrow_mut().take()).expect("the thread is a task");
        current.execution.end(current.id);
    }

    fn go_on(&self, change: impl FnOnce(&mut State), gives_way: bool) {
        let mut state = self.execution.state();
        change(&mut state);
        let next = match state.choose(self.id, gives_way) {
            Ok(next) if next == self.id => return,
            Ok(next) => state.baton(next),
            Err(reason) => {
                drop(state);
                self.execution.fail(reason);
                loop {
                    thread::park();
                }
            }
        };
        drop(state);
        next.give();
        self.baton.wait_for();
    }
}
