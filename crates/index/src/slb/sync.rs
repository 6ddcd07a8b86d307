//! Every atomic of the lookaside buffer comes through here, so that loom can replace it.

#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU64, fence};
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicU64, fence};

pub(super) use std::sync::atomic::Ordering;

/// Tells the processor, or the model checker, that the caller repeats a read until another thread has moved on.
#[inline]
pub(super) fn spin_hint() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::hint::spin_loop();
}
