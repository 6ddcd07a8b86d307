//! The one door to locks, condition variables, atomics, cells that are swapped, and threads.
//!
//! Production code of this crate and of the engine takes them from here and never from `std::sync`, `std::thread` or
//! `arc_swap` (`cargo xtask tidy` checks it), so that the simulation can decide who runs when. `Arc`, `Weak` and the
//! errors of locks decide nothing about that: they may come from `std` too.

pub use arc_swap::{ArcSwap, ArcSwapOption, Guard as ArcSwapGuard};
pub use std::sync::{
    Arc, Condvar, LockResult, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard,
    RwLockWriteGuard, TryLockError, Weak, atomic, mpsc,
};
pub use std::thread;
