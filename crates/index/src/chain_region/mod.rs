//! [`ChainRegion`]: a part of a directory of chains of records on the device (SkimpyStash, SIGMOD 2011, §4.2 to §4.4).
//!
//! A record on the device names the record before it in its chain; the directory in memory has only the head of each
//! chain. A chain of k records costs 4/k bytes of memory an item, and half a chain of reads.
//!
//! ```text
//!   key ──► slot ──► head ──► record ──► record ──► record        on the device, young to old
//!      └──► slot     count, Bloom filter                          in memory
//! ```
//!
//! In the enhanced design a key has two slots and is put in the shorter chain (§4.4), so that chains are of more even
//! lengths; the Bloom filter of a slot says that a key is surely not in its chain.
//!
//! # Where we differ
//!
//! - *A region is a range of hashes.* Both slots of a key are in it, so a scan in the order of hashes walks the chains
//!   of one region after the other. Thousands of slots are enough for two choices to balance.
//! - *The two slots of a key are in different halves of the region*, and the first is chosen if both chains are equally
//!   long (Vöcking, "How asymmetry helps load balancing", 2003). So they are never children of one slot, and a version
//!   of the key is in one of the two chains only.
//! - *A put reads nothing.* The paper looks a key up first, so that no two versions are in two chains. Filters say the
//!   same: a key that neither filter has is new, and goes to the shorter chain; one that a single filter has belongs
//!   there, whether or not it is new. Only if both have it, the chains are walked ([`Choice::Walk`]).
//! - *A region grows* by doubling its slots, without reading the device. Both children of a slot begin with its head,
//!   its filter and half of its count, and share the records that were there until their chains are written anew.
//!
//! # Cost
//!
//! Bytes of a slot: a pointer of 4 or 5 bytes; in the enhanced design one for the count and those of the filter. So an
//! item takes 4/k bytes or 1 + 5/k with 8 bits of filter a key (§4.5). A lookup touches one or two places of memory. No
//! allocation but by [`ChainRegion::grow`].
//!
//! # Bytes
//!
//! Kind (8), bytes of a pointer (1) and of a filter (1), number of slots (8), the slots, XXH3-64 of everything before,
//! seeded with the kind. Little endian.

mod encoding;
mod filter;

use alluvium_base::KeyHash;

use filter::FilterBits;

/// Bytes of the count in a slot of the enhanced design.
const COUNT_BYTES: usize = 1;
/// Maximum bytes of a filter: for 255 keys of 8 bits, or 32 of 64.
pub const FILTER_BYTES_MAX: usize = 255;

/// What a slot has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotShape {
    /// Bytes of a pointer, 4 or 5.
    pub pointer_bytes: usize,
    /// Bytes of the filter; 0 in the base design, in which a key has one slot and slots have no counts.
    pub filter_bytes: usize,
}

impl SlotShape {
    /// Bytes of a slot.
    pub fn slot_bytes(&self) -> usize {
        let counted = if self.filter_bytes > 0 { COUNT_BYTES + self.filter_bytes } else { 0 };
        self.pointer_bytes + counted
    }

    /// The largest pointer.
    pub fn pointer_max(&self) -> u64 {
        (1 << (8 * self.pointer_bytes)) - 1
    }

    /// Whether a region can have this number of slots.
    fn is_possible(&self, len: usize) -> bool {
        len > 0 && (self.filter_bytes == 0 || len.is_multiple_of(2))
    }

    fn is_supported(&self) -> bool {
        (4..=5).contains(&self.pointer_bytes) && self.filter_bytes <= FILTER_BYTES_MAX
    }
}

/// The head of a chain: where its youngest record is. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer(pub u64);

/// The number of a slot in its region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub usize);

/// Where a key is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// In the chain of this slot: if the key is present, it is there.
    Slot(Slot),
    /// Both chains may have the key. One that has it must be chosen; if none has, the first, which is shorter.
    Walk(Slot, Slot),
}

/// A part of a directory: slots for a range of hashes. See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainRegion {
    shape: SlotShape,
    /// Number of leading hash bits that all keys of the region share.
    prefix_bits: u32,
    slots: Vec<u8>,
    len: usize,
}

