//! The only source of locks, condition variables, atomics, cells that are swapped, and threads.
//!
//! Production code of this crate and of the engine takes them from here and never from `std::sync`, `std::thread` or
//! `arc_swap` (`cargo xtask tidy` checks it), so that the simulation can decide which thread runs when. `Arc`, `Weak`
//! and the errors of locks have no influence on that: they may come from `std` too.
//!
//! Without the feature `simulation` these are the types of `std` and `arc_swap` themselves. With it they are wrappers
//! that ask the scheduler of [`simulation`] in the threads of an execution, and behave as those of `std` in all others.
//! Channels (`mpsc`) are those of `std` always: only the threads of real files use them.

#[cfg(feature = "simulation")]
pub mod simulation;

#[cfg(not(feature = "simulation"))]
pub use arc_swap::{ArcSwap, ArcSwapOption};
#[cfg(not(feature = "simulation"))]
pub use std::{
    sync::{Condvar, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic},
    thread,
};

#[cfg(feature = "simulation")]
pub use simulation::{
    ArcSwap, ArcSwapOption, Condvar, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard, RwLockWriteGuard,
    atomic, thread,
};

pub use arc_swap::Guard as ArcSwapGuard;
pub use std::sync::{Arc, LockResult, PoisonError, TryLockError, Weak, mpsc};

/// A moment at which the simulation may let another thread run. Does nothing elsewhere.
pub(crate) fn yield_point() {
    #[cfg(feature = "simulation")]
    simulation::yield_point();
}

/// Whether the calling thread is one of a simulated execution.
pub fn is_simulated() -> bool {
    #[cfg(feature = "simulation")]
    return simulation::is_task();
    #[cfg(not(feature = "simulation"))]
    false
}

/// The time of the clock of the calling thread's execution; zero in other threads.
pub(crate) fn simulated_time() -> std::time::Duration {
    #[cfg(feature = "simulation")]
    return simulation::now();
    #[cfg(not(feature = "simulation"))]
    std::time::Duration::ZERO
}
