//! A deterministic scheduler: one thread runs at a time, in an order that follows from a seed.
//!
//! [`run`] executes a function and all threads that it starts through [`thread`] as *tasks*. A task is a thread of the
//! operating system that runs while it has the baton and sleeps otherwise, so that thread-locals, destructors and
//! unwinding are those of production. At each *yield point* (before a lock, after its release, before an atomic
//! operation that publishes or observes, at waits, notifications, starts and joins of threads, and at each operation of
//! a simulated storage) the `policy` decides which task continues: by a random walk, or by priorities that change at
//! few random points (PCT: Burckhardt et al., "A randomized scheduler with probabilistic guarantees of finding bugs",
//! ASPLOS 2010, §3). The same seed and the same function make the same decisions, which a hash of them shows.
//!
//! Time is the execution's own: a sleep or a wait with a timeout ends when nothing else can run, or at a random moment
//! before that. An execution in which nothing can ever run again, or that takes more steps than it may, fails with a
//! list of which task waits for what; its threads then stay parked until the process ends.
//!
//! What this does not show: effects of weak memory orders (atomic operations happen in one order, which every thread
//! sees; `loom` tests the structures that rely on less), and races between two yield points.

pub mod atomic;
mod condvar;
mod execution;
mod mutex;
mod once_lock;
mod policy;
mod processor;
mod rw_lock;
mod scope;
mod state;
mod swap;
mod task;
#[cfg(test)]
mod tests;
pub mod thread;

pub use condvar::{Condvar, WaitTimeoutResult};
pub use execution::{Failure, Options, Outcome, run};
pub use mutex::{Mutex, MutexGuard};
pub use once_lock::OnceLock;
pub use rw_lock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
pub use swap::{ArcSwap, ArcSwapOption};
pub use task::{is_task, now, random, step, yield_point};