impl ChainRegion {
    /// A region of `len` empty chains, for keys that share their first `prefix_bits` hash bits.
    ///
    /// # Panics
    /// For a shape that is not supported, without slots, with an odd number of slots in the enhanced design, or with 64
    /// bits and more.
    pub fn new(shape: SlotShape, prefix_bits: u32, len: usize) -> Self {
        assert!(shape.is_supported() && shape.is_possible(len) && prefix_bits < u64::BITS);
        Self { shape, prefix_bits, slots: vec![0; len * shape.slot_bytes()], len }
    }

    /// What a slot has.
    pub fn shape(&self) -> SlotShape {
        self.shape
    }

    /// Number of slots.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether all chains are empty.
    pub fn is_empty(&self) -> bool {
        (0..self.len).all(|slot| self.head(Slot(slot)).is_none())
    }

    /// Bytes of memory of the slots.
    pub fn memory_bytes(&self) -> u64 {
        self.slots.capacity() as u64
    }

    /// The slots of a key: one in the base design, otherwise one in each half.
    pub fn slots_of(&self, hash: KeyHash) -> (Slot, Option<Slot>) {
        let first = hash.high() << self.prefix_bits;
        if self.shape.filter_bytes == 0 {
            return (Slot(at_fraction(first, self.len)), None);
        }
        let half = self.len / 2;
        (Slot(at_fraction(first, half)), Some(Slot(half + at_fraction(hash.low(), half))))
    }

    fn place(&self, slot: Slot) -> std::ops::Range<usize> {
        let bytes = self.shape.slot_bytes();
        slot.0 * bytes..(slot.0 + 1) * bytes
    }

    /// The head of a chain; `None` for an empty one.
    pub fn head(&self, slot: Slot) -> Option<Pointer> {
        let mut bytes = [0; 8];
        let place = self.place(slot);
        bytes[..self.shape.pointer_bytes]
            .copy_from_slice(&self.slots[place.start..place.start + self.shape.pointer_bytes]);
        Some(Pointer(u64::from_le_bytes(bytes))).filter(|pointer| pointer.0 != 0)
    }

    fn set_head(&mut self, slot: Slot, head: Option<Pointer>) {
        let head = head.map_or(0, |pointer| pointer.0);
        assert!(head <= self.shape.pointer_max(), "a pointer has {} bytes", self.shape.pointer_bytes);
        let start = self.place(slot).start;
        let bytes = self.shape.pointer_bytes;
        self.slots[start..start + bytes].copy_from_slice(&head.to_le_bytes()[..bytes]);
    }

    /// Number of records that were put in a chain since it was written anew, or its length then: at most 255. 0 in the
    /// base design, which counts nothing.
    pub fn count(&self, slot: Slot) -> u8 {
        match self.shape.filter_bytes {
            0 => 0,
            _ => self.slots[self.place(slot).start + self.shape.pointer_bytes],
        }
    }

    fn set_count(&mut self, slot: Slot, count: u8) {
        if self.shape.filter_bytes > 0 {
            let place = self.place(slot).start + self.shape.pointer_bytes;
            self.slots[place] = count;
        }
    }

    fn filter(&self, slot: Slot) -> &[u8] {
        let place = self.place(slot);
        &self.slots[(place.start + self.shape.pointer_bytes + COUNT_BYTES).min(place.end)..place.end]
    }

    fn filter_mut(&mut self, slot: Slot) -> &mut [u8] {
        let place = self.place(slot);
        let start = (place.start + self.shape.pointer_bytes + COUNT_BYTES).min(place.end);
        &mut self.slots[start..place.end]
    }

    /// Whether the chain of a slot may have a key of this hash: it is not empty, and its filter does not exclude it.
    pub fn may_have(&self, slot: Slot, hash: KeyHash) -> bool {
        self.head(slot).is_some() && FilterBits::of(hash, self.shape.filter_bytes).are_in(self.filter(slot))
    }

