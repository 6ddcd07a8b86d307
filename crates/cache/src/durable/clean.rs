//! The zones of a partition, in a circle, and how they are cleaned.
//!
//! ```text
//!   older zones … | active: new items | ready: items to keep | victim: looked through | … older zones
//! ```
//!
//! While the active zone fills, the victim is looked through at twice the pace, and items that were used since are
//! copied to the beginning of the ready zone. When the active zone is full, the victim gets a new version: all its
//! descriptors are stale from then on, with one flush. The ready zone becomes the active one, its items to keep end at
//! its hot line, and the victim becomes the ready zone.
//!
//! The thesis (§5.2.3) gives the victim its new version first and then keeps items in place. They are absent meanwhile,
//! and an item that is moved within the zone overwrites others. Here an item is always present at one of two places
//! with the same content, so a crash or a reader may find either, and the copy needs no flush.
//!
//! After a crash the end of what was written in the active and the ready zone is unknown. Both stay as they are, and
//! the zone after them is renewed, as the thesis does with the next one. Access counts are gone, so items before the
//! hot line are kept.

use std::mem;
use std::ops::Range;

use alluvium_base::KeyHash;

use crate::canary::{Canary, is_broken};
use crate::index::partition_of;
use crate::item::Metadata;
use crate::pipeline::BATCH_LEN;
use crate::sync::{Ordering, add_alone, fence};

use super::block::BlockHead;
use super::descriptor::{Descriptor, Place, UNIT};
use super::geometry::WAYS;
use super::medium::{Medium, Mistake, word_at};
use super::pack::Packs;
use super::part::{Part, State};
use super::shared::Shared;
use super::stored_item::{EXPIRY, Head, StoredItem};
use super::write_cache::Popularity;

/// The victim is looked through in slices of this many units, 4 KiB, so that accesses to the buckets of their items
/// overlap; a set that does it takes a few microseconds longer.
const SLICE_UNITS_MAX: usize = 256;
/// Slices that a zone has at least.
const SLICES_MIN: usize = 64;

/// An item in the victim, or what looks like one.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    /// In units from the zone's beginning.
    offset: usize,
    record: Record,
    hash: KeyHash,
}

/// Its head.
#[derive(Clone, Copy, Debug)]
enum Record {
    Item(Head),
    Block(BlockHead),
}

/// What the writer of a partition knows. Zones are counted in the partition.
#[derive(Debug, Default)]
pub(crate) struct Hands {
    /// The zone that takes new items.
    pub active: usize,
    /// By zone: units that may have been written since it got its version.
    pub used: Vec<usize>,
    /// By zone: whether it got its version in this process, so that all accesses of its items were counted.
    pub is_counted: Vec<bool>,
    /// Units of the victim that were looked through.
    scan: usize,
    /// The first victim after a crash is only looked through up to its hot line: no count says more.
    pub ends_at_hot_line: bool,
    /// An item as it is stored.
    pub bytes: Vec<u8>,
    /// An item that leaves the write cache.
    pub cooled: Vec<u8>,
    /// Of blocks.
    pub packs: Packs,
    /// Of the write cache.
    pub popularity: Popularity,
    /// Only for a planted mistake: a zone whose version was not flushed.
    late: Option<usize>,
}

impl Hands {
    /// Those of a new partition, or of one whose stores are all there.
    pub fn resumed<M: Medium>(shared: &Shared<M>, partition: usize, active: usize, is_new: bool) -> Self {
        let zones = shared.geometry.zones;
        let used = (0..zones).map(|zone| shared.used(partition * zones + zone)).collect();
        Self { active, used, is_counted: vec![is_new; zones], ..Self::default() }
    }

    /// Those of a partition after a crash: anything may have been written.
    pub fn after_crash<M: Medium>(shared: &Shared<M>, active: usize) -> Self {
        let geometry = &shared.geometry;
        Self {
            active: (active + 1) % geometry.zones,
            used: vec![geometry.zone_units(); geometry.zones],
            is_counted: vec![false; geometry.zones],
            ends_at_hot_line: true,
            ..Self::default()
        }
    }

    /// Changes whenever items may have moved or left.
    pub fn progress(&self) -> (usize, usize) {
        (self.active, self.scan)
    }

    fn following(&self, by: usize) -> usize {
        (self.active + by) % self.used.len()
    }

    /// The zone that is free behind the items to keep.
    pub fn ready(&self) -> usize {
        self.following(1)
    }

    /// The zone that is being cleaned.
    pub fn victim(&self) -> usize {
        self.following(2)
    }
}

