//! Who may use a partition when: MICA's EREW, CREW and CRCW modes (Lim's thesis, §5.3.1), as types.
//!
//! One source, three modes: an operation is written once, over [`Access`], and asks [`Access::READS_BESIDE_WRITES`]
//! whether it must count versions and validate what it read, and the partition's gate before it writes.

use std::cell::Cell;
use std::fmt;

#[cfg(debug_assertions)]
use crate::sync::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard};

mod sealed {
    pub trait Sealed {}
}

/// One of the access modes: [`Exclusive`], [`ConcurrentReads`] or [`Concurrent`].
pub trait Access: sealed::Sealed + fmt::Debug + 'static {
    /// Whether reads may run beside a write, so that they validate what they read.
    const READS_BESIDE_WRITES: bool;
    /// What writers of a partition pass.
    #[doc(hidden)]
    type Gate: Gate;
}

/// EREW, exclusive read, exclusive write: a cache belongs to one thread at a time, which the compiler checks (the cache
/// is `Send` but not `Sync`). Nothing is counted, locked or validated. Partition by giving each thread a cache of its
/// own.
#[derive(Debug)]
pub struct Exclusive;

/// CREW, concurrent read, exclusive write: any thread reads, one thread writes each partition. Reads take no lock and
/// never wait for more than the write of one item. Debug builds check that the thread that writes a partition is the
/// one that did so first; [`Cache::hand_over`](crate::Cache::hand_over) ends a thread's turn.
///
/// In release builds a second writer at the same time is not noticed. It corrupts no memory but that of the cache's
/// items, and may make operations panic.
#[derive(Debug)]
pub struct ConcurrentReads;

/// CRCW, concurrent read, concurrent write: any thread does anything. Reads as in [`ConcurrentReads`]; writers of a
/// partition take turns by a lock. The default.
#[derive(Debug)]
pub struct Concurrent;

impl sealed::Sealed for Exclusive {}
impl sealed::Sealed for ConcurrentReads {}
impl sealed::Sealed for Concurrent {}

impl Access for Exclusive {
    const READS_BESIDE_WRITES: bool = false;
    type Gate = Lending;
}

impl Access for ConcurrentReads {
    const READS_BESIDE_WRITES: bool = true;
    type Gate = Owner;
}

impl Access for Concurrent {
    const READS_BESIDE_WRITES: bool = true;
    type Gate = Lock;
}

/// What a writer passes, and what a reader who lends out bytes of the log holds.
pub trait Gate: Default + fmt::Debug {
    /// Held during a write.
    type Writing<'a>
    where
        Self: 'a;

    /// Begins a write.
    fn enter(&self) -> Self::Writing<'_>;

    /// Whether nobody writes while the result of [`lend`](Self::lend) lives, so that bytes of the log may be lent out.
    const LENDS: bool = false;

    /// Forbids writes until the result is dropped.
    fn lend(&self) -> Loan<'_> {
        Loan(None)
    }

    /// Whether bytes are lent out at the moment, so that even the owner may not write.
    fn is_lent(&self) -> bool {
        false
    }

    /// Lets another thread become the owner.
    fn hand_over(&self) {}
}

/// Gate of [`Exclusive`]: only guards against writes from within a callback that has bytes of the log. The cell keeps
/// caches of this mode with one thread.
#[derive(Debug, Default)]
pub struct Lending {
    loans: Cell<u32>,
}

/// Bytes of the log are lent out while this lives.
#[derive(Debug)]
pub struct Loan<'a>(Option<&'a Cell<u32>>);

impl Drop for Loan<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(loans) = self.0 {
            loans.set(loans.get() - 1);
        }
    }
}

impl Gate for Lending {
    type Writing<'a> = ();
    const LENDS: bool = true;

    /// # Panics
    /// From within a callback that was given an item of the same partition.
    #[inline(always)]
    fn enter(&self) {
        assert!(self.loans.get() == 0, "a callback that reads an item may not write to its cache");
    }

    #[inline(always)]
    fn lend(&self) -> Loan<'_> {
        self.loans.set(self.loans.get() + 1);
        Loan(Some(&self.loans))
    }

    #[inline(always)]
    fn is_lent(&self) -> bool {
        self.loans.get() != 0
    }
}

/// Gate of [`ConcurrentReads`]: in debug builds, remembers the thread that writes. Costs nothing in release builds.
#[derive(Debug, Default)]
pub struct Owner {
    #[cfg(debug_assertions)]
    thread: AtomicU64,
}

impl Gate for Owner {
    type Writing<'a> = ();

    #[inline(always)]
    fn enter(&self) {
        #[cfg(debug_assertions)]
        {
            let this = crate::stripe::thread_number();
            let before = self.thread.load(Ordering::Relaxed);
            let is_mine = before == this
                || before == 0
                    && self.thread.compare_exchange(0, this, Ordering::Relaxed, Ordering::Relaxed).is_ok();
            assert!(is_mine, "a partition with concurrent reads is written by a second thread");
        }
    }

    fn hand_over(&self) {
        #[cfg(debug_assertions)]
        self.thread.store(0, Ordering::Relaxed);
    }
}

/// Gate of [`Concurrent`]: a lock.
#[derive(Debug)]
pub struct Lock(Mutex<()>);

impl Default for Lock {
    fn default() -> Self {
        Self(Mutex::new(()))
    }
}

impl Gate for Lock {
    type Writing<'a> = MutexGuard<'a, ()>;

    #[inline(always)]
    fn enter(&self) -> MutexGuard<'_, ()> {
        // A writer that panicked left the partition in order: every change is complete or not begun when it can panic.
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
