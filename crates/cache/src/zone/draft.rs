//! A block while it is composed, before it is written to the arena.

use crate::memory::{Ring, UNIT_BYTES};
use crate::sync::Ordering;

use super::block::{Block, Head, ITEMS_MAX, Records};
use super::codec::Encoder;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// Without its words and slack, which follow from the rest.
    pub head: Head,
    pub dead: u32,
    pub accessed: u32,
    pub records: Records,
    pub fingerprints: [u16; ITEMS_MAX],
    pub payload: Vec<u8>,
}

impl Draft {
    /// Head and marks of a block, and fingerprints of its items; an empty payload.
    pub fn copy(&mut self, block: &Block<'_>) {
        self.head = block.head;
        (self.dead, self.accessed, self.records) = (block.dead(), block.accessed(), block.records());
        for item in 0..block.head.items as usize {
            self.fingerprints[item] = block.fingerprint(item);
        }
        self.payload.clear();
    }

    /// Makes it an empty block of the keys whose paths start with the `depth` bits of `prefix`.
    pub fn clear(&mut self, prefix: u32, depth: u32) {
        self.head = Head { prefix, depth, ..Head::default() };
        (self.dead, self.accessed, self.records) = (0, 0, Records::default());
        self.payload.clear();
    }

    /// Adds an item, whose bytes the payload gets separately.
    pub fn add(&mut self, fingerprint: u16, is_accessed: bool) {
        let number = self.head.items;
        self.fingerprints[number as usize] = fingerprint;
        self.accessed |= u32::from(is_accessed) << number;
        self.head.items += 1;
    }

    /// Appends a chunk of the next `items` items to the payload.
    pub fn add_chunk(&mut self, encoder: &mut Encoder, items: usize, raw: &[u8]) {
        let coding = encoder.encode(items, raw, &mut self.payload);
        self.head.dictionaries |= coding.dictionaries();
    }

    /// Determines its words and slack, and returns the words.
    pub fn finish(&mut self) -> u32 {
        let bytes = self.head.payload_start() + self.payload.len();
        let words = bytes.div_ceil(UNIT_BYTES);
        self.head.words = words as u32;
        self.head.slack = (words * UNIT_BYTES - bytes) as u32;
        self.head.words
    }

    /// Writes the block, which is [finished](Self::finish), to word `unit` and the words after it.
    pub fn write(&self, ring: &Ring, unit: u32) {
        let unit = unit as usize;
        let store = |word: usize, content: u64| ring.word(unit + word).store(content, Ordering::Relaxed);
        store(0, self.head.to_word());
        let fixed = self.head.payload_start() / UNIT_BYTES;
        let fingerprints = self.fingerprints[..self.head.items as usize].chunks(4);
        let block = Block { ring, unit, head: self.head };
        block.set_marks(self.dead, self.accessed);
        block.set_records(self.records);
        for (number, four) in fingerprints.enumerate() {
            let word = four.iter().rev().fold(0, |word, &fingerprint| word << 16 | u64::from(fingerprint));
            store(Block::FIXED_WORDS + number, word);
        }
        ring.copy_in((unit + fixed) * UNIT_BYTES, &self.payload);
    }
}
