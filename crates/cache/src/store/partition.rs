//! One partition of a store.

use std::io;

use alluvium_base::KeyHash;
use crossbeam_utils::CachePadded;

use crate::access::{Access, Gate};
use crate::cache::Scratch;
use crate::hasher::Hasher;
use crate::index::bucket::{Bucket, Version};
use crate::index::{Entry, Place, Versioned, first_hash};
use crate::item::{Glance, Header, Metadata, Room, header_of, plain_header_of, write_item};
use crate::log::Position;
use crate::memory::{Published, UNIT_BYTES};
use crate::sync::{AtomicU32, AtomicU64, Ordering, add_alone, spin_hint};

use super::chains::{Chains, Slot};
use super::grow::first_buckets;
use super::handle::{OutOfSpace, StoreStats};
use super::sizes::Sizes;
use super::space::Space;

/// Where a key's item appears to be, and its value's range in the space.
struct Seen<'a> {
    chains: &'a Chains,
    bucket: &'a Bucket,
    version: Version,
    unit: u32,
    start: usize,
    len: usize,
}

/// The result of looking at the first bucket.
enum Sight<'a> {
    Item(Seen<'a>),
    Nothing,
    Unusual,
}

/// Key and value of an item.
type Copied = (Vec<u8>, Vec<u8>);

/// Settings with which the partitions of a store are made.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub sizes: Sizes,
    pub hasher: Hasher,
    /// Whether items keep their position until their key is set or removed.
    pub keeps_places: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Partition<A: Access> {
    pub(super) gate: CachePadded<A::Gate>,
    /// Replaced by larger ones as items are added.
    pub(super) chains: Published<Chains>,
    /// Maximum number of first buckets that the memory allows.
    pub(super) buckets_max: usize,
    pub(super) space: Space,
    pub(super) plan: Plan,
    items: AtomicU64,
    refused: AtomicU64,
    pub(super) moved: AtomicU64,
    /// Whether a change ended by a panic, in which case some chain's version stays odd.
    pub(super) is_broken: AtomicU32,
}

