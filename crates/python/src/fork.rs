//! [`Living`]: a value of the engine that is used only in the process that made it.

use std::sync::atomic::{AtomicU64, Ordering};

use pyo3::prelude::*;

use crate::failure;

/// Number of forks between the start of the first process and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Counts a fork: Python calls it in the child (`os.register_at_fork`). That costs a load per call, and a system call
/// that asks for the process costs ten times as much.
pub fn note_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// A value whose threads and locks a fork does not copy. In a forked process it is refused, and not dropped either:
/// closing would wait for threads that are not there.
#[derive(Debug)]
pub struct Living<T> {
    value: Option<T>,
    forks: u64,
}

impl<T> Living<T> {
    /// A value made by this process.
    pub fn new(value: T) -> Self {
        Self { value: Some(value), forks: FORKS.load(Ordering::Relaxed) }
    }

    fn is_forked(&self) -> bool {
        self.forks != FORKS.load(Ordering::Relaxed)
    }

    /// The value, unless the process was forked since.
    #[inline]
    pub fn get(&self, py: Python<'_>) -> PyResult<&T> {
        match &self.value {
            Some(value) if !self.is_forked() => Ok(value),
            _ => Err(failure::forked(py)),
        }
    }
}

impl<T> Drop for Living<T> {
    fn drop(&mut self) {
        if self.is_forked() {
            std::mem::forget(self.value.take());
        }
    }
}
