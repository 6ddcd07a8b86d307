//! [`OnceLock`]: that of `std`, with yield points.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use super::state::Wait;
use super::task::{self, is_task, step_with};

/// See [`std::sync::OnceLock`].
pub struct OnceLock<T> {
    inner: std::sync::OnceLock<T>,
    /// Whether a task initializes it.
    is_being_set: AtomicBool,
}

impl<T> OnceLock<T> {
    /// See [`std::sync::OnceLock::new`].
    pub const fn new() -> Self {
        Self { inner: std::sync::OnceLock::new(), is_being_set: AtomicBool::new(false) }
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(self).cast::<()>() as usize
    }

    /// See [`std::sync::OnceLock::get`].
    pub fn get(&self) -> Option<&T> {
        step_with(|_| ());
        self.inner.get()
    }

    /// See [`std::sync::OnceLock::set`].
    ///
    /// # Errors
    /// The value, when there is one already.
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), T> {
        step_with(|_| ());
        self.wait_until_set();
        self.inner.set(value)
    }

    /// See [`std::sync::OnceLock::get_or_init`].
    #[track_caller]
    pub fn get_or_init(&self, init: impl FnOnce() -> T) -> &T {
        if !step_with(|_| ()) {
            return self.inner.get_or_init(init);
        }
        self.wait_until_set();
        if let Some(value) = self.inner.get() {
            return value;
        }
        self.is_being_set.store(true, Ordering::Relaxed);
        let setting = Setting(self);
        let value = init();
        let value = self.inner.get_or_init(|| value);
        drop(setting);
        value
    }

    /// See [`std::sync::OnceLock::into_inner`].
    pub fn into_inner(self) -> Option<T> {
        self.inner.into_inner()
    }

    /// See [`std::sync::OnceLock::get_mut`].
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.inner.get_mut()
    }

    #[track_caller]
    fn wait_until_set(&self) {
        while is_task() && self.is_being_set.load(Ordering::Relaxed) {
            task::wait(Wait::Release { address: self.address(), holder: None }, None);
        }
    }
}

/// An initialization under way, which may panic.
struct Setting<'a, T>(&'a OnceLock<T>);

impl<T> Drop for Setting<'_, T> {
    fn drop(&mut self) {
        self.0.is_being_set.store(false, Ordering::Relaxed);
        let address = self.0.address();
        step_with(|state| state.release(address));
    }
}

impl<T> Default for OnceLock<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for OnceLock<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(out)
    }
}
