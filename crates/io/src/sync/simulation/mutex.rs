//! [`Mutex`]: that of `std`, with yield points.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use super::state::Wait;
use super::task::{self, step_with, with_current};

/// See [`std::sync::Mutex`].
#[derive(Default)]
pub struct Mutex<T: ?Sized> {
    /// The task that holds it, plus one; 0 for none.
    holder: AtomicUsize,
    inner: std::sync::Mutex<T>,
}

/// See [`std::sync::MutexGuard`].
pub struct MutexGuard<'a, T: ?Sized> {
    pub(super) lock: &'a Mutex<T>,
    /// `None` only while a condition variable waits with it.
    pub(super) inner: Option<std::sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    /// See [`std::sync::Mutex::new`].
    pub const fn new(value: T) -> Self {
        Self { holder: AtomicUsize::new(0), inner: std::sync::Mutex::new(value) }
    }

    /// See [`std::sync::Mutex::into_inner`].
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    pub(super) fn address(&self) -> usize {
        std::ptr::from_ref(self).cast::<()>() as usize
    }

    /// See [`std::sync::Mutex::lock`].
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        if step_with(|_| ()) { self.lock_in_task() } else { self.wrap(self.inner.lock()) }
    }

    /// Locks without a yield point first. The calling thread is a task.
    #[track_caller]
    pub(super) fn lock_in_task(&self) -> LockResult<MutexGuard<'_, T>> {
        loop {
            match self.inner.try_lock() {
                Ok(guard) => return self.wrap(Ok(guard)),
                Err(TryLockError::Poisoned(poisoned)) => return self.wrap(Err(poisoned)),
                Err(TryLockError::WouldBlock) => {
                    let holder = self.holder.load(Ordering::Relaxed).checked_sub(1);
                    task::wait(Wait::Release { address: self.address(), holder }, None);
                }
            }
        }
    }

    /// See [`std::sync::Mutex::try_lock`].
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        step_with(|_| ());
        match self.inner.try_lock() {
            Ok(guard) => Ok(self.guard(guard)),
            Err(TryLockError::Poisoned(poisoned)) => {
                let guard = self.guard(poisoned.into_inner());
                Err(TryLockError::Poisoned(PoisonError::new(guard)))
            }
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        }
    }

    /// See [`std::sync::Mutex::get_mut`].
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.inner.get_mut()
    }

    fn guard<'a>(&'a self, inner: std::sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let holder = with_current(|current| current.id + 1).unwrap_or(0);
        self.holder.store(holder, Ordering::Relaxed);
        MutexGuard { lock: self, inner: Some(inner) }
    }

    pub(super) fn wrap<'a>(
        &'a self,
        locked: LockResult<std::sync::MutexGuard<'a, T>>,
    ) -> LockResult<MutexGuard<'a, T>> {
        match locked {
            Ok(guard) => Ok(self.guard(guard)),
            Err(poisoned) => Err(PoisonError::new(self.guard(poisoned.into_inner()))),
        }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        let Some(inner) = self.inner.take() else { return };
        drop(inner);
        let address = self.lock.address();
        step_with(|state| state.release(address));
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inner.as_ref().expect("held until it is dropped")
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("held until it is dropped")
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(out)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(out)
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}
