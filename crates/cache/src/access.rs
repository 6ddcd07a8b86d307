//! Who may use a partition at which time: MICA's EREW, CREW and CRCW modes (Lim's thesis, §5.3.1), as types.
//!
//! One source serves three modes: an operation is written once, over [`Access`]. It consults
//! [`Access::READS_BESIDE_WRITES`] on whether it must count versions and validate what it read, and passes the
//! partition's gate before it writes.

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
    /// Whether reads may run beside a write and therefore must validate what they read.
    const READS_BESIDE_WRITES: bool;
    /// What writers of a partition pass through.
    #[doc(hidden)]
    type Gate: Gate;
    /// The owner of the partitions: shared where a writer may outlive the cache from which it was taken.
    #[doc(hidden)]
    type Parts<T: fmt::Debug>: Deref<Target = [T]> + FromIterator<T> + fmt::Debug;
}

/// A mode in which the cache or store itself writes: [`Exclusive`] and [`Concurrent`].
///
/// [`ConcurrentReads`] is not such a mode: its caches are written through a [`Writer`](crate::Writer), its stores
/// through a [`StoreWriter`](crate::StoreWriter).
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

/// CREW, concurrent read, exclusive write: any thread reads, and each partition has at most one writer. Reads take no
/// lock and never wait for more than the write of one item.
///
/// The cache itself only reads. Writes go through a [`Writer`](crate::Writer) of some of the partitions, taken with
/// [`Cache::writer`](crate::Cache::writer) (of a store with [`Store::writer`](crate::Store::writer)), which exists once
/// per partition. So two threads cannot write a partition at the same time, and no lock is needed:
///
/// ```compile_fail,E0599
/// let cache = alluvium_cache::Cache::builder().build_concurrent_reads().unwrap();
/// cache.set(b"key", b"value").unwrap(); // a shared cache doesn't write
/// ```
#[derive(Debug)]
pub struct ConcurrentReads;

/// CRCW, concurrent read, concurrent write: any thread may read and write. Reads work as in [`ConcurrentReads`];
/// writers of a partition take turns by a lock. The default.
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

/// What a writer passes through, and what a reader that lends out bytes of the log holds.
pub trait Gate: Default + fmt::Debug {
    /// Held during a write.
    type Writing<'a>
    where
        Self: 'a;

    /// Begins a write.
    fn enter(&self) -> Self::Writing<'_>;

    /// Begins a write of a thread that only reads by its caller's will, if this mode allows it and no write is in
    /// progress.
    fn try_enter(&self) -> Option<Self::Writing<'_>>;

    /// Whether no thread writes while the result of [`lend`](Self::lend) lives, so that bytes of the log may be lent
    /// out.
    const LENDS: bool = false;

    /// Forbids writes until the result is dropped.
    fn lend(&self) -> Loan<'_> {
        Loan(None)
    }

    /// Whether bytes are currently lent out, so that even the owner must not write.
    fn is_lent(&self) -> bool {
        false
    }
}

/// Gate of [`Exclusive`]: only guards against writes from within a callback that was lent bytes of the log or decides
/// about an item. The cell ties caches of this mode to one thread.
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
    /// Panics within a callback that was given an item of the same partition.
    #[inline(always)]
    fn enter(&self) {
        assert!(self.loans.get() == 0, "a callback that reads an item may not write to its cache");
    }

    #[inline(always)]
    fn try_enter(&self) -> Option<()> {
        (self.loans.get() == 0).then_some(())
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

/// Gate of [`ConcurrentReads`]: the caller of a writing operation has exclusive use of the partition's writer. The gate
/// only has to hand out that writer once.
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
    /// Takes the right to write; returns whether it was free. The new holder sees everything that earlier holders
    /// wrote.
    pub(crate) fn claim(&self) -> bool {
        self.is_claimed.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Returns the right.
    pub(crate) fn release(&self) {
        self.is_claimed.store(0, Ordering::Release);
    }
}

impl Gate for Owner {
    type Writing<'a> = ();

    #[inline(always)]
    fn enter(&self) {}

    /// Only the holder of the writer writes.
    #[inline(always)]
    fn try_enter(&self) -> Option<()> {
        None
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
        // A writer that panicked left the partition consistent: callers' functions run between changes, and the guard
        // of a change that ends by a panic undoes the change or marks it.
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    #[inline(always)]
    fn try_enter(&self) -> Option<MutexGuard<'_, ()>> {
        self.0.try_lock().ok()
    }
}
