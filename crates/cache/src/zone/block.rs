//! The format of a block in memory: a header that answers most questions without decompression, and the items.
//!
//! ```text
//!  word 0    [ prefix:27 | depth:5 | dictionaries:4 | tail items:3 | items:6 | slack:3 | words:16 ]
//!  word 1    [ dead, one bit an item:32 | accessed, one bit an item:32 ]
//!  word 2    [ time:26 | item:6 ] ×2        the two last accesses
//!  then      fingerprints, 16 bits an item; items of the tail, as they are; the other items, in compressed chunks
//!
//!  item      [ key length ][ value length ×4 + has expiry ×2 + has flags ][ expiry ][ flags ] key, value
//! ```
//!
//! The thesis (§3.3.1, §3.3.2) has two Bloom filters of 16 bytes, for presence and for accesses, eight offsets and two
//! access records of 8 bytes: 64 bytes a block. A fingerprint tells present keys from absent ones 150 times as well,
//! says where in the block the item is, and gives accesses and removals a bit each.

use crate::item::Metadata;
use crate::memory::{Ring, UNIT_BYTES};
use crate::sync::Ordering;

use super::chunk::DICTIONARIES;
use super::directory::DEPTH_MAX;

/// Maximum items of a block.
pub(super) const ITEMS_MAX: usize = 32;

/// Maximum items of its tail.
pub(super) const TAIL_ITEMS_MAX: usize = 7;

const WORDS_BITS: u32 = 16;
const SLACK_SHIFT: u32 = WORDS_BITS;
const ITEMS_SHIFT: u32 = SLACK_SHIFT + 3;
const TAIL_SHIFT: u32 = ITEMS_SHIFT + 6;
const DICTIONARIES_SHIFT: u32 = TAIL_SHIFT + 3;
const DEPTH_SHIFT: u32 = DICTIONARIES_SHIFT + DICTIONARIES as u32;
const PREFIX_SHIFT: u32 = DEPTH_SHIFT + 5;

const _: () = assert!(PREFIX_SHIFT + DEPTH_MAX == u64::BITS && DEPTH_MAX < 32);

/// Bits of the time in an access record.
const TIME_BITS: u32 = 26;

/// The first word of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Head {
    pub words: u32,
    /// Bytes at the end of the last word that are not used.
    pub slack: u32,
    pub items: u32,
    /// Of the items, those at the end that are not compressed.
    pub tail: u32,
    /// Places of the dictionaries that its chunks need, one bit each.
    pub dictionaries: u32,
    /// Bits that all keys of the block have in common, and how many.
    pub depth: u32,
    pub prefix: u32,
}

impl Head {
    pub fn to_word(self) -> u64 {
        u64::from(self.words)
            | u64::from(self.slack) << SLACK_SHIFT
            | u64::from(self.items) << ITEMS_SHIFT
            | u64::from(self.tail) << TAIL_SHIFT
            | u64::from(self.dictionaries) << DICTIONARIES_SHIFT
            | u64::from(self.depth) << DEPTH_SHIFT
            | u64::from(self.prefix) << PREFIX_SHIFT
    }

    pub fn of_word(word: u64) -> Self {
        let bits = |shift: u32, count: u32| (word >> shift & ((1 << count) - 1)) as u32;
        Self {
            words: bits(0, WORDS_BITS),
            slack: bits(SLACK_SHIFT, 3),
            items: bits(ITEMS_SHIFT, 6),
            tail: bits(TAIL_SHIFT, 3),
            dictionaries: bits(DICTIONARIES_SHIFT, DICTIONARIES as u32),
            depth: bits(DEPTH_SHIFT, 5),
            prefix: bits(PREFIX_SHIFT, DEPTH_MAX),
        }
    }

    /// Whether the parts fit in the whole, which holds for every head that was written as one.
    pub fn is_sound(self) -> bool {
        self.items as usize <= ITEMS_MAX
            && self.tail <= self.items
            && self.payload_start() + self.slack as usize <= self.words as usize * UNIT_BYTES
    }

    /// Byte offset of what follows the fingerprints.
    pub fn payload_start(self) -> usize {
        (Block::FIXED_WORDS + fingerprint_words(self.items as usize)) * UNIT_BYTES
    }

    /// Bytes of items, compressed or not.
    pub fn payload_bytes(self) -> usize {
        (self.words as usize * UNIT_BYTES).saturating_sub(self.payload_start() + self.slack as usize)
    }
}

