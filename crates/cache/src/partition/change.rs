//! Changes of a bucket or of one of its items, which readers see as a whole or not at all, by the only writer.

use std::mem;

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::canary::{Canary, is_broken};
use crate::index::{Entry, Index, Slot, Versioned};
use crate::region::Region;
use crate::sync::AtomicU64;

use super::body::{Body, Found};
use super::policy::Policy;
use super::{Counters, Partition};

/// A change of a bucket that is in progress.
///
/// A change never calls code of the user, so none should end by a panic. One that does may leave the bucket's items in
/// any state, and readers would wait for its end forever. So in that case the policy abandons the bucket, and readers
/// continue or are refused.
pub(super) struct Changing<'a, P: Policy, A: Access, B: Versioned> {
    partition: &'a Partition<P, A>,
    bucket: &'a B,
}

impl<P: Policy, A: Access, B: Versioned> Changing<'_, P, A, B> {
    /// Ends the change normally.
    #[inline(always)]
    pub fn end(self) {
        self.end_version();
        mem::forget(self);
    }

    #[inline(always)]
    fn end_version(&self) {
        if A::READS_BESIDE_WRITES && !is_broken(Canary::ChangeUncounted) {
            self.bucket.version().end_change();
        }
    }
}

impl<P: Policy, A: Access, B: Versioned> Drop for Changing<'_, P, A, B> {
    #[cold]
    fn drop(&mut self) {
        P::abandon(self.partition, self.bucket);
        if !P::REFUSES_BROKEN {
            self.end_version();
        } else if self.bucket.version().at_rest().is_some() {
            self.bucket.version().begin_change();
        }
    }
}

impl<P: Policy, A: Access> Partition<P, A> {
    /// Changes a bucket or one of its items; readers see the whole change or nothing of it. The first bucket of a chain
    /// stands for all of them.
    ///
    /// # Panics
    /// If an earlier change has ended by a panic and the policy refuses what it left.
    #[inline(always)]
    pub fn change<T>(&self, bucket: &impl Versioned, change: impl FnOnce() -> T) -> T {
        let changing = self.begin_change(bucket);
        let outcome = change();
        changing.end();
        outcome
    }

    /// Begins a [`change`](Self::change).
    #[inline(always)]
    pub(super) fn begin_change<'a, B: Versioned>(&'a self, bucket: &'a B) -> Changing<'a, P, A, B> {
        if P::REFUSES_BROKEN && bucket.version().at_rest().is_none() {
            self.policy.refuse_if_broken();
        }
        if A::READS_BESIDE_WRITES && !is_broken(Canary::ChangeUncounted) {
            bucket.version().begin_change();
        }
        Changing { partition: self, bucket }
    }

    /// Removes an entry, whose item leaves the region, and counts it in `reason`.
    #[inline(always)]
    pub fn unlink(&self, body: &Body<P>, chain: usize, slot: Slot, reason: &AtomicU64) {
        let entry = body.index.entry(slot);
        self.change(&body.index.buckets()[chain], || body.index.remove(chain, slot));
        body.region.free(entry);
        Counters::count(reason);
    }

    /// Stores a key's new entry, in place of `before` if that is still present.
    ///
    /// # Errors
    /// The policy's refusal, if there is no room in the index.
    #[inline(always)]
    pub fn link(
        &self,
        body: &Body<P>,
        hash: KeyHash,
        before: Option<&Found<'_>>,
        entry: Entry,
    ) -> Result<(), P::Refusal> {
        let place = body.index.place(hash);
        let (slot, count) = match before {
            Some(before) => {
                Counters::count(&self.counters.replaced);
                (before.slot, self.policy.replaced_count(body.index.count(before.slot)))
            }
            None => {
                let slot = match body.index.vacancy(place.bucket) {
                    Some(slot) => slot,
                    None => P::make_way(self, body, place.bucket)?,
                };
                Counters::count(&self.counters.inserted);
                (slot, 0)
            }
        };
        self.change(body.index.first(place), || body.index.put(place.bucket, slot, entry, count));
        if before.is_none() {
            P::on_insert(self, hash);
        }
        Ok(())
    }

    /// An item found earlier, if it still has the same entry; one that moved meanwhile is looked up by key.
    #[inline(always)]
    pub(super) fn find_again<'a>(
        &self,
        body: &'a Body<P>,
        found: Found<'a>,
        key: &[u8],
    ) -> Option<Found<'a>> {
        if found.bucket.entry(found.slot.way) == found.entry {
            return Some(found);
        }
        body.find(found.place, key)
    }
}
