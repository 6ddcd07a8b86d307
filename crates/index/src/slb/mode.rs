//! Which threads may use a table: any thread, or its owner alone. One source, two modes.

use std::cell::Cell;
use std::fmt;

use crate::sync::{AtomicU64, Ordering, fence};

mod sealed {
    pub trait Sealed {}
}

/// [`Shared`] or [`Owned`].
pub trait Mode: sealed::Sealed + fmt::Debug + 'static {
    /// Whether other threads may change a line while this one reads it.
    const IS_SHARED: bool;
    /// Eight bytes of a line.
    #[doc(hidden)]
    type Word: Word;
}

/// Any thread looks up, emits and changes; lookups take no lock.
#[derive(Debug)]
pub struct Shared;

/// One thread at a time, which the compiler checks: tables of this mode are `Send` and not `Sync`. No atomics.
#[derive(Debug)]
pub struct Owned;

impl sealed::Sealed for Shared {}
impl sealed::Sealed for Owned {}

impl Mode for Shared {
    const IS_SHARED: bool = true;
    type Word = AtomicU64;
}

impl Mode for Owned {
    const IS_SHARED: bool = false;
    type Word = Cell<u64>;
}

/// Eight bytes that all threads of a mode may change.
pub trait Word: fmt::Debug {
    /// A word of this value.
    fn new(value: u64) -> Self;
    /// Loads with acquire semantics: what the thread that stored the value did before is visible then.
    fn load(&self) -> u64;
    /// Loads without this guarantee.
    fn load_relaxed(&self) -> u64;
    /// Stores, after everything that this thread did before.
    fn store(&self, value: u64);
    /// Stores without this guarantee.
    fn store_relaxed(&self, value: u64);
    /// Replaces `current`, both acquiring and releasing. Returns whether `current` was the value.
    fn replace(&self, current: u64, new: u64) -> bool;
    /// Nothing that this thread loaded before the fence moves after it.
    fn fence_loads();
    /// Nothing that this thread stores after the fence moves before it.
    fn fence_stores();
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn new(value: u64) -> Self {
        Self::new(value)
    }

    #[inline(always)]
    fn load(&self) -> u64 {
        self.load(Ordering::Acquire)
    }

    #[inline(always)]
    fn load_relaxed(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn store(&self, value: u64) {
        self.store(value, Ordering::Release);
    }

    #[inline(always)]
    fn store_relaxed(&self, value: u64) {
        self.store(value, Ordering::Relaxed);
    }

    #[inline(always)]
    fn replace(&self, current: u64, new: u64) -> bool {
        self.compare_exchange(current, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    #[inline(always)]
    fn fence_loads() {
        fence(Ordering::Acquire);
    }

    #[inline(always)]
    fn fence_stores() {
        fence(Ordering::Release);
    }
}

impl Word for Cell<u64> {
    #[inline(always)]
    fn new(value: u64) -> Self {
        Self::new(value)
    }

    #[inline(always)]
    fn load(&self) -> u64 {
        self.get()
    }

    #[inline(always)]
    fn load_relaxed(&self) -> u64 {
        self.get()
    }

    #[inline(always)]
    fn store(&self, value: u64) {
        self.set(value);
    }

    #[inline(always)]
    fn store_relaxed(&self, value: u64) {
        self.set(value);
    }

    #[inline(always)]
    fn replace(&self, current: u64, new: u64) -> bool {
        let is_current = self.get() == current;
        if is_current {
            self.set(new);
        }
        is_current
    }

    #[inline(always)]
    fn fence_loads() {}

    #[inline(always)]
    fn fence_stores() {}
}
