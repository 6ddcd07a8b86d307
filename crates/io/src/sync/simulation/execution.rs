//! [`run`]: one execution from beginning to end.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::processor::Processor;
use super::state::{State, TaskId};
use super::task::Current;

/// How to execute.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The seed of all decisions.
    pub seed: u64,
    /// Maximum number of steps; an execution that takes more counts as endless.
    pub steps_max: u64,
}

/// The outcome of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome<T> {
    /// What the function returned.
    pub result: T,
    /// Steps taken.
    pub steps: u64,
    /// The time of the execution's clock at its end.
    pub time: Duration,
    /// A hash of all decisions: the same for the same seed.
    pub trace: u64,
}

/// Why an execution did not end, or failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// A deadlock, too many steps, or a panic of a task.
    pub reason: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.reason)
    }
}

impl std::error::Error for Failure {}

/// What the tasks of an execution share.
#[derive(Debug)]
pub(super) struct Execution {
    state: Mutex<State>,
    /// Takes the reason why the execution failed, or nothing when the last task has ended.
    ended: Mutex<Sender<Option<String>>>,
}

/// Calls `body`, and schedules it and all threads that it starts according to the seed. Returns when all have ended.
///
/// # Errors
/// When tasks deadlock or take too many steps; then their threads stay parked until the process ends, and what they
/// hold stays held. When a task panics; the others run to their end first.
pub fn run<T: Send + 'static>(
    options: Options,
    body: impl FnOnce() -> T + Send + 'static,
) -> Result<Outcome<T>, Failure> {
    let (ended, outcome) = channel();
    let state = Mutex::new(State::new(options.seed, options.steps_max));
    let execution = Arc::new(Execution { state, ended: Mutex::new(ended) });
    let root = execution.add("root".to_owned());
    let first = execution.state().baton(root);
    let task = Current::new(Arc::clone(&execution), root);
    let processor = Processor::with_fewest();
    let keep = processor.keeper();
    let thread = thread::Builder::new().name("root".to_owned()).spawn(move || {
        keep();
        as_task(task, body)
    });
    let thread = thread.map_err(|error| Failure { reason: format!("no thread to run in: {error}") })?;
    first.give();
    if let Ok(Some(reason)) | Err(reason) = outcome.recv().map_err(|error| error.to_string()) {
        return Err(Failure { reason });
    }
    let result = thread.join();
    let state = execution.state();
    if let Some(reason) = state.panics.first() {
        return Err(Failure { reason: reason.clone() });
    }
    let result = result.map_err(|_| Failure { reason: "the root panicked".to_owned() })?;
    Ok(Outcome { result, steps: state.steps, time: state.now, trace: state.trace })
}

/// Runs `body` as this task in the calling thread.
pub(super) fn as_task<T>(task: Current, body: impl FnOnce() -> T) -> T {
    let (execution, id) = (Arc::clone(&task.execution), task.id);
    task.enter();
    let result = catch_unwind(AssertUnwindSafe(body));
    if let Err(panic) = &result {
        let mut state = execution.state();
        let reason = format!("task {id} ({}) panicked: {}", state.name(id), message(&**panic));
        state.panics.push(reason);
    }
    drop(execution);
    Current::leave();
    result.unwrap_or_else(|panic| resume_unwind(panic))
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

impl Execution {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new task, which runs once it is given its baton.
    pub fn add(&self, name: String) -> TaskId {
        self.state().add(name, Arc::default())
    }

    pub fn fail(&self, reason: String) {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        // The receiver is gone when another task failed first.
        let _ = ended.send(Some(reason));
    }

    /// Notes the end of a task and lets another one run, or ends the execution with the last.
    pub fn end(&self, task: TaskId) {
        let mut state = self.state();
        state.end(task);
        if state.all_ended() {
            let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = ended.send(None);
            return;
        }
        match state.choose(task, false) {
            Ok(next) => {
                let next = state.baton(next);
                drop(state);
                next.give();
            }
            Err(reason) => {
                drop(state);
                self.fail(reason);
            }
        }
    }
}
