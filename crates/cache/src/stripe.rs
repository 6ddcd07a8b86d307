//! A small number for each thread, to spread counters over cache lines.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

static THREADS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// The calling thread's number, from 1.
#[inline(always)]
pub(crate) fn thread_number() -> u64 {
    // The model checker wants the same memory accesses in every run, whatever threads were before.
    if cfg!(loom) {
        return u64::MAX;
    }
    NUMBER.with(|number| match number.get() {
        0 => assign(number),
        known => known,
    })
}

#[cold]
fn assign(number: &Cell<u64>) -> u64 {
    number.set(THREADS.fetch_add(1, Ordering::Relaxed) + 1);
    number.get()
}
