//! Changes of a chain, which readers see as a whole or not at all, and what remains of a change that panics.

use std::mem;

use crate::access::Access;
use crate::canary::{Canary, is_broken};
use crate::index::bucket::{Bucket, Version};
use crate::index::{Place, VersionCounter, Versioned};
use crate::sync::{AtomicU32, Ordering, spin_hint};

use super::chains::Chains;
use super::partition::Partition;

/// Marks the partition as broken when dropped; a change that succeeds forgets it.
struct Breaking<'a> {
    is_broken: &'a AtomicU32,
    version: &'a VersionCounter,
    /// Whether the version is already odd.
    is_counted: bool,
}

impl Drop for Breaking<'_> {
    #[cold]
    fn drop(&mut self) {
        self.is_broken.store(1, Ordering::Relaxed);
        if !self.is_counted {
            self.version.begin_change();
        }
    }
}

impl<A: Access> Partition<A> {
    /// Waits until no change of the chain is in progress.
    ///
    /// # Panics
    /// If a change of it has ended by a panic: its items may have any state, and a store forgets nothing.
    #[inline(always)]
    pub(super) fn begin_read(&self, first: &Bucket) -> Version {
        loop {
            if let Some(version) = first.version().at_rest() {
                return version;
            }
            self.refuse_if_broken();
            spin_hint();
        }
    }

    /// Whether neither the chain nor the index has changed since `version` was taken.
    #[inline(always)]
    pub(super) fn is_at_rest(&self, chains: &Chains, first: &Bucket, version: Version) -> bool {
        // `is_unchanged` starts with the acquire fence on which the other check relies as well.
        first.version().is_unchanged(version) && self.chains.is_current(chains)
    }

    #[cold]
    fn refuse_if_broken(&self) {
        let is_broken = self.is_broken.load(Ordering::Relaxed) != 0;
        assert!(!is_broken, "a part of the store is unusable since a write to it panicked");
    }

    /// Changes a chain or one of its items; readers see the whole change or nothing of it.
    ///
    /// # Panics
    /// If an earlier change of the chain has ended by a panic.
    pub(super) fn change<T>(&self, place: Place, change: impl FnOnce() -> T) -> T {
        let version = self.chains.get().first(place).version();
        let is_counted = A::READS_BESIDE_WRITES && !is_broken(Canary::ChangeUncounted);
        if version.at_rest().is_none() {
            self.refuse_if_broken();
        }
        if is_counted {
            version.begin_change();
        }
        let breaking = Breaking { is_broken: &self.is_broken, version, is_counted };
        let outcome = change();
        mem::forget(breaking);
        if is_counted {
            version.end_change();
        }
        outcome
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::access::{Concurrent, Exclusive};
    use crate::hasher::Hasher;
    use crate::store::partition::Plan;
    use crate::store::sizes::Sizes;

    /// A change never calls code of the user. If one panics nevertheless, its chain is refused: readers do not wait
    /// forever, and never see half of an item.
    fn a_broken_chain_is_refused<A: Access>() {
        let sizes = Sizes::of::<A>(1 << 20, 24).unwrap();
        let plan = Plan { sizes, hasher: Hasher::default(), keeps_places: false };
        let partition = Partition::<A>::new(plan.clone()).unwrap();
        let hash = |number: u64| plan.hasher.hash(&number.to_le_bytes());
        let get = |number: u64| {
            let mut value = Vec::new();
            let get = || partition.get_into(hash(number), &number.to_le_bytes(), &mut value).is_some();
            catch_unwind(AssertUnwindSafe(get))
        };
        let set = |number: u64| {
            let set = || partition.set(hash(number), &number.to_le_bytes(), b"value").is_ok();
            catch_unwind(AssertUnwindSafe(set))
        };
        (0..1000).for_each(|number| assert!(set(number).unwrap()));
        let place = partition.chains.get().place(hash(7));
        let change = || partition.change(place, || panic!("in the middle"));
        assert!(catch_unwind(AssertUnwindSafe(change)).is_err());
        assert!(get(7).is_err() && set(7).is_err());
        let refused = (0..1000).filter(|&number| get(number).is_err()).count();
        assert!((1..40).contains(&refused), "{refused} keys of the chain");
        assert_eq!((0..1000).filter(|&number| set(number).is_err()).count(), refused);
    }

    #[test]
    fn a_panic_within_a_change_makes_its_chain_unusable_but_stops_nobody() {
        a_broken_chain_is_refused::<Concurrent>();
        a_broken_chain_is_refused::<Exclusive>();
    }
}
