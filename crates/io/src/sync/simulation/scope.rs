//! Threads that borrow from the one that starts them.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use super::execution::as_task;
use super::state::TaskId;
use super::task::{is_task, yield_point};
use super::thread::{Result, new_task, wait_for_end};

/// See [`std::thread::Scope`].
#[derive(Debug, Clone)]
pub struct Scope<'scope, 'env: 'scope> {
    inner: &'scope std::thread::Scope<'scope, 'env>,
    tasks: Arc<Mutex<Vec<TaskId>>>,
}

/// See [`std::thread::ScopedJoinHandle`].
#[derive(Debug)]
pub struct ScopedJoinHandle<'scope, T> {
    task: Option<TaskId>,
    inner: std::thread::ScopedJoinHandle<'scope, T>,
}

/// See [`std::thread::scope`].
#[track_caller]
pub fn scope<'env, T>(body: impl for<'scope> FnOnce(&Scope<'scope, 'env>) -> T) -> T {
    std::thread::scope(|inner| {
        let scope = Scope { inner, tasks: Arc::default() };
        if !is_task() {
            return body(&scope);
        }
        // `std` waits for the threads at the end, even after a panic: by then they must have ended as tasks, or this
        // one would wait for them while it holds the baton.
        let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
        loop {
            let task = scope.tasks.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(task) = task else { break };
            wait_for_end(Some(task));
        }
        result.unwrap_or_else(|panic| resume_unwind(panic))
    })
}

impl<'scope> Scope<'scope, '_> {
    /// See [`std::thread::Scope::spawn`].
    pub fn spawn<T: Send + 'scope>(
        &self,
        body: impl FnOnce() -> T + Send + 'scope,
    ) -> ScopedJoinHandle<'scope, T> {
        let Some(task) = new_task(Some("scoped")) else {
            return ScopedJoinHandle { task: None, inner: self.inner.spawn(body) };
        };
        let id = task.id;
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        let inner = self.inner.spawn(move || as_task(task, body));
        yield_point();
        ScopedJoinHandle { task: Some(id), inner }
    }
}

impl<T> ScopedJoinHandle<'_, T> {
    /// See [`std::thread::ScopedJoinHandle::join`].
    ///
    /// # Errors
    /// What the thread panicked with.
    #[track_caller]
    pub fn join(self) -> Result<T> {
        wait_for_end(self.task);
        self.inner.join()
    }

    /// See [`std::thread::ScopedJoinHandle::is_finished`].
    pub fn is_finished(&self) -> bool {
        yield_point();
        self.inner.is_finished()
    }
}