impl<M: Medium> Part<M> {
    /// Writer: takes room for `units` units, at most those of the largest item.
    #[inline]
    pub fn reserve(&self, hands: &mut Hands, units: usize) -> Place {
        let zone_units = self.shared.geometry.zone_units();
        while hands.used[hands.active] + units > zone_units {
            self.advance(hands);
        }
        let place = self.take(hands, hands.active, units);
        let end = place.offset + units;
        // The next item likely has this size. Its stores would wait for their lines, and the next lock for the stores.
        let next = self.shared.geometry.unit_at(place.zone, end.min(zone_units));
        self.shared.medium.prefetch(next, units * UNIT);
        let target = self.pace(place.zone, end);
        if target >= hands.scan + self.slice_units() {
            self.clean_until(hands, target);
        }
        place
    }

    /// Takes room in a zone that has it.
    #[inline]
    pub(super) fn take(&self, hands: &mut Hands, zone: usize, units: usize) -> Place {
        let offset = hands.used[zone];
        hands.used[zone] = offset + units;
        let zone = self.zone(zone);
        self.shared.set_used(zone, offset + units);
        // Who sees one of the words written after this line also sees the zone's new version, and after a crash of the
        // process, that these units are used.
        if !is_broken(Canary::ZoneUnfenced) {
            fence(Ordering::Release);
        }
        Place { zone, version: self.shared.version(zone), offset }
    }

    /// Makes the ready zone the active one.
    fn advance(&self, hands: &mut Hands) {
        self.clean_until(hands, usize::MAX);
        self.write_block(hands);
        let (ready, victim) = (hands.ready(), hands.victim());
        if hands.used[victim] > 0 {
            self.renew(hands, victim);
        }
        self.shared.set_hot_line(self.zone(ready), hands.used[ready]);
        self.shared.set_active(self.number, ready);
        hands.active = ready;
        hands.scan = 0;
        hands.ends_at_hot_line = false;
        add_alone(&self.counters.cleanings, 1);
        self.begin_packing(hands);
    }

    /// Gives a zone a new version: nothing in it counts from now on, also after a crash, and it may be written again.
    pub fn renew(&self, hands: &mut Hands, zone: usize) {
        let of_file = self.zone(zone);
        let version = self.shared.version(of_file);
        let next = if version >= self.shared.geometry.version_max() {
            if !self.shared.medium.makes(Mistake::WrapUnscrubbed) {
                self.scrub(of_file);
            }
            1
        } else {
            version + 1
        };
        self.shared.set_version(of_file, next);
        if self.shared.medium.makes(Mistake::VersionAfterReuse) {
            if let Some(late) = hands.late.replace(of_file) {
                self.shared.flush_zone_line(late);
            }
        } else {
            self.shared.flush_zone_line(of_file);
        }
        hands.used[zone] = 0;
        hands.is_counted[zone] = true;
        self.shared.set_used(of_file, 0);
        self.shared.set_hot_line(of_file, 0);
        if let Some(packing) = &self.shared.packing {
            self.shared.set_packed(of_file, 0);
            if let (Some(dictionaries), Some(named)) =
                (&packing.dictionaries, hands.packs.named.get_mut(zone))
            {
                dictionaries.forget(named);
            }
        }
    }

    /// Removes all items.
    pub fn clear(&self) {
        let mut hands = self.enter();
        self.forget_hot(&mut hands);
        self.forget_pending(&mut hands);
        for zone in 0..self.shared.geometry.zones {
            if hands.used[zone] > 0 {
                self.renew(&mut hands, zone);
            }
        }
        hands.scan = 0;
    }

    /// Continues after a crash, with [`Hands::after_crash`].
    pub fn recover(&self) {
        let mut hands = self.enter();
        // What the crash left of these words may be too low, and the next process may rely on them.
        for (zone, &used) in hands.used.iter().enumerate() {
            self.shared.set_used(self.zone(zone), used);
        }
        let ready = hands.ready();
        if !self.shared.medium.makes(Mistake::PromotedFromReady) {
            self.renew(&mut hands, ready);
        }
        self.shared.set_active(self.number, hands.active);
    }

    /// Removes all descriptors of a zone, before its versions begin again. Once in eight million cleanings of a zone.
    #[cold]
    fn scrub(&self, zone: usize) {
        let shared = &self.shared;
        for (number, beside) in self.beside.iter().enumerate() {
            let bucket = self.bucket(number);
            beside.version().begin_change();
            for way in 0..WAYS {
                if shared.descriptor(bucket, way).place().zone == zone {
                    shared.set_descriptor(bucket, way, Descriptor::NONE);
                }
            }
            beside.version().end_change();
            // Also where memory has another descriptor now: the medium may still have one of this zone.
            shared.medium.flush(shared.descriptor_at(bucket, 0));
            shared.medium.flush(shared.descriptor_at(bucket, WAYS - 1));
        }
        shared.medium.fence();
    }

    /// Units of the victim that are looked through together.
    #[inline(always)]
    fn slice_units(&self) -> usize {
        (self.shared.geometry.zone_units() / SLICES_MIN).clamp(1, SLICE_UNITS_MAX)
    }

