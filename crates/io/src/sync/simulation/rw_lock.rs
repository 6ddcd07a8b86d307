//! [`RwLock`]: that of `std`, with yield points.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use super::state::Wait;
use super::task::{self, step_with};

/// See [`std::sync::RwLock`].
#[derive(Default)]
pub struct RwLock<T: ?Sized> {
    inner: std::sync::RwLock<T>,
}

/// See [`std::sync::RwLockReadGuard`].
pub struct RwLockReadGuard<'a, T: ?Sized> {
    address: usize,
    /// `None` only while it is dropped.
    inner: Option<std::sync::RwLockReadGuard<'a, T>>,
}

/// See [`std::sync::RwLockWriteGuard`].
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    address: usize,
    /// `None` only while it is dropped.
    inner: Option<std::sync::RwLockWriteGuard<'a, T>>,
}

impl<T> RwLock<T> {
    /// See [`std::sync::RwLock::new`].
    pub const fn new(value: T) -> Self {
        Self { inner: std::sync::RwLock::new(value) }
    }

    /// See [`std::sync::RwLock::into_inner`].
    pub fn into_inner(self) -> LockResult<T> {
        self.inner.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    fn address(&self) -> usize {
        std::ptr::from_ref(self).cast::<()>() as usize
    }

    /// See [`std::sync::RwLock::read`].
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let locked = match step_with(|_| ()) {
            true => self.wait_for(|| self.inner.try_read()),
            false => self.inner.read(),
        };
        let wrap = |inner| RwLockReadGuard { address: self.address(), inner: Some(inner) };
        locked.map(wrap).map_err(|poisoned| PoisonError::new(wrap(poisoned.into_inner())))
    }

    /// See [`std::sync::RwLock::write`].
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let locked = match step_with(|_| ()) {
            true => self.wait_for(|| self.inner.try_write()),
            false => self.inner.write(),
        };
        let wrap = |inner| RwLockWriteGuard { address: self.address(), inner: Some(inner) };
        locked.map(wrap).map_err(|poisoned| PoisonError::new(wrap(poisoned.into_inner())))
    }

    #[track_caller]
    fn wait_for<G>(&self, attempt: impl Fn() -> TryLockResult<G>) -> LockResult<G> {
        loop {
            match attempt() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(poisoned)) => return Err(poisoned),
                Err(TryLockError::WouldBlock) => {
                    task::wait(Wait::Release { address: self.address(), holder: None }, None);
                }
            }
        }
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        drop(self.inner.take());
        let address = self.address;
        step_with(|state| state.release(address));
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        drop(self.inner.take());
        let address = self.address;
        step_with(|state| state.release(address));
    }
}

impl<T: ?Sized> Deref for RwLockReadGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inner.as_ref().expect("held until it is dropped")
    }
}

impl<T: ?Sized> Deref for RwLockWriteGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inner.as_ref().expect("held until it is dropped")
    }
}

impl<T: ?Sized> DerefMut for RwLockWriteGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("held until it is dropped")
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(out)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockReadGuard<'_, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(out)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLockWriteGuard<'_, T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(out)
    }
}