fn fingerprint_words(items: usize) -> usize {
    items.div_ceil(UNIT_BYTES / size_of::<u16>())
}

/// A block in the arena.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'a> {
    pub ring: &'a Ring,
    pub unit: usize,
    pub head: Head,
}

impl<'a> Block<'a> {
    /// Words before the fingerprints.
    pub const FIXED_WORDS: usize = 3;

    /// The block at word `unit`; `None` beside a writer, if it is not sound or does not fit in a ring of `words`.
    pub fn at(ring: &'a Ring, words: usize, unit: u32) -> Option<Self> {
        let unit = unit as usize;
        if unit + Self::FIXED_WORDS > words {
            return None;
        }
        let head = Head::of_word(ring.word(unit).load(Ordering::Relaxed));
        (head.is_sound() && unit + head.words as usize <= words).then_some(Self { ring, unit, head })
    }

    fn marks(&self) -> u64 {
        self.ring.word(self.unit + 1).load(Ordering::Relaxed)
    }

    /// The items that are dead, one bit each.
    pub fn dead(&self) -> u32 {
        (self.marks() >> u32::BITS) as u32
    }

    /// The items that were accessed, one bit each.
    pub fn accessed(&self) -> u32 {
        self.marks() as u32
    }

    /// Writer: sets which items are dead and which were accessed.
    pub fn set_marks(&self, dead: u32, accessed: u32) {
        let marks = u64::from(dead) << u32::BITS | u64::from(accessed);
        self.ring.word(self.unit + 1).store(marks, Ordering::Relaxed);
    }

    /// The last accesses.
    pub fn records(&self) -> Records {
        Records(self.ring.word(self.unit + 2).load(Ordering::Relaxed))
    }

    /// Writer: replaces the last accesses.
    pub fn set_records(&self, records: Records) {
        self.ring.word(self.unit + 2).store(records.0, Ordering::Relaxed);
    }

    /// The fingerprint of an item.
    pub fn fingerprint(&self, item: usize) -> u16 {
        let word = self.ring.word(self.unit + Self::FIXED_WORDS + item / 4).load(Ordering::Relaxed);
        (word >> (item % 4 * 16)) as u16
    }

    /// The items with this fingerprint, one bit each, dead ones among them.
    pub fn matches(&self, fingerprint: u16) -> u32 {
        let wanted = u64::from(fingerprint) * 0x0001_0001_0001_0001;
        let mut found = 0;
        for number in 0..fingerprint_words(self.head.items as usize) {
            let word =
                self.ring.word(self.unit + Self::FIXED_WORDS + number).load(Ordering::Relaxed) ^ wanted;
            for at in 0..4 {
                found |= u32::from((word >> (at * 16)) as u16 == 0) << (number * 4 + at);
            }
        }
        // The last word may have room for more.
        found & all(self.head.items as usize)
    }

    /// Copies what follows the fingerprints.
    pub fn copy_payload(&self, out: &mut Vec<u8>) {
        out.resize(self.head.payload_bytes(), 0);
        self.ring.copy_out(self.unit * UNIT_BYTES + self.head.payload_start(), out);
    }
}

/// A bit for each of `items` items.
pub(super) fn all(items: usize) -> u32 {
    if items >= ITEMS_MAX { u32::MAX } else { (1 << items) - 1 }
}

/// The two last accesses of a block's items (thesis, §3.3.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Records(u64);

impl Records {
    /// The time of the last access of `item` that is known, in milliseconds modulo 2^26: some 18 hours.
    fn time_of(self, item: usize) -> Option<u32> {
        [self.0 as u32, (self.0 >> 32) as u32]
            .into_iter()
            .find(|record| *record != 0 && (record & 63) as usize == item + 1)
            .map(|record| record >> 6)
    }

    /// Milliseconds since the last access of `item` that is known, if there is one. Adds this access.
    pub fn access(self, item: usize, now_ms: u64) -> (Option<u64>, Self) {
        let now = now_ms as u32 & ((1 << TIME_BITS) - 1);
        let gap = self.time_of(item).map(|then| u64::from(now.wrapping_sub(then) & ((1 << TIME_BITS) - 1)));
        let record = now << 6 | (item as u32 + 1);
        // The other item's record stays.
        let other =
            [self.0 as u32, (self.0 >> 32) as u32].into_iter().find(|old| (old & 63) as usize != item + 1);
        (gap, Self(u64::from(record) | u64::from(other.unwrap_or(0)) << 32))
    }

