//! [`Living`]: a value of the engine that is used only in the process that made it.

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::failure::Failure;
use crate::raw;

/// Number of forks between the start of the first process and this one.
static FORKS: AtomicU64 = AtomicU64::new(0);

/// Counts a fork. The C library calls it in the child, where only what may be called in a signal handler may be called:
/// this is one atomic addition. It costs every call a load; to ask for the process would cost a system call.
extern "C" fn note_fork() {
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
        static COUNTING: Once = Once::new();
        COUNTING.call_once(|| raw::call_in_forked_children(note_fork));
        Self { value: Some(value), forks: FORKS.load(Ordering::Relaxed) }
    }

    fn is_forked(&self) -> bool {
        self.forks != FORKS.load(Ordering::Relaxed)
    }

    /// The value, unless the process was forked since.
    #[inline]
    pub fn get(&self) -> Result<&T, Failure> {
        match &self.value {
            Some(value) if !self.is_forked() => Ok(value),
            _ => Err(Failure::forked()),
        }
    }

    /// The value, to be changed, unless the process was forked since.
    #[inline]
    pub fn get_mut(&mut self) -> Result<&mut T, Failure> {
        let is_forked = self.is_forked();
        match &mut self.value {
            Some(value) if !is_forked => Ok(value),
            _ => Err(Failure::forked()),
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