    /// The heads of the chains that may have a key of this hash.
    pub fn chains_of(&self, hash: KeyHash) -> impl Iterator<Item = (Slot, Pointer)> + '_ {
        let (first, second) = self.slots_of(hash);
        let slots = std::iter::once(first).chain(second);
        slots.filter(move |&slot| self.may_have(slot, hash)).filter_map(|slot| Some((slot, self.head(slot)?)))
    }

    /// Where a record of a key is to be put.
    pub fn choose(&self, hash: KeyHash) -> Choice {
        let (first, second) = self.slots_of(hash);
        let Some(second) = second else { return Choice::Slot(first) };
        let (shorter, longer) =
            if self.count(second) < self.count(first) { (second, first) } else { (first, second) };
        match (self.may_have(shorter, hash), self.may_have(longer, hash)) {
            (true, true) => Choice::Walk(shorter, longer),
            (_, false) => Choice::Slot(shorter),
            (false, true) => Choice::Slot(longer),
        }
    }

    /// Puts a record on top of a chain. The record must name the head before as the one before it.
    ///
    /// # Panics
    /// For a pointer that is 0 or too large.
    pub fn push(&mut self, slot: Slot, hash: KeyHash, head: Pointer) {
        assert!(head.0 != 0, "0 ends a chain");
        let bits = FilterBits::of(hash, self.shape.filter_bytes);
        bits.add_to(self.filter_mut(slot));
        self.set_count(slot, self.count(slot).saturating_add(1));
        self.set_head(slot, Some(head));
    }

    /// Replaces a chain by one that was written anew, with these keys, each once.
    ///
    /// # Panics
    /// As [`ChainRegion::push`].
    pub fn replace(&mut self, slot: Slot, head: Option<Pointer>, keys: impl IntoIterator<Item = KeyHash>) {
        self.filter_mut(slot).fill(0);
        let mut count = 0_u8;
        for hash in keys {
            FilterBits::of(hash, self.shape.filter_bytes).add_to(self.filter_mut(slot));
            count = count.saturating_add(1);
        }
        self.set_count(slot, count);
        self.set_head(slot, head);
    }

    /// Doubles the slots. The chains of slots 2s and 2s + 1 are that of slot s, with half of its count.
    pub fn grow(&mut self) {
        let bytes = self.shape.slot_bytes();
        let mut grown = Vec::with_capacity(2 * self.slots.len());
        for slot in self.slots.chunks_exact(bytes) {
            grown.extend_from_slice(slot);
            grown.extend_from_slice(slot);
        }
        (self.slots, self.len) = (grown, 2 * self.len);
        if self.shape.filter_bytes > 0 {
            for slot in (0..self.len).map(Slot) {
                self.set_count(slot, self.count(slot).div_ceil(2));
            }
        }
    }

    /// The same chains with pointers of another size; `pointer` returns what one becomes, or `None` for an empty chain.
    ///
    /// # Panics
    /// For a shape with another filter, or one that is not supported.
    pub fn with_pointers(&self, shape: SlotShape, pointer: impl Fn(Pointer) -> Option<Pointer>) -> Self {
        assert!(shape.filter_bytes == self.shape.filter_bytes, "filters stay");
        let mut next = Self::new(shape, self.prefix_bits, self.len);
        for slot in (0..self.len).map(Slot) {
            next.filter_mut(slot).copy_from_slice(self.filter(slot));
            next.set_count(slot, self.count(slot));
            next.set_head(slot, self.head(slot).and_then(&pointer));
        }
        next
    }

    /// The slots that may share a record of the chain of `slot`, if the region has doubled this number of times since
    /// the record was put.
    pub fn sharers(&self, slot: Slot, doublings: u32) -> impl Iterator<Item = Slot> + use<> {
        let first = slot.0 >> doublings << doublings;
        (first..(first + (1 << doublings)).min(self.len)).map(Slot)
    }
}

/// The number at this fraction of `len`, by multiplication: `len` need not be a power of two, and doubling it makes 2s
/// or 2s + 1 of number s.
fn at_fraction(fraction: u64, len: usize) -> usize {
    ((u128::from(fraction) * len as u128) >> 64) as usize
}