    /// The records of the items that `kept` gives new numbers.
    pub fn renumbered(self, kept: impl Fn(usize) -> Option<usize>) -> Self {
        let renumbered = |record: u32| {
            let item = ((record & 63) as usize).checked_sub(1)?;
            Some(record & !63 | (kept(item)? as u32 + 1))
        };
        let low = renumbered(self.0 as u32).unwrap_or(0);
        let high = renumbered((self.0 >> 32) as u32).unwrap_or(0);
        Self(u64::from(low) | u64::from(high) << 32)
    }
}

/// An item of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
    pub metadata: Metadata,
}

impl<'a> Record<'a> {
    /// Maximum bytes of an item with key and value of these lengths.
    pub fn bytes_max(key_len: usize, value_len: usize) -> usize {
        key_len.saturating_add(value_len).saturating_add(5 + 5 + 10 + 5)
    }

    /// Appends the item.
    pub fn write(&self, out: &mut Vec<u8>) {
        let Metadata { expires_at_ms, flags } = self.metadata;
        let extras = u64::from(expires_at_ms != 0) << 1 | u64::from(flags != 0);
        write_number(self.key.len() as u64, out);
        write_number((self.value.len() as u64) << 2 | extras, out);
        if expires_at_ms != 0 {
            write_number(expires_at_ms, out);
        }
        if flags != 0 {
            write_number(u64::from(flags), out);
        }
        out.extend_from_slice(self.key);
        out.extend_from_slice(self.value);
    }

    /// Takes the first item off `bytes`; `None` if they do not start with one.
    pub fn read(bytes: &mut &'a [u8]) -> Option<Self> {
        let key_len = usize::try_from(read_number(bytes)?).ok()?;
        let lengths = read_number(bytes)?;
        let expires_at_ms = if lengths & 2 != 0 { read_number(bytes)? } else { 0 };
        let flags = if lengths & 1 != 0 { u32::try_from(read_number(bytes)?).ok()? } else { 0 };
        let (key, rest) = bytes.split_at_checked(key_len)?;
        let (value, rest) = rest.split_at_checked(usize::try_from(lengths >> 2).ok()?)?;
        *bytes = rest;
        Some(Self { key, value, metadata: Metadata { expires_at_ms, flags } })
    }
}

fn write_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..u64::BITS).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn items_come_back(
            key in proptest::collection::vec(any::<u8>(), 0..300),
            value in proptest::collection::vec(any::<u8>(), 0..3000),
            expires_at_ms in any::<u64>(),
            flags in any::<u32>(),
        ) {
            let mut bytes = Vec::new();
            let item = Record { key: &key, value: &value, metadata: Metadata { expires_at_ms, flags } };
            item.write(&mut bytes);
            prop_assert!(bytes.len() <= Record::bytes_max(key.len(), value.len()));
            bytes.push(7);
            let mut rest = &bytes[..];
            prop_assert_eq!(Record::read(&mut rest), Some(item));
            prop_assert_eq!(rest, &[7][..]);
        }

        #[test]
        fn any_bytes_are_items_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut rest = &bytes[..];
            while let Some(item) = Record::read(&mut rest) {
                prop_assert!(item.key.len() + item.value.len() <= bytes.len());
            }
        }

        #[test]
        fn heads_come_back(word in any::<u64>()) {
            let head = Head::of_word(word);
            prop_assert_eq!(head.to_word(), word);
            if head.is_sound() {
                prop_assert!(head.payload_start() + head.payload_bytes() <= head.words as usize * UNIT_BYTES);
            }
        }
    }

    #[test]
    fn accesses_of_two_items_are_remembered() {
        let (gap, records) = Records::default().access(0, 1000);
        assert_eq!(gap, None);
        let (gap, records) = records.access(31, 1500);
        assert_eq!(gap, None);
        let (gap, records) = records.access(0, 2000);
        assert_eq!(gap, Some(1000));
        let moved = records.renumbered(|item| (item == 31).then_some(2));
        assert_eq!((moved.access(2, 2500).0, moved.access(0, 2500).0), (Some(1000), None));
        let (gap, records) = records.access(0, (1 << TIME_BITS) + 2001);
        assert_eq!((gap, records.access(31, 1600).0), (Some(1), Some(100)));
    }
}
