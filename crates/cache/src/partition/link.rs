//! Changes of the index, as the only writer.

use crate::access::Access;
use crate::canary::{Canary, is_broken};
use crate::eviction::Eviction;
use crate::index::bucket::{Bucket, WAYS};
use crate::index::{Entry, VersionCounter};
use crate::sync::AtomicU64;

use super::body::{Body, Found};
use super::{Counters, Partition};

impl<A: Access> Partition<A> {
    /// Makes a change of a bucket or of an item of it; readers see all of it or nothing.
    #[inline(always)]
    pub(super) fn change<T>(&self, version: &VersionCounter, change: impl FnOnce() -> T) -> T {
        self.begin_change(version);
        let outcome = change();
        self.end_change(version);
        outcome
    }

    /// Begins a [`change`](Self::change).
    #[inline(always)]
    pub(super) fn begin_change(&self, version: &VersionCounter) {
        if A::READS_BESIDE_WRITES && !is_broken(Canary::ChangeUncounted) {
            version.begin_change();
        }
    }

    /// Ends a [`change`](Self::change).
    #[inline(always)]
    pub(super) fn end_change(&self, version: &VersionCounter) {
        if A::READS_BESIDE_WRITES && !is_broken(Canary::ChangeUncounted) {
            version.end_change();
        }
    }

    /// Removes an entry and counts it under `reason`.
    #[inline(always)]
    pub(super) fn unlink(&self, bucket: &Bucket, way: usize, reason: &AtomicU64) {
        self.change(bucket.version(), || {
            bucket.set_entry(way, Entry::EMPTY);
            bucket.counts().set(way, 0);
        });
        Counters::count(reason);
    }

    /// Gives a key its new entry, in place of `before` if that is still there.
    #[inline(always)]
    pub(super) fn link(&self, body: &Body, bucket: &Bucket, before: Option<(usize, u32)>, entry: Entry) {
        let (way, count) = match before {
            Some(before) => {
                Counters::count(&self.counters.replaced);
                before
            }
            None => {
                let way = bucket.empty_way().unwrap_or_else(|| self.make_way(body, bucket));
                Counters::count(&self.counters.inserted);
                (way, 0)
            }
        };
        self.change(bucket.version(), || {
            bucket.set_entry(way, entry);
            bucket.counts().set(way, count);
        });
    }

    /// Chooses the entry of a full bucket that is forgotten: one whose item is gone, else the least accessed, else the
    /// one whose item would be evicted first.
    #[cold]
    pub(super) fn make_way(&self, body: &Body, bucket: &Bucket) -> usize {
        let counts = matches!(self.common.eviction, Eviction::S3Fifo | Eviction::ApproximateLru);
        let (way, is_there) = (0..WAYS)
            .map(|way| {
                let entry = bucket.entry(way);
                let log = body.log(entry);
                if !log.contains(entry.position()) {
                    return (way, (false, 0, 0));
                }
                let count = if counts { bucket.counts().get(way) } else { 0 };
                (way, (true, count, log.layout().distance(log.head(), entry.position())))
            })
            .min_by_key(|&(_, rank)| rank)
            .map_or((0, false), |(way, (is_there, ..))| (way, is_there));
        let reason = if is_there { &self.counters.evicted_by_index } else { &self.counters.evicted };
        self.unlink(bucket, way, reason);
        way
    }

    /// The way of an entry found earlier, if it is still the same; items that moved meanwhile are looked for by key.
    #[inline(always)]
    pub(super) fn find_again<'a>(
        &self,
        found: &Found<'a>,
        key: &[u8],
        place: crate::index::Place,
    ) -> Option<Found<'a>> {
        if found.bucket.entry(found.way) == found.entry {
            return Some(*found);
        }
        found.body.find(place, key)
    }
}
