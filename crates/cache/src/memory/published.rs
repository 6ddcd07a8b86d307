//! A value that is replaced while readers use it, and freed only with its owner.

use std::fmt;
use std::ptr;

use crate::sync::{AtomicPtr, Mutex, Ordering};

/// The current value of a sequence of values, all of which live until the owner is dropped.
///
/// Meant for values whose bulk can be returned to the system without freeing them: a reader that still uses an earlier
/// value is memory-safe, and detects the replacement with [`is_current`](Self::is_current). A read costs one load.
pub(crate) struct Published<T> {
    current: AtomicPtr<T>,
    /// All values, the current one last. Boxes as raw pointers, since there are references to their contents.
    all: Mutex<Vec<*mut T>>,
}

// SAFETY: this type owns the values and moves between threads with them, if they may.
unsafe impl<T: Send> Send for Published<T> {}
// SAFETY: sharing gives out shared references only, and `replace` takes values from any thread, hence `Send` too.
unsafe impl<T: Send + Sync> Sync for Published<T> {}

impl<T> Published<T> {
    pub fn new(value: T) -> Self {
        let pointer = Box::into_raw(Box::new(value));
        Self { current: AtomicPtr::new(pointer), all: Mutex::new(vec![pointer]) }
    }

    /// The current value.
    #[inline(always)]
    pub fn get(&self) -> &T {
        // SAFETY: the pointer came from a box that only the drop of `self` frees, which the borrow of `self` outlasts;
        // no code creates exclusive references. Acquire pairs with the release in `replace`.
        unsafe { &*self.current.load(Ordering::Acquire) }
    }

    /// Whether `value` is still the current one, as far as this thread can know. A reader calls it after an acquire
    /// fence that follows its last load of the value's contents.
    #[inline(always)]
    pub fn is_current(&self, value: &T) -> bool {
        ptr::eq(self.current.load(Ordering::Relaxed), value)
    }

    /// Makes `value` the current one and returns what it replaced.
    pub fn replace(&self, value: T) -> &T {
        let pointer = Box::into_raw(Box::new(value));
        let mut all = self.all.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        all.push(pointer);
        let before = self.current.swap(pointer, Ordering::AcqRel);
        // SAFETY: as in `get`: `before` was published and is freed only by the drop of `self`.
        unsafe { &*before }
    }
}

impl<T: fmt::Debug> fmt::Debug for Published<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(out)
    }
}

impl<T> Drop for Published<T> {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        for pointer in all.drain(..) {
            // SAFETY: each pointer came from `Box::into_raw` and is in the list once; since `self` is borrowed
            // exclusively, no reference that `get` or `replace` returned is left.
            drop(unsafe { Box::from_raw(pointer) });
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn replaced_values_stay_readable() {
        let published = Published::new(vec![1]);
        let first = published.get();
        published.replace(vec![2]);
        assert_eq!((first, published.get()), (&vec![1], &vec![2]));
        assert!(!published.is_current(first) && published.is_current(published.get()));
    }
}
