//! Ordering rules that the model checker's tests break on purpose, to show that they would notice.
//!
//! A canary is queried at the rule that it breaks. Without loom the answer is the constant `false`, and nothing of it
//! is compiled.

/// A rule that can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// `CircularLog::reserve` lets words of a new item become visible before the eviction that made room for it.
    ReserveUnfenced,
    /// The same of `Space::allocate`, in a store.
    AllocationUnfenced,
    /// Readers under FIFO do not check whether the item's position was evicted in the meantime.
    HeadUnchecked,
    /// `VersionCounter::begin_change` lets a change become visible before the odd version.
    ChangeUnfenced,
    /// `VersionCounter::is_unchanged` lets the version be loaded before the data that it validates.
    ValidationUnfenced,
    /// Entries are removed and items move without a change of the version.
    ChangeUncounted,
    /// `Cache::begin_era` does not wait for writers who compared eras before.
    EraUnawaited,
    /// Readers that do not find a key do not check whether its item was stored inline after they looked there.
    AbsenceUnchecked,
    /// A zone of a surviving cache is written again before its new version is seen.
    ZoneUnfenced,
    /// An item leaves the write cache before it is in the file.
    CooledTooEarly,
    /// An item that is evicted from a log leaves it before the compressed zone has it.
    DemotedTooLate,
    /// An item of the compressed zone is promoted without a look whether its block has changed since it was read.
    PromotedUnchecked,
}

#[cfg(loom)]
thread_local! {
    // The model checker runs all threads of a test in the thread that started it, so tests do not disturb one another.
    static BROKEN: std::cell::Cell<Option<Canary>> = const { std::cell::Cell::new(None) };
}

/// Whether this rule is currently broken.
#[inline(always)]
pub(crate) fn is_broken(canary: Canary) -> bool {
    #[cfg(loom)]
    return BROKEN.get() == Some(canary);
    #[cfg(not(loom))]
    {
        let _ = canary;
        false
    }
}

/// Breaks a rule in the tests that this thread runs from now on, or none.
#[cfg(loom)]
pub fn break_rule(canary: Option<Canary>) {
    BROKEN.set(canary);
}
