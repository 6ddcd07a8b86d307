//! The atomics of this module, which the model checker replaces by its own.

#[cfg(loom)]
pub(super) use loom::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
#[cfg(not(loom))]
pub(super) use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
