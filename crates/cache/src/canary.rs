//! Orderings that the model checker's stories break on purpose, to show that they would notice.
//!
//! A canary is asked for where the rule it breaks stands. Without loom the answer is the constant `false`, and nothing
//! of it is compiled.

/// A rule that can be broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// `CircularLog::reserve` lets words of a new item be seen before the eviction that made room for it.
    ReserveUnfenced,
    /// The same of `Space::allocate`, in a store.
    AllocationUnfenced,
    /// Readers under FIFO don't ask whether the item's place was evicted meanwhile.
    HeadUnchecked,
    /// `VersionCounter::begin_change` lets what is changed be seen before the odd version.
    ChangeUnfenced,
    /// `VersionCounter::is_unchanged` lets the version be loaded before what it vouches for.
    ValidationUnfenced,
    /// Entries leave and items move without a change of the version.
    ChangeUncounted,
    /// Readers that find a key nowhere don't ask whether its item came inline since they looked there.
    AbsenceUnchecked,
}

#[cfg(loom)]
thread_local! {
    // The model checker runs all threads of a story in the thread that began it, so stories don't disturb one another.
    static BROKEN: std::cell::Cell<Option<Canary>> = const { std::cell::Cell::new(None) };
}

/// Whether this rule is to be broken.
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

/// Breaks a rule for the stories that this thread tells from now on, or none.
#[cfg(loom)]
pub fn break_rule(canary: Option<Canary>) {
    BROKEN.set(canary);
}