impl<A: Access> Partition<A> {
    /// An empty partition.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn new(plan: Plan) -> io::Result<Self> {
        let Sizes { buckets, space } = plan.sizes;
        Ok(Self {
            gate: CachePadded::default(),
            chains: Published::new(Chains::new(first_buckets(buckets))?),
            buckets_max: buckets,
            space: Space::new(space)?,
            plan,
            items: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            is_broken: AtomicU32::new(0),
        })
    }

    /// Starts loading the key's bucket.
    #[inline(always)]
    pub fn prefetch(&self, hash: KeyHash) {
        let chains = self.chains.get();
        chains.prefetch(chains.place(hash));
    }

    /// Starts loading the items that a lookup would compare.
    #[inline(always)]
    pub fn prefetch_items(&self, hash: KeyHash, payload: usize) {
        let chains = self.chains.get();
        chains.find(chains.place(hash), |entry| {
            self.space.ring().prefetch(entry.position().0 as usize, UNIT_BYTES + payload);
            false
        });
    }

    /// Copies the value of `key` into `value`; returns the unit of its item, if there is one.
    #[inline(always)]
    pub fn get_into(&self, hash: KeyHash, key: &[u8], value: &mut Vec<u8>) -> Option<u32> {
        match self.see(hash, key) {
            Sight::Item(seen) => {
                value.resize(seen.len, 0);
                self.space.ring().copy_out(seen.start, value);
                if self.is_at_rest(seen.chains, seen.bucket, seen.version) {
                    return Some(seen.unit);
                }
            }
            Sight::Nothing => return None,
            Sight::Unusual => {}
        }
        self.get_unusual_into(hash, key, value)
    }

    #[inline(never)]
    fn get_unusual_into(&self, hash: KeyHash, key: &[u8], value: &mut Vec<u8>) -> Option<u32> {
        self.read(hash, key, |unit, header| self.copy_value(unit, header, value))
    }

    /// Copies the value of `key` into `value`; returns whether there is one.
    #[inline(always)]
    pub fn get_scratch(&self, hash: KeyHash, key: &[u8], value: &mut Scratch) -> bool {
        let copy = |unit: usize, header: Header| {
            let start = unit * UNIT_BYTES + header.value_start();
            value.fill(header.value_len(), |value| self.space.ring().copy_out(start, value));
        };
        self.read(hash, key, copy).is_some()
    }

    /// Finds the value of `key` if a glance suffices: see the cache's.
    #[inline(always)]
    pub fn glance<'a>(&self, hash: KeyHash, key: &[u8], room: &'a mut Room) -> Glance<'a> {
        let seen = match self.see(hash, key) {
            Sight::Item(seen) => seen,
            Sight::Nothing => return Glance::Miss,
            Sight::Unusual => return Glance::Unusual,
        };
        let Some(room) = room.get_mut(..seen.len) else { return Glance::Unusual };
        let value = self.space.ring().copy_into(seen.start, room);
        let is_valid = self.is_at_rest(seen.chains, seen.bucket, seen.version);
        if is_valid { Glance::Hit(value) } else { Glance::Unusual }
    }

    /// As [`glance`](Self::glance), without copying and validating.
    #[inline(always)]
    fn see(&self, hash: KeyHash, key: &[u8]) -> Sight<'_> {
        let chains = self.chains.get();
        let place = chains.place(hash);
        let bucket = chains.first(place);
        let Some(version) = bucket.version().at_rest() else { return Sight::Unusual };
        let ways = bucket.matches(place.tag);
        if ways == 0 {
            let is_valid = bucket.link().is_none() && self.is_at_rest(chains, bucket, version);
            return if is_valid { Sight::Nothing } else { Sight::Unusual };
        }
        // The number of a word is the lowest part of an entry.
        let unit = bucket.entry(ways.trailing_zeros() as usize).0 as u32;
        match self.plain_value_at(unit, key) {
            Some((start, len)) => Sight::Item(Seen { chains, bucket, version, unit, start, len }),
            None => Sight::Unusual,
        }
    }

    /// Start and length of the value of the item at `unit`, if the item's key is `key`.
    #[inline(always)]
    fn plain_value_at(&self, unit: u32, key: &[u8]) -> Option<(usize, usize)> {
        let words_max = self.space.words().saturating_sub(unit) as usize;
        let header = plain_header_of(self.space.ring(), unit as usize, words_max, key)?;
        let start = (unit as usize + 1) * UNIT_BYTES + key.len();
        Some((start, header.plain_value_len(key.len())?))
    }

    /// Calls `copy` with unit and header of the item of `key` and returns the unit. Beside a writer it may be called
    /// several times; only the last call counts.
    #[inline(always)]
    fn read(&self, hash: KeyHash, key: &[u8], mut copy: impl FnMut(usize, Header)) -> Option<u32> {
        loop {
            let chains = self.chains.get();
            let place = chains.place(hash);
            let first = chains.first(place);
            let version = self.begin_read(first);
            let found = self.find(chains, place, key);
            if let Some((_, unit, header)) = found {
                copy(unit, header);
            }
            if self.is_at_rest(chains, first, version) {
                return found.map(|(_, unit, _)| unit as u32);
            }
            spin_hint();
        }
    }

    /// Copies the value of the item at `unit` into `value`, if the item's key is `key`. Beside a writer of the key the
    /// copy may be torn; reads nothing out of bounds, whatever `unit` is.
    #[inline(always)]
    pub fn get_at_into(&self, unit: u32, key: &[u8], value: &mut Vec<u8>) -> bool {
        let seen = self.plain_value_at(unit, key);
        if let Some((start, len)) = seen {
            value.resize(len, 0);
            self.space.ring().copy_out(start, value);
        }
        seen.is_some()
    }

    #[inline(always)]
    fn copy_value(&self, unit: usize, header: Header, value: &mut Vec<u8>) {
        value.resize(header.value_len(), 0);
        self.space.ring().copy_out(unit * UNIT_BYTES + header.value_start(), value);
    }

    /// The header at `unit`, if it is that of an item of `key`.
    #[inline(always)]
    fn item_of(&self, unit: usize, key: &[u8]) -> Option<Header> {
        let words_max = (self.space.words() as usize).checked_sub(unit)?;
        header_of(self.space.ring(), unit, words_max, key)
    }

    /// The header at `unit`, if it is sound: beside a writer it may be anything.
    #[inline(always)]
    fn header(&self, unit: usize) -> Option<Header> {
        let header = Header(self.space.load(unit as u32));
        let fits = header.is_sound() && unit + header.words() <= self.space.words() as usize;
        fits.then_some(header)
    }

    /// The item of `key`. A header that is not sound, which only a reader beside the writer can see, does not count.
    #[inline(always)]
    fn find(&self, chains: &Chains, place: Place, key: &[u8]) -> Option<(Slot, usize, Header)> {
        let item = |entry: Entry| {
            let unit = entry.position().0 as usize;
            Some((unit, self.item_of(unit, key)?))
        };
        let mut found = None;
        let slot = chains.find(place, |entry| {
            found = item(entry);
            found.is_some()
        })?;
        found.map(|(unit, header)| (slot, unit, header))
    }

    /// Gives `key` a value.
    ///
    /// # Errors
    /// [`OutOfSpace`]; the key keeps its former item.
    pub fn set(&self, hash: KeyHash, key: &[u8], value: &[u8]) -> Result<(), OutOfSpace> {
        let _writing = self.gate.enter();
        let outcome = self.put(hash, key, value);
        if outcome.is_err() {
            add_alone(&self.refused, 1);
        }
        outcome
    }

    fn put(&self, hash: KeyHash, key: &[u8], value: &[u8]) -> Result<(), OutOfSpace> {
        let header = Header::new(key.len(), value.len(), false, false).ok_or(OutOfSpace::Item)?;
        let mut chains = self.chains.get();
        let mut place = chains.place(hash);
        let found = self.find(chains, place, key);
        if let Some((_, unit, before)) = found
            && let Some(header) = before.with_value_len(value.len())
        {
            let header = Header(header.0 | self.space.previous_bit(unit as u32));
            self.change(place, || {
                write_item(self.space.ring(), unit, header, Metadata::default(), key, value);
            });
            return Ok(());
        }
        if found.is_none() {
            chains = self.grow_for(chains, hash);
            place = chains.place(hash);
        }
        let words = header.words() as u32;
        let ((start, taken), found) = match self.space.allocate(words) {
            Some(block) => (block, found),
            // Gathering may have moved this key's own item, so it is looked up again.
            None => (self.gather(words).ok_or(OutOfSpace::Item)?, self.find(chains, place, key)),
        };
        let header = header.grown_to(taken as usize);
        write_item(self.space.ring(), start as usize, header, Metadata::default(), key, value);
        let entry = Entry::new(place.tag, 0, Position(u64::from(start)));
        let is_linked = self.change(place, || {
            let slot = found.map(|(slot, ..)| slot).or_else(|| chains.empty_slot(place));
            slot.map(|slot| chains.set_entry(slot, entry)).is_some()
        });
        match (is_linked, found) {
            (false, _) => {
                self.space.free(start);
                return Err(OutOfSpace::Index);
            }
            (true, Some((_, unit, _))) => self.space.free(unit as u32),
            (true, None) => add_alone(&self.items, 1),
        }
        Ok(())
    }

    /// Removes the item of `key`; returns whether there was one.
    pub fn remove(&self, hash: KeyHash, key: &[u8]) -> bool {
        let _writing = self.gate.enter();
        let chains = self.chains.get();
        let place = chains.place(hash);
        let Some((slot, unit, _)) = self.find(chains, place, key) else { return false };
        self.change(place, || chains.remove(place, slot));
        self.space.free(unit as u32);
        add_alone(&self.items, 1_u64.wrapping_neg());
        true
    }

    /// Calls `visit` for each item. An item that is present throughout is visited once, also beside a writer.
    pub fn visit(&self, visit: &mut impl FnMut(&[u8], &[u8])) {
        let mut from = Some(0);
        while let Some(first) = from {
            let (items, next) = self.items_from(first);
            for (key, value) in items {
                // Lower hashes were visited before, in an index with fewer chains.
                if self.plan.hasher.hash(&key).low() >= first {
                    visit(&key, &value);
                }
            }
            from = next;
        }
    }

    /// Keys and values of the items in the chain of hashes with the low half `from`, and where the next chain starts.
    fn items_from(&self, from: u64) -> (Vec<Copied>, Option<u64>) {
        loop {
            let chains = self.chains.get();
            let place = chains.place(KeyHash::from_halves(0, from));
            let first = chains.first(place);
            let version = self.begin_read(first);
            let items = chains.entries(place.bucket).filter_map(|entry| {
                let unit = entry.position().0 as usize;
                let header = self.header(unit)?;
                let (mut key, mut value) = (vec![0; header.key_len()], Vec::new());
                self.space.ring().copy_out(unit * UNIT_BYTES + header.key_start(), &mut key);
                self.copy_value(unit, header, &mut value);
                Some((key, value))
            });
            let items = items.collect();
            if self.is_at_rest(chains, first, version) {
                return (items, first_hash(place.bucket + 1, chains.first_buckets()));
            }
            spin_hint();
        }
    }

    /// The partition's statistics.
    pub fn stats(&self) -> StoreStats {
        StoreStats {
            items: self.items.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            space_bytes: u64::from(self.space.words()) * UNIT_BYTES as u64,
            space_bytes_used: self.space.used_words() * UNIT_BYTES as u64,
            moved: self.moved.load(Ordering::Relaxed),
            spare_buckets_used: u64::from(self.chains.get().spares_used()),
        }
    }
}
