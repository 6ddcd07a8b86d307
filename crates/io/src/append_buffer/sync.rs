//! The atomics of this module, which the model checker replaces by its own.

#[cfg(not(loom))]
pub(super) use crate::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
#[cfg(loom)]
pub(super) use loom::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
