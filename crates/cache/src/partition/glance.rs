//! The common case of a get, in few instructions.
//!
//! A get waits for two accesses to memory, the bucket and then the item. The accesses of several gets overlap as far as
//! the processor looks ahead, which is a few hundred instructions and some hundred stores (decision 0036). So the code
//! that most gets need is repeated here from `read`, without loops, closures and results in memory. It handles a bucket
//! that no thread is changing, and an item to which the first entry with the key's tag refers, without expiry or flags
//! and with a short value. Everything else is [`Glance::Unusual`], for which `read` looks again. The common case of a
//! set overwrites such an item.

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::index::bucket::{Bucket, Version};
use crate::index::{Entry, Versioned};
use crate::item::{Glance, Header, Room, plain_header_of};
use crate::log::{CircularLog, Position};
use crate::memory::UNIT_BYTES;
use crate::sync::Ordering;

use super::body::Body;
use super::inline::{Ahead, Look};
use super::{Counters, Partition};

/// Items of more bytes are prefetched as a whole once an entry has the key's tag, before their first bytes show whether
/// the key matches. Shorter ones reach the caches as fast by the processor's own prefetching.
const PREFETCHED_BYTES_MIN: usize = 100;

/// Where a key's item appears to be.
struct Seen<'a> {
    body: &'a Body,
    bucket: &'a Bucket,
    version: Version,
    way: usize,
    entry: Entry,
    log: &'a CircularLog,
    unit: usize,
    header: Header,
}

/// As [`Glance`], before it is validated or used.
enum Sight<'a> {
    Item(Seen<'a>),
    Nothing,
    Unusual,
}

impl<A: Access> Partition<A> {
    /// Finds the value of `key`, whose hash is `hash`, if a glance suffices. Counts an access for the eviction policy,
    /// but no hit or miss.
    #[inline(always)]
    pub fn glance<'a>(&self, hash: KeyHash, key: &[u8], ahead: Ahead, room: &'a mut Room) -> Glance<'a> {
        let body = self.body.get();
        let absence = match self.glance_inline(body, hash, key, ahead) {
            Look::Item(seen) => {
                let (ring, start) = seen.item.cell.value_place();
                let Some(room) = room.get_mut(..seen.item.cell.value_len()) else { return Glance::Unusual };
                let value = ring.copy_into(start, room);
                return if self.confirm_inline(body, &seen) { Glance::Hit(value) } else { Glance::Unusual };
            }
            Look::Unusual => return Glance::Unusual,
            Look::Absent(absence) => absence,
        };
        let seen = match self.see(body, hash, key, ahead.ways()) {
            Sight::Item(seen) => seen,
            Sight::Nothing if absence.still_holds() => return Glance::Miss,
            Sight::Nothing | Sight::Unusual => return Glance::Unusual,
        };
        let value_len = seen.header.plain_value_len(key.len());
        let Some(room) = value_len.and_then(|len| room.get_mut(..len)) else { return Glance::Unusual };
        let value = seen.log.ring().copy_into((seen.unit + 1) * UNIT_BYTES + key.len(), room);
        if !self.is_at_rest(seen.body, seen.bucket, seen.version) {
            return Glance::Unusual;
        }
        seen.bucket.counts().count(seen.way, self.counted_max);
        Glance::Hit(value)
    }

    /// Overwrites the value of `key` in place, if a glance shows that it has one and that there is room; returns
    /// whether it did. The look's cache misses come before the gate, which may be a barrier to the processor, so they
    /// overlap with those of earlier operations.
    #[inline(always)]
    pub fn overwrite(&self, hash: KeyHash, key: &[u8], ways: u32, value: &[u8]) -> bool {
        let Sight::Item(seen) = self.see(self.body.get(), hash, key, ways) else { return false };
        if !self.is_at_rest(seen.body, seen.bucket, seen.version) {
            return false;
        }
        let _writing = self.enter();
        // The entry's item had this key, and still does while the entry is the same: positions repeat only after many
        // laps, and the index forgets them before.
        let is_same = self.body.is_current(seen.body) && seen.bucket.entry(seen.way) == seen.entry;
        let ring = seen.log.ring();
        let header = Header(ring.word(seen.unit).load(Ordering::Relaxed));
        if !is_same || !header.is_plain(key.len()) || self.is_upkeep_due() {
            return false;
        }
        let Some(header) = header.with_value_len(value.len()) else { return false };
        let changing = self.begin_change(seen.bucket);
        ring.word(seen.unit).store(header.0, Ordering::Relaxed);
        ring.copy_in((seen.unit + 1) * UNIT_BYTES + key.len(), value);
        changing.end();
        seen.bucket.counts().count(seen.way, self.counted_max);
        Counters::count(&self.counters.updated_in_place);
        true
    }

    #[inline(always)]
    fn see<'a>(&self, body: &'a Body, hash: KeyHash, key: &[u8], ways: u32) -> Sight<'a> {
        if self.counted_max == 0 {
            return Sight::Unusual;
        }
        let place = body.index.place(hash);
        let bucket = body.index.bucket(place);
        let Some(version) = bucket.version().at_rest() else { return Sight::Unusual };
        let are_known = ways != 0;
        let ways = if are_known { ways } else { bucket.matches(place.tag) };
        if ways == 0 {
            let is_valid = self.is_at_rest(body, bucket, version);
            return if is_valid { Sight::Nothing } else { Sight::Unusual };
        }
        let way = ways.trailing_zeros() as usize;
        let entry = bucket.entry(way);
        // A known way may be outdated. An empty entry would refer to the first item, dead or not.
        if are_known && entry.tag() != place.tag {
            return Sight::Unusual;
        }
        let log = body.log(entry);
        // The number of a word is the lowest part of a position, which is the lowest part of an entry.
        let unit = log.layout().unit(Position(entry.0));
        if !are_known && body.shape.payload > PREFETCHED_BYTES_MIN {
            log.ring().prefetch(unit, body.shape.item_bytes());
        }
        match plain_header_of(log.ring(), unit, log.item_words_max(), key) {
            Some(header) => Sight::Item(Seen { body, bucket, version, way, entry, log, unit, header }),
            None => Sight::Unusual,
        }
    }

    /// Whether neither the bucket nor the body has changed since `version` was taken.
    #[inline(always)]
    pub(super) fn is_at_rest(&self, body: &Body, bucket: &Bucket, version: Version) -> bool {
        // `is_unchanged` starts with the acquire fence on which further checks rely as well.
        bucket.version().is_unchanged(version) && self.body.is_current(body)
    }
}
