//! Who may use a partition when: MICA's EREW, CREW and CRCW modes (Lim's thesis, §5.3.1), as types.
//!
//! One source, three modes: an operation is written once, over [`Access`], and asks [`Access::READS_BESIDE_WRITES`]
//! whether it must count versions and validate what it read, and the partition's gate before it writes.

use std::cell::Cell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use crate::sync::{AtomicU32, Mutex, MutexGuard, Ordering};

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
    /// What owns the partitions: shared where a writer may outlive the cache that it came from.
    #[doc(hidden)]
    type Parts<T: fmt::Debug>: Deref<Target = [T]> + FromIterator<T> + fmt::Debug;
}

/// A mode in which the cache or store itself writes: [`Exclusive`] and [`Concurrent`].
///
/// [`ConcurrentReads`] is none: its caches are written through a [`Writer`](crate::Writer), its stores through a
/// [`StoreWriter`](crate::StoreWriter).
#[diagnostic::on_unimplemented(
    message = "a cache or store of mode `{Self}` is written through a writer",
    note = "take one with `writer(partitions)`"
)]
pub trait SharedWrites: Access {}

impl SharedWrites for Exclusive {}
impl SharedWrites for Concurrent {}

/// EREW, exclusive read, exclusive write: a cache belongs to one thread at a time, which the compiler checks (the cache
/// is `Send` but not `Sync`). Nothing is counted, locked or validated. Partition by giving each thread a cache of its
/// own.
#[derive(Debug)]
pub struct Exclusive;

/// CREW, concurrent read, exclusive write: any thread reads, and each partition has one writer at most. Reads take no
/// lock and never wait for more than the write of one item.
///
/// The cache itself only reads. What writes is a [`Writer`](crate::Writer) of some of the partitions, taken with
/// [`Cache::writer`](crate::Cache::writer) (of a store with [`Store::writer`](crate::Store::writer)), which exists once
/// a partition. So two threads can't write a partition at the same time, and no lock is needed:
///
/// ```compile_fail,E0599
/// let cache = alluvium_cache::Cache::builder().build_concurrent_reads().unwrap();
/// cache.set(b"key", b"value").unwrap(); // a shared cache doesn't write
/// ```
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
    type Parts<T: fmt::Debug> = Box<[T]>;
}

impl Access for ConcurrentReads {
    const READS_BESIDE_WRITES: bool = true;
    type Gate = Owner;
    type Parts<T: fmt::Debug> = Arc<[T]>;
}

impl Access for Concurrent {
    const READS_BESIDE_WRITES: bool = true;
    type Gate = Lock;
    type Parts<T: fmt::Debug> = Box<[T]>;
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
}

/// Gate of [`Exclusive`]: only guards against writes from within a callback that has bytes of the log, or that decides
/// about an item. The cell keeps caches of this mode with one thread.
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

/// Gate of [`ConcurrentReads`]: who calls a writing operation has the partition's writer, exclusively. Nothing is left
/// to do but to give out that writer once.
#[derive(Debug)]
pub struct Owner {
    is_claimed: AtomicU32,
}

impl Default for Owner {
    fn default() -> Self {
        Self { is_claimed: AtomicU32::new(0) }
    }
}

impl Owner {
    /// Takes the right to write; whether it was free. All that was written under it before is seen.
    pub(crate) fn claim(&self) -> bool {
        self.is_claimed.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Gives the right back.
    pub(crate) fn release(&self) {
        self.is_claimed.store(0, Ordering::Release);
    }
}

impl Gate for Owner {
    type Writing<'a> = ();

    #[inline(always)]
    fn enter(&self) {}
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
        // A writer that panicked left the partition in order: callers' functions run between changes, and a change that
        // ends by a panic is undone or marked by its guard.
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
