//! Every atomic of the cuckoo table comes through here, so that loom can replace it.

#[cfg(loom)]
pub(super) use loom::sync::atomic::{AtomicU32, AtomicU64};
#[cfg(not(loom))]
pub(super) use std::sync::atomic::{AtomicU32, AtomicU64};

pub(super) use std::sync::atomic::Ordering;

/// Tells the processor, or the model checker, that the caller repeats a read until a writer has moved on.
#[inline]
pub(super) fn spin_hint() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::hint::spin_loop();
}
