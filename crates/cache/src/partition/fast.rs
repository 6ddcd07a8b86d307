//! The common case of a read, in few instructions.
//!
//! A get waits for two accesses to memory, the bucket and then the item. The accesses of several gets overlap as far as
//! the processor looks ahead, which is a few hundred instructions and some hundred stores (decision 0036). So the code
//! that most gets need is repeated here from `read`, without loops, closures and results in memory. It handles a bucket
//! that no thread is changing, and an item to which the first entry with the key's tag refers, without expiry or flags.
//! Everything else is [`Fast::Retry`], for which `read` looks again. The common case of a set overwrites such an item.

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::index::bucket::{Bucket, Version};
use crate::index::{Entry, Index, Versioned};
use crate::item::{Fast, Header, Stored, Target};
use crate::memory::UNIT_BYTES;
use crate::region::Region;
use crate::sync::Ordering;

use super::body::Body;
use super::cells::Ahead;
use super::policy::Policy;
use super::{Counters, Partition};

/// Items of more bytes are prefetched as a whole once an entry has the key's tag, before their first bytes show whether
/// the key matches. Shorter ones reach the caches as fast by the processor's own prefetching.
const PREFETCHED_BYTES_MIN: usize = 100;

/// Where a key's item appears to be.
struct Seen<'a> {
    bucket: &'a Bucket,
    version: Version,
    way: usize,
    entry: Entry,
    stored: Stored<'a>,
}

impl<P: Policy, A: Access> Partition<P, A> {
    /// Copies the value of `key`, whose hash is `hash`, to `target`, in the common case. Counts an access for the
    /// eviction policy, but no hit or miss.
    #[inline(always)]
    pub(super) fn fast<T: Target>(
        &self,
        hash: KeyHash,
        key: &[u8],
        ahead: Ahead,
        target: T,
    ) -> Fast<T::Copied> {
        let body = self.body.get();
        let absence = match body.see_inline(hash, key, ahead) {
            Fast::Hit(seen) => {
                let Some(copied) = target.copy(seen.cell.value()) else { return Fast::Retry };
                return if self.confirm_inline(body, &seen) { Fast::Hit(copied) } else { Fast::Retry };
            }
            Fast::Retry => return Fast::Retry,
            Fast::Miss(absence) => absence,
        };
        let seen = match self.see(body, hash, key, ahead.ways()) {
            Fast::Hit(seen) => seen,
            Fast::Miss(()) if absence.still_holds() => return Fast::Miss(()),
            Fast::Miss(()) | Fast::Retry => return Fast::Retry,
        };
        let Some(copied) = seen.stored.plain_value(key.len()).and_then(|value| target.copy(value)) else {
            return Fast::Retry;
        };
        if !self.is_at_rest(body, seen.bucket, seen.version) {
            return Fast::Retry;
        }
        P::Index::count_access(seen.bucket, seen.way, self.counted_max);
        Fast::Hit(copied)
    }

    /// Overwrites the value of `key` in place, if the fast path finds that it has one and that there is room; returns
    /// whether it did. The look's cache misses come before the gate, which may be a barrier to the processor, so they
    /// overlap with those of earlier operations.
    #[inline(always)]
    pub(super) fn overwrite(&self, hash: KeyHash, key: &[u8], ways: u32, value: &[u8]) -> bool {
        let body = self.body.get();
        let Fast::Hit(seen) = self.see(body, hash, key, ways) else { return false };
        if !self.is_at_rest(body, seen.bucket, seen.version) {
            return false;
        }
        let _writing = self.enter();
        // The entry's item had this key, and still does while the entry is the same: positions repeat only after many
        // laps, and the index forgets them before.
        let is_same = self.body.is_current(body) && seen.bucket.entry(seen.way) == seen.entry;
        let Stored { ring, unit, .. } = seen.stored;
        let header = Header(ring.word(unit).load(Ordering::Relaxed));
        if !is_same || !header.is_plain(key.len()) || self.policy.is_upkeep_due() {
            return false;
        }
        let Some(header) = header.with_value_len(value.len()) else { return false };
        let changing = self.begin_change(seen.bucket);
        ring.word(unit).store(header.0, Ordering::Relaxed);
        ring.copy_in((unit + 1) * UNIT_BYTES + key.len(), value);
        changing.end();
        P::Index::count_access(seen.bucket, seen.way, self.counted_max);
        Counters::count(&self.counters.updated_in_place);
        true
    }

    /// The item of `key` in the region, not validated yet.
    #[inline(always)]
    fn see<'a>(&self, body: &'a Body<P>, hash: KeyHash, key: &[u8], ways: u32) -> Fast<Seen<'a>> {
        if !self.policy.only_counts() {
            return Fast::Retry;
        }
        let place = body.index.place(hash);
        let bucket = body.index.first(place);
        let Some(version) = bucket.version().at_rest() else { return Fast::Retry };
        let are_known = ways != 0;
        let ways = if are_known { ways } else { bucket.matches(place.tag) };
        if ways == 0 {
            let is_valid = body.index.next(bucket).is_none() && self.is_at_rest(body, bucket, version);
            return if is_valid { Fast::Miss(()) } else { Fast::Retry };
        }
        let way = ways.trailing_zeros() as usize;
        let entry = bucket.entry(way);
        // A known way may be outdated. An empty entry would refer to the first item, dead or not.
        if are_known && entry.tag() != place.tag {
            return Fast::Retry;
        }
        let site = body.region.site(entry);
        if !are_known && body.tables.payload > PREFETCHED_BYTES_MIN {
            site.prefetch(body.tables.item_bytes());
        }
        match site.plain_item_of(key) {
            Some(stored) => Fast::Hit(Seen { bucket, version, way, entry, stored }),
            None => Fast::Retry,
        }
    }

    /// Whether neither the bucket nor the body has changed since `version` was taken.
    #[inline(always)]
    pub(super) fn is_at_rest(&self, body: &Body<P>, bucket: &Bucket, version: Version) -> bool {
        // `is_unchanged` starts with the acquire fence on which further checks rely as well.
        bucket.version().is_unchanged(version) && self.body.is_current(body)
    }
}
