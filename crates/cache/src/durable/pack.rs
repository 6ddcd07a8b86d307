//! Cleaning with compression: items of the victim that were not used are packed into blocks in the ready zone.
//!
//! ```text
//!   victim:  [ old block ][ item ][ old block ] … [ item ][ item ] …
//!               │  used items, plain                 │ not used: wait in `Pending`
//!               ▼                                    ▼
//!   ready:   [ item to keep ][ old block, copied ][ new block ] …
//! ```
//!
//! An item that waits is still read from the victim. When its block is written, its descriptor is looked for again: an
//! item that was replaced, removed or promoted meanwhile stays out of sight.
//!
//! Blocks take at most [`SHARE_PERCENT`] of a zone. Old blocks come first in the victim, in order of age, so those that
//! will not fit are dropped from its beginning.

use std::mem;

use crate::index::partition_of;
use crate::sync::{Ordering, add_alone};
use crate::zone::Record;

use super::block::{BlockHead, Coding, ITEMS_MAX, Packer, Unpacked, dictionary_of};
use super::clean::Hands;
use super::descriptor::{Descriptor, Place, UNIT};
use super::geometry::WAYS;
use super::medium::{Medium, Mistake};
use super::part::{Part, State};
use super::stored_item::{Head, StoredItem};

/// Maximum share of a zone for its blocks. More of it leaves less room for items that are read without decompression.
const SHARE_PERCENT: usize = 60;

/// Items that wait for their block.
#[derive(Debug, Default)]
struct Pending {
    raw: Vec<u8>,
    items: Vec<Waiting>,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    bucket: usize,
    /// Its descriptor, which says where it still is.
    source: Descriptor,
    /// Whether it was in no block before.
    is_new: bool,
}

/// What a writer knows of blocks.
#[derive(Debug, Default)]
pub(crate) struct Packs {
    pending: Pending,
    packer: Packer,
    unpacked: Unpacked,
    bytes: Vec<u8>,
    /// By zone: slots of dictionaries that its blocks may name, one bit each.
    pub named: Vec<u8>,
    /// Units of old blocks of the victim that are still to be dropped.
    skip: usize,
    /// Units of blocks of new items in this zone and in the one before.
    new_units: [usize; 2],
}

/// An item of a block that has its descriptor.
struct Live {
    number: usize,
    bucket: usize,
    way: usize,
    descriptor: Descriptor,
    count: u32,
}

impl<M: Medium> Part<M> {
    /// Maximum units of a zone's blocks.
    fn packed_units_max(&self) -> usize {
        self.shared.geometry.zone_units() * SHARE_PERCENT / 100
    }

    /// Whether the ready zone has room for an item to keep.
    pub(super) fn has_room_to_keep(&self, hands: &Hands, units: usize) -> bool {
        let (zone_units, ready) = (self.shared.geometry.zone_units(), hands.ready());
        let used = hands.used[ready];
        if self.shared.packing.is_none() {
            // At least half of the zone is for new items.
            return used + units <= zone_units / 2;
        }
        let hot = used.saturating_sub(self.shared.packed(self.zone(ready)));
        hot + units <= zone_units / 2 && used + units <= zone_units / 8 * 7
    }

    fn has_room_for_block(&self, hands: &Hands, units: usize) -> bool {
        let ready = hands.ready();
        self.shared.packed(self.zone(ready)) + units <= self.packed_units_max()
            && hands.used[ready] + units <= self.shared.geometry.zone_units() / 8 * 7
    }

    /// How far the victim is looked through when the active zone is full up to `end`.
    #[inline]
    pub(super) fn pace(&self, zone: usize, end: usize) -> usize {
        if self.shared.packing.is_none() {
            return end * 2;
        }
        // Blocks make the beginning of the zone large, so a set would have to pack a whole zone.
        let zone_units = self.shared.geometry.zone_units();
        let start = self.shared.hot_line(zone).min(zone_units - 1);
        end.saturating_sub(start) * 2 * zone_units / (zone_units - start)
    }

    /// Copies an item to the ready zone, which has room for it.
    pub(super) fn keep(
        &self,
        hands: &mut Hands,
        bucket: usize,
        way: usize,
        tag: u16,
        count: u32,
        bytes: &[u8],
    ) {
        let place = self.take(hands, hands.ready(), bytes.len() / UNIT);
        let kept = Descriptor::new(place, tag, bytes.len() / UNIT);
        let kept = kept.with_checksum(self.checksum(bytes, kept));
        self.shared.medium.copy_in(self.shared.geometry.unit_at(place.zone, place.offset), bytes);
        self.point(bucket, way, kept, count);
        add_alone(&self.counters.kept, 1);
    }
    /// Begins with the next victim.
    pub(super) fn begin_packing(&self, hands: &mut Hands) {
        if self.shared.packing.is_some() {
            let old = self.shared.packed(self.zone(hands.victim()));
            let packs = &mut hands.packs;
            packs.new_units = [0, packs.new_units[0]];
            packs.skip = (old + packs.new_units[1]).saturating_sub(self.packed_units_max());
        }
    }

