//! Whether the calling thread is running a function that decides about an item, under the lock of the item's partition.
//!
//! Such a function may read its cache, but a write from within it would wait for the lock that its own thread holds, or
//! for a thread whose function is waiting for this one. Both are refused always and at once, instead of hanging
//! occasionally.

use std::cell::{Cell, RefCell};

thread_local! {
    // Two variables: the one that every write reads has no destructor, which would turn each access into a call.
    static IS_DECIDING: Cell<bool> = const { Cell::new(false) };
    /// Caches about whose items the thread is deciding, the innermost last.
    static CACHES: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// While this lives, the calling thread is deciding about an item of a cache.
pub(crate) struct Deciding;

impl Deciding {
    /// Starts a decision about an item of cache number `cache`.
    pub fn about(cache: u64) -> Self {
        CACHES.with_borrow_mut(|caches| caches.push(cache));
        IS_DECIDING.set(true);
        Self
    }
}

impl Drop for Deciding {
    fn drop(&mut self) {
        let is_outermost = CACHES.with_borrow_mut(|caches| {
            caches.pop();
            caches.is_empty()
        });
        IS_DECIDING.set(!is_outermost);
    }
}

/// Refuses a write to cache number `cache` from within a function that decides about one of its items.
///
/// # Panics
/// Within such a function.
#[inline(always)]
pub(crate) fn refuse_within(cache: u64) {
    if IS_DECIDING.get() {
        refuse_if_among(cache);
    }
}

#[cold]
fn refuse_if_among(cache: u64) {
    let is_among = CACHES.with_borrow(|caches| caches.contains(&cache));
    assert!(!is_among, "a function that decides about an item may not write to its cache");
}
