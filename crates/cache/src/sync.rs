//! All atomics and locks of this crate are imported from here, so that loom can replace them.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, fence},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, fence},
};

pub(crate) use std::sync::atomic::Ordering;

/// Tells the processor, or the model checker, that the caller repeats a read until a writer has made progress.
#[inline]
pub(crate) fn spin_hint() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::hint::spin_loop();
}

/// Adds to a counter that only one thread at a time changes: cheaper than an atomic addition.
#[inline(always)]
pub(crate) fn add_alone(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}