    /// Nothing waits any more.
    pub(super) fn forget_pending(&self, hands: &mut Hands) {
        hands.packs.pending.raw.clear();
        hands.packs.pending.items.clear();
    }

    /// The way of a bucket that has this descriptor.
    fn way_with(&self, bucket: usize, descriptor: Descriptor) -> Option<usize> {
        let of_file = self.bucket(bucket);
        let mut found = (0..WAYS).find(|&way| self.shared.descriptor(of_file, way) == descriptor);
        if found.is_none() && self.shared.medium.makes(Mistake::PackedUnchecked) {
            found = (0..WAYS).find(|&way| self.shared.descriptor(of_file, way).tag() == descriptor.tag());
        }
        found.filter(|&way| self.state(self.shared.descriptor(of_file, way)) == State::Current)
    }

    /// Replaces a descriptor by one of another place with the same content.
    pub(super) fn point(&self, bucket: usize, way: usize, descriptor: Descriptor, count: u32) {
        let beside = &self.beside[bucket];
        beside.version().begin_change();
        self.shared.set_descriptor(self.bucket(bucket), way, descriptor);
        beside.reset(way, count);
        beside.version().end_change();
    }

    /// Packs an item of the victim; returns whether it did. Its block is written when it is full.
    pub(super) fn pack(
        &self,
        hands: &mut Hands,
        bucket: usize,
        source: Descriptor,
        item: Record<'_>,
        is_new: bool,
    ) -> bool {
        let Some(packing) = &self.shared.packing else { return false };
        let bytes_max = packing.block_bytes(&self.shared.geometry);
        if item.key.len().saturating_add(item.value.len()) > bytes_max {
            return false;
        }
        let mut one = mem::take(&mut hands.packs.bytes);
        one.clear();
        item.write(&mut one);
        let fits = one.len() <= bytes_max;
        if fits {
            let pending = &hands.packs.pending;
            let is_taken = |other: &Waiting| other.bucket == bucket && other.source.tag() == source.tag();
            let has_own =
                pending.items.iter().any(is_taken) && !self.shared.medium.makes(Mistake::TagsShared);
            if has_own || pending.items.len() == ITEMS_MAX || pending.raw.len() + one.len() > bytes_max {
                self.write_block(hands);
            }
            let pending = &mut hands.packs.pending;
            pending.raw.extend_from_slice(&one);
            pending.items.push(Waiting { bucket, source, is_new });
            if let Some(dictionaries) = packing.dictionaries.as_ref().filter(|_| is_new) {
                dictionaries.sample(&one);
            }
        }
        hands.packs.bytes = one;
        fits
    }

    /// Writes the block of the items that wait.
    pub(super) fn write_block(&self, hands: &mut Hands) {
        let (shared, ready) = (&self.shared, hands.ready());
        let Some(packing) = &shared.packing else { return };
        if hands.packs.pending.items.is_empty() {
            return;
        }
        let pending = mem::take(&mut hands.packs.pending);
        let way_of = |waiting: &Waiting| self.way_with(waiting.bucket, waiting.source);
        let live = pending.items.iter().filter(|waiting| way_of(waiting).is_some()).count();
        if live > 0 {
            let dictionary = packing.dictionaries.as_ref().and_then(|dictionaries| {
                dictionaries.install_learned(&shared.medium, &shared.geometry);
                dictionaries.use_current(&mut hands.packs.named[ready])
            });
            let mut bytes = mem::take(&mut hands.packs.bytes);
            let (items, raw) = (pending.items.len(), &pending.raw);
            hands.packs.packer.pack(packing.codec, dictionary.as_ref(), items, raw, &mut bytes);
            if let Some(dictionaries) = &packing.dictionaries {
                dictionaries.note([raw.len() as u64, bytes.len() as u64]);
            }
            if let Some(place) = self.place_block(hands, &bytes) {
                let units = bytes.len() / UNIT;
                for waiting in &pending.items {
                    if let Some(way) = way_of(waiting) {
                        self.point_to_block(waiting.bucket, way, waiting.source.tag(), place, &bytes);
                    }
                }
                let new = pending.items.iter().filter(|waiting| waiting.is_new).count();
                hands.packs.new_units[0] += units * new / items;
                add_alone(&self.counters.packed, live as u64);
                add_alone(&self.counters.packed_raw_bytes, raw.len() as u64);
                add_alone(&self.counters.packed_bytes, bytes.len() as u64);
            } else {
                add_alone(&self.counters.evicted, live as u64);
            }
            hands.packs.bytes = bytes;
        }
        hands.packs.pending = pending;
        self.forget_pending(hands);
    }

    /// Writes a block to the ready zone, if there is room.
    fn place_block(&self, hands: &mut Hands, bytes: &[u8]) -> Option<Place> {
        let (units, ready) = (bytes.len() / UNIT, hands.ready());
        if !self.has_room_for_block(hands, units) {
            return None;
        }
        let place = self.take(hands, ready, units);
        self.shared.set_packed(place.zone, self.shared.packed(place.zone) + units);
        self.shared.medium.copy_in(self.shared.geometry.unit_at(place.zone, place.offset), bytes);
        Some(place)
    }

