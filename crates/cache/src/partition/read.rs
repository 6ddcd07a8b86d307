//! The general read, which any thread may do at any time.

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::canary::{Canary, is_broken};
use crate::index::bucket::{Bucket, Version};
use crate::index::{Entry, Index, Versioned};
use crate::item::{Fast, Metadata, Value};
use crate::region::Region;
use crate::sync::spin_hint;

use super::Partition;
use super::body::Body;
use super::policy::Policy;

impl<P: Policy, A: Access> Partition<P, A> {
    /// Finds the item of `key`, whose hash is `hash`, and returns the result of `extract`. Beside a writer `extract`
    /// may be called several times, with inconsistent bytes; only the result of the last call counts.
    ///
    /// Counts an access for the eviction policy, but no hit or miss. `ways` are checked before the others.
    #[inline(always)]
    pub fn read<T>(
        &self,
        hash: KeyHash,
        key: &[u8],
        ways: u32,
        mut extract: impl FnMut(Value<'_>, Metadata) -> T,
    ) -> Option<T> {
        match self.try_read(hash, key, ways, &mut extract) {
            Some(outcome) => outcome,
            None => self.read_again(hash, key, &mut extract),
        }
    }

    /// Not inline, so that the common case is not a loop, before which the compiler would prepare values that a
    /// repetition needs.
    #[cold]
    #[inline(never)]
    fn read_again<T>(
        &self,
        hash: KeyHash,
        key: &[u8],
        extract: &mut impl FnMut(Value<'_>, Metadata) -> T,
    ) -> Option<T> {
        loop {
            spin_hint();
            if let Some(outcome) = self.try_read(hash, key, 0, extract) {
                return outcome;
            }
        }
    }

    /// The outcome of a read; `None` if a writer interfered.
    #[inline(always)]
    fn try_read<T>(
        &self,
        hash: KeyHash,
        key: &[u8],
        ways: u32,
        extract: &mut impl FnMut(Value<'_>, Metadata) -> T,
    ) -> Option<Option<T>> {
        let body = self.body.get();
        let absence = match body.look_inline(hash, key) {
            Fast::Hit(seen) => {
                let value = extract(seen.cell.value(), Metadata::default());
                return self.confirm_inline(body, &seen).then_some(Some(value));
            }
            Fast::Retry => return None,
            Fast::Miss(absence) => absence,
        };
        let place = body.index.place(hash);
        let first = body.index.first(place);
        let version = self.begin_read(first);
        let found = body.find_beginning_with(place, ways, key);
        // No closures here: the result of one that is not inlined is stored, and loading it waits for the item.
        let read = match found {
            Some(found) => {
                let metadata = found.stored.metadata();
                Some((found, metadata, extract(found.stored.value(), metadata)))
            }
            None => None,
        };
        if let Some(version) = version
            && !self.is_valid(body, first, version, found.map(|found| found.entry))
        {
            return None;
        }
        let Some((found, metadata, value)) = read else { return absence.still_holds().then_some(None) };
        if self.is_expired(metadata) {
            return Some(None);
        }
        P::on_hit(self, body, &found, hash);
        Some(Some(value))
    }

    /// Waits until no change of the chain with this first bucket is in progress. `None` if none can be.
    ///
    /// # Panics
    /// If a change of it has ended by a panic and the policy refuses what it left.
    #[inline(always)]
    pub(super) fn begin_read(&self, first: &Bucket) -> Option<Version> {
        if !A::READS_BESIDE_WRITES && !P::REFUSES_BROKEN {
            return None;
        }
        loop {
            let version = first.version().at_rest();
            if version.is_some() {
                return version;
            }
            self.policy.refuse_if_broken();
            spin_hint();
        }
    }

    /// Whether what was loaded since `version` was taken is consistent.
    #[inline(always)]
    fn is_valid(&self, body: &Body<P>, first: &Bucket, version: Version, entry: Option<Entry>) -> bool {
        self.is_at_rest(body, first, version)
            && (!self.policy.leaves_entries()
                || is_broken(Canary::HeadUnchecked)
                || entry.is_none_or(|entry| body.region.contains(entry)))
    }
}