    /// Looks through the victim up to unit `target`, or to the end of what was written.
    fn clean_until(&self, hands: &mut Hands, target: usize) {
        let victim = hands.victim();
        let written = hands.used[victim];
        let zone = self.zone(victim);
        let end = if hands.ends_at_hot_line { written.min(self.shared.hot_line(zone)) } else { written };
        let target = target.min(end);
        let mut bytes = mem::take(&mut hands.bytes);
        while hands.scan < target {
            let (candidates, scanned) = self.candidates(zone, hands.scan..target, written, &mut bytes);
            hands.scan = scanned;
            for candidate in candidates.into_iter().flatten() {
                match candidate.record {
                    Record::Item(head) => self.consider(hands, zone, candidate, head, &mut bytes),
                    Record::Block(head) => {
                        let place =
                            Place { zone, version: self.shared.version(zone), offset: candidate.offset };
                        self.consider_block(hands, place, head, &mut bytes);
                    }
                }
            }
        }
        hands.bytes = bytes;
    }

    /// The next items in a range of a zone, whose buckets are being loaded, and where to continue.
    fn candidates(
        &self,
        zone: usize,
        range: Range<usize>,
        written: usize,
        bytes: &mut Vec<u8>,
    ) -> ([Option<Candidate>; BATCH_LEN], usize) {
        let shared = &self.shared;
        let units_max = shared.geometry.item_units_max();
        let mut candidates = [None; BATCH_LEN];
        let mut offset = range.start;
        for candidate in &mut candidates {
            if offset >= range.end {
                break;
            }
            let at = shared.geometry.unit_at(zone, offset);
            // After a crash there may be anything.
            let word = shared.medium.load(at);
            if shared.packing.is_some()
                && let Some(head) = BlockHead::parse(word)
                && offset + head.units() <= written
            {
                *candidate =
                    Some(Candidate { offset, record: Record::Block(head), hash: KeyHash::default() });
                offset += head.units();
                continue;
            }
            let head = Head::parse(word);
            let head = head.filter(|head| head.units() <= units_max && offset + head.units() <= written);
            let Some(head) = head else {
                offset += 1;
                continue;
            };
            bytes.resize(head.key_len(), 0);
            shared.medium.copy_out(at + head.key_start(), bytes);
            let hash = shared.hash(bytes);
            if partition_of(hash, shared.geometry.partitions) == self.number {
                self.prefetch_bucket(hash);
                *candidate = Some(Candidate { offset, record: Record::Item(head), hash });
            }
            offset += head.units();
        }
        (candidates, offset)
    }

    /// Keeps an item of the victim, if it is one and was used; packs it otherwise, or drops it.
    fn consider(
        &self,
        hands: &mut Hands,
        zone: usize,
        candidate: Candidate,
        head: Head,
        bytes: &mut Vec<u8>,
    ) {
        let shared = &self.shared;
        let Candidate { offset, hash, .. } = candidate;
        let (at, units) = (shared.geometry.unit_at(zone, offset), head.units());
        let sought = self.sought(hash, &[]);
        let place = Place { zone, version: shared.version(zone), offset };
        let (beside, bucket) = (&self.beside[sought.bucket], self.bucket(sought.bucket));
        let descriptors = (0..WAYS).map(|way| (way, shared.descriptor(bucket, way)));
        let mut own = descriptors.filter(|(_, descriptor)| {
            descriptor.place() == place
                && descriptor.units() == units
                && self.state(*descriptor) == State::Current
        });
        let Some((way, descriptor)) = own.next() else { return };
        let expires_at_ms = if head.has_extras() { shared.medium.load(word_at(at, EXPIRY)) } else { 0 };
        if shared.is_expired(Metadata { expires_at_ms, flags: 0 }) {
            return add_alone(&self.counters.expired, 1);
        }
        let count = beside.count(way);
        let victim = hands.victim();
        let was_hot = !hands.is_counted[victim] && offset < shared.hot_line(zone);
        let is_kept = (count > 0 || was_hot) && self.has_room_to_keep(hands, units);
        if !is_kept && shared.packing.is_none() {
            return add_alone(&self.counters.evicted, 1);
        }
        bytes.resize(units * UNIT, 0);
        shared.medium.copy_out(at, bytes);
        if !beside.is_verified(way) && !self.is_intact(bytes, descriptor) {
            return add_alone(&self.counters.evicted, 1);
        }
        if is_kept {
            return self.keep(hands, sought.bucket, way, descriptor.tag(), count / 2, bytes);
        }
        let is_packed = StoredItem::parse(bytes).is_some_and(|StoredItem { key, value, metadata }| {
            self.pack(hands, sought.bucket, descriptor, crate::zone::Record { key, value, metadata }, true)
        });
        if !is_packed {
            add_alone(&self.counters.evicted, 1);
        }
    }
}