    fn point_to_block(&self, bucket: usize, way: usize, tag: u16, place: Place, bytes: &[u8]) {
        let descriptor = Descriptor::new(place, tag, bytes.len() / UNIT);
        self.point(bucket, way, descriptor.with_checksum(self.checksum(bytes, descriptor)), 0);
    }

    /// Looks through a block of the victim.
    pub(super) fn consider_block(
        &self,
        hands: &mut Hands,
        place: Place,
        head: BlockHead,
        bytes: &mut Vec<u8>,
    ) {
        let Some(packing) = &self.shared.packing else { return };
        let units = head.units();
        bytes.resize(units * UNIT, 0);
        self.shared.medium.copy_out(self.shared.geometry.unit_at(place.zone, place.offset), bytes);
        let mut unpacked = mem::take(&mut hands.packs.unpacked);
        // After a crash, or in the middle of an item, there may be anything.
        if unpacked.unpack(bytes, packing).is_some() {
            let mut live = self.live_items(&unpacked, place, bytes);
            live.retain(|item| !self.keep_used(hands, &unpacked, item));
            if hands.packs.skip >= units {
                hands.packs.skip -= units;
                add_alone(&self.counters.evicted, live.len() as u64);
            } else if !live.is_empty() {
                self.move_block(hands, &unpacked, head, &live, bytes);
            }
        }
        hands.packs.unpacked = unpacked;
    }

    /// The items of a block that have their descriptor and have not expired.
    fn live_items(&self, unpacked: &Unpacked, place: Place, bytes: &[u8]) -> Vec<Live> {
        let shared = &self.shared;
        let units = bytes.len() / UNIT;
        let mut live = Vec::with_capacity(ITEMS_MAX);
        for (number, item) in unpacked.items().enumerate() {
            let hash = shared.hash(item.key);
            if partition_of(hash, shared.geometry.partitions) != self.number {
                continue;
            }
            let sought = self.sought(hash, &[]);
            let (beside, bucket) = (&self.beside[sought.bucket], self.bucket(sought.bucket));
            let descriptors = (0..WAYS).map(|way| (way, shared.descriptor(bucket, way)));
            let mut own = descriptors.filter(|(way, descriptor)| {
                descriptor.place() == place
                    && (descriptor.tag(), descriptor.units()) == (sought.tag, units)
                    && self.state(*descriptor) == State::Current
                    && (beside.is_verified(*way) || self.is_intact(bytes, *descriptor))
            });
            let Some((way, descriptor)) = own.next() else { continue };
            if shared.is_expired(item.metadata) {
                add_alone(&self.counters.expired, 1);
                continue;
            }
            live.push(Live { number, bucket: sought.bucket, way, descriptor, count: beside.count(way) });
        }
        live
    }

    /// Keeps an item of a block as one that is not compressed, if it was used and there is room. Returns
    /// whether it did.
    fn keep_used(&self, hands: &mut Hands, unpacked: &Unpacked, live: &Live) -> bool {
        if live.count == 0 {
            return false;
        }
        let Some(item) = unpacked.items().nth(live.number) else { return false };
        let Some(head) = Head::new(item.key.len(), item.value.len(), item.metadata) else { return false };
        if !self.has_room_to_keep(hands, head.units()) {
            return false;
        }
        let mut bytes = mem::take(&mut hands.packs.bytes);
        StoredItem { key: item.key, value: item.value, metadata: item.metadata }.write(head, &mut bytes);
        self.keep(hands, live.bucket, live.way, live.descriptor.tag(), live.count / 2, &bytes);
        hands.packs.bytes = bytes;
        true
    }

    /// Copies a block of which most items are left, and packs the items of another one again.
    fn move_block(
        &self,
        hands: &mut Hands,
        unpacked: &Unpacked,
        head: BlockHead,
        live: &[Live],
        bytes: &[u8],
    ) {
        let ready = hands.ready();
        let is_current = match (&self.shared.packing, head.coding) {
            (Some(packing), Coding::Zstd) => packing.dictionaries.as_ref().is_some_and(|dictionaries| {
                dictionaries.use_again(dictionary_of(bytes), &mut hands.packs.named[ready])
            }),
            (Some(packing), _) => !packing.dictionaries.as_ref().is_some_and(|all| all.has_current()),
            (None, _) => false,
        };
        if is_current && live.len() * 4 >= head.items * 3 {
            let Some(place) = self.place_block(hands, bytes) else {
                return add_alone(&self.counters.evicted, live.len() as u64);
            };
            for item in live {
                self.point_to_block(item.bucket, item.way, item.descriptor.tag(), place, bytes);
            }
            return add_alone(&self.counters.blocks_copied, 1);
        }
        let mut live = live.iter().peekable();
        for (number, item) in unpacked.items().enumerate() {
            if let Some(own) = live.next_if(|live| live.number == number)
                && !self.pack(hands, own.bucket, own.descriptor, item, false)
            {
                add_alone(&self.counters.evicted, 1);
            }
        }
    }

    /// Counts a get that decompressed a block.
    pub(super) fn count_unpacked(&self) {
        self.counters.unpacked.fetch_add(1, Ordering::Relaxed);
    }
}
