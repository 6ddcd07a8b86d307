//! [`Condvar`]: that of `std`, with the scheduler's clock for its timeouts.

use std::sync::{LockResult, PoisonError};
use std::time::Duration;

use super::mutex::MutexGuard;
use super::state::Wait;
use super::task::{self, is_task, step_with};

/// See [`std::sync::Condvar`].
#[derive(Debug, Default)]
pub struct Condvar {
    inner: std::sync::Condvar,
}

/// See [`std::sync::WaitTimeoutResult`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the wait timed out.
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Condvar {
    /// See [`std::sync::Condvar::new`].
    pub const fn new() -> Self {
        Self { inner: std::sync::Condvar::new() }
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }

    /// Waits in a task.
    #[track_caller]
    fn wait_in_task<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        time: Option<Duration>,
    ) -> (LockResult<MutexGuard<'a, T>>, bool) {
        let lock = guard.lock;
        task::yield_point();
        // No other task runs between the release and the wait, so no notification is missed.
        drop(guard.inner.take());
        let timed_out =
            task::wait_released(lock.address(), Wait::Notification { address: self.address() }, time);
        (lock.lock_in_task(), timed_out)
    }

    /// See [`std::sync::Condvar::wait`].
    #[track_caller]
    pub fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        if is_task() {
            return self.wait_in_task(guard, None).0;
        }
        let (lock, inner) = (guard.lock, guard.inner.take().expect("held"));
        lock.wrap(self.inner.wait(inner))
    }

    /// See [`std::sync::Condvar::wait_while`].
    #[track_caller]
    pub fn wait_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<MutexGuard<'a, T>> {
        while condition(&mut guard) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// See [`std::sync::Condvar::wait_timeout`].
    #[track_caller]
    pub fn wait_timeout<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        duration: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        if is_task() {
            let (locked, timed_out) = self.wait_in_task(guard, Some(duration));
            return with_result(locked, timed_out);
        }
        let (lock, inner) = (guard.lock, guard.inner.take().expect("held"));
        match self.inner.wait_timeout(inner, duration) {
            Ok((inner, result)) => with_result(lock.wrap(Ok(inner)), result.timed_out()),
            Err(poisoned) => {
                let (inner, result) = poisoned.into_inner();
                with_result(lock.wrap(Err(PoisonError::new(inner))), result.timed_out())
            }
        }
    }

    /// See [`std::sync::Condvar::wait_timeout_while`].
    #[track_caller]
    pub fn wait_timeout_while<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        duration: Duration,
        mut condition: impl FnMut(&mut T) -> bool,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        if !is_task() {
            let (lock, inner) = (guard.lock, guard.inner.take().expect("held"));
            return match self.inner.wait_timeout_while(inner, duration, condition) {
                Ok((inner, result)) => with_result(lock.wrap(Ok(inner)), result.timed_out()),
                Err(poisoned) => {
                    let (inner, result) = poisoned.into_inner();
                    with_result(lock.wrap(Err(PoisonError::new(inner))), result.timed_out())
                }
            };
        }
        let end = task::now().saturating_add(duration);
        loop {
            if !condition(&mut guard) {
                return Ok((guard, WaitTimeoutResult(false)));
            }
            let left = end.saturating_sub(task::now());
            if left.is_zero() {
                return Ok((guard, WaitTimeoutResult(true)));
            }
            guard = self.wait_timeout(guard, left)?.0;
        }
    }

    /// See [`std::sync::Condvar::notify_one`].
    pub fn notify_one(&self) {
        let address = self.address();
        if !step_with(|state| state.notify_one(address)) {
            self.inner.notify_one();
        }
    }

    /// See [`std::sync::Condvar::notify_all`].
    pub fn notify_all(&self) {
        let address = self.address();
        if !step_with(|state| state.notify_all(address)) {
            self.inner.notify_all();
        }
    }
}

fn with_result<T>(
    locked: LockResult<MutexGuard<'_, T>>,
    timed_out: bool,
) -> LockResult<(MutexGuard<'_, T>, WaitTimeoutResult)> {
    match locked {
        Ok(guard) => Ok((guard, WaitTimeoutResult(timed_out))),
        Err(poisoned) => Err(PoisonError::new((poisoned.into_inner(), WaitTimeoutResult(timed_out)))),
    }
}
