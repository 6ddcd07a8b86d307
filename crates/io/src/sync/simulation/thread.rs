//! Threads: those of `std`, which are tasks where the thread that starts them is one.

use std::io;
use std::sync::Arc;
pub use std::thread::{Result, Thread, ThreadId, available_parallelism, current, panicking};
use std::time::Duration;

pub use super::scope::{Scope, ScopedJoinHandle, scope};

use super::execution::as_task;
use super::state::{TaskId, Wait};
use super::task::{self, Current, give_way, is_task, with_current, yield_point};

/// See [`std::thread::yield_now`]. Another task runs next, if one can.
pub fn yield_now() {
    if !give_way() {
        std::thread::yield_now();
    }
}

/// See [`std::thread::sleep`]. The time is that of the execution.
#[track_caller]
pub fn sleep(duration: Duration) {
    if is_task() {
        task::wait(Wait::Time, Some(duration));
    } else {
        std::thread::sleep(duration);
    }
}

/// See [`std::thread::Builder`].
#[derive(Debug, Default)]
pub struct Builder {
    name: Option<String>,
    stack_bytes: Option<usize>,
}

/// See [`std::thread::JoinHandle`].
#[derive(Debug)]
pub struct JoinHandle<T> {
    task: Option<TaskId>,
    inner: std::thread::JoinHandle<T>,
}

impl Builder {
    /// See [`std::thread::Builder::new`].
    pub fn new() -> Self {
        Self::default()
    }

    /// See [`std::thread::Builder::name`].
    #[must_use]
    pub fn name(mut self, name: String) -> Self {
        self.name = Some(name);
        self
    }

    /// See [`std::thread::Builder::stack_size`].
    #[must_use]
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.stack_bytes = Some(bytes);
        self
    }

    /// See [`std::thread::Builder::spawn`].
    ///
    /// # Errors
    /// When the system has no thread to spare.
    pub fn spawn<T: Send + 'static>(
        self,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<JoinHandle<T>> {
        let (task, inner) = match new_task(self.name.as_deref()) {
            None => (None, self.inner().spawn(body)?),
            Some(task) => (Some(task.id), self.inner().spawn(move || as_task(task, body))?),
        };
        yield_point();
        Ok(JoinHandle { task, inner })
    }

    fn inner(&self) -> std::thread::Builder {
        let mut builder = std::thread::Builder::new();
        if let Some(name) = &self.name {
            builder = builder.name(name.clone());
        }
        match self.stack_bytes {
            Some(bytes) => builder.stack_size(bytes),
            None => builder,
        }
    }
}

/// A task for a thread that the calling one starts, if that is a task.
pub(super) fn new_task(name: Option<&str>) -> Option<Current> {
    with_current(|current| {
        let id = current.execution.add(name.unwrap_or("unnamed").to_owned());
        Current::new(Arc::clone(&current.execution), id)
    })
}

/// See [`std::thread::spawn`].
///
/// # Panics
/// When the system has no thread to spare.
pub fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Builder::new().spawn(body).expect("the system has a thread to spare")
}

/// Waits for the end of a task, where the calling thread is one too.
#[track_caller]
pub(super) fn wait_for_end(task: Option<TaskId>) {
    let Some(task) = task else { return };
    yield_point();
    while with_current(|current| !current.execution.state().has_ended(task)).unwrap_or(false) {
        task::wait(Wait::End { task }, None);
    }
}

impl<T> JoinHandle<T> {
    /// See [`std::thread::JoinHandle::join`].
    ///
    /// # Errors
    /// What the thread panicked with.
    #[track_caller]
    pub fn join(self) -> Result<T> {
        wait_for_end(self.task);
        self.inner.join()
    }

    /// See [`std::thread::JoinHandle::thread`].
    pub fn thread(&self) -> &Thread {
        self.inner.thread()
    }

    /// See [`std::thread::JoinHandle::is_finished`].
    pub fn is_finished(&self) -> bool {
        yield_point();
        match self.task {
            None => self.inner.is_finished(),
            Some(task) => with_current(|current| current.execution.state().has_ended(task)).unwrap_or(false),
        }
    }
}
