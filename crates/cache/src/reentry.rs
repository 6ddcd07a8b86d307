//! Whether the calling thread runs a function that decides about an item, under the lock of the item's partition.
//!
//! Such a function may read its cache, but a write from within it would wait for the lock that its own thread holds, or
//! for another's whose function writes here. Both are refused at once, and always, instead of hanging now and then.

use std::cell::{Cell, RefCell};

thread_local! {
    // Two: what every write reads has no destructor, which would make each access a call.
    static IS_DECIDING: Cell<bool> = const { Cell::new(false) };
    /// Caches about whose items the thread decides, the innermost last.
    static CACHES: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// The calling thread decides about an item of a cache while this lives.
pub(crate) struct Deciding;

impl Deciding {
    /// Begins to decide about an item of cache number `cache`.
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

/// Refuses to write to cache number `cache` from within a function that decides about one of its items.
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
