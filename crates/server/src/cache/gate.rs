//! [`Gate`]: transactions take effect at one moment.

use std::cell::Cell;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

thread_local! {
    /// Whether the thread has closed the gate: it may pass.
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Open for single operations and batches of gets, any number at a time; closed for a transaction.
#[derive(Debug, Default)]
pub(super) struct Gate(RwLock<()>);

/// While this lives, the thread that closed the gate is the only one that passes.
pub(super) struct Alone<'a> {
    /// `None` if the thread was alone before.
    closed: Option<RwLockWriteGuard<'a, ()>>,
}

impl Gate {
    /// Waits while the gate is closed, and keeps it open until the result is dropped.
    #[inline]
    pub(super) fn pass(&self) -> Option<RwLockReadGuard<'_, ()>> {
        (!IS_ALONE.get()).then(|| self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for all that have passed.
    pub(super) fn close(&self) -> Alone<'_> {
        let closed = (!IS_ALONE.get()).then(|| self.0.write().unwrap_or_else(PoisonError::into_inner));
        IS_ALONE.set(true);
        Alone { closed }
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        if self.closed.is_some() {
            IS_ALONE.set(false);
        }
    }
}
