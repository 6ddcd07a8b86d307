//! One space for items of all sizes: segregated fits with boundary tags (Lim's thesis, §5.3.3; Knuth, volume 1, 2.5).
//!
//! ```text
//!  used block   [ header of the item; bit 63: the block before is free ][ ... ]
//!  free block   [ mark | words ][ next:32 | previous:32 ][ ... ][ words ]
//! ```
//!
//! Adjacent free blocks are always joined; the header's bit and the last word of a free block reveal one below. So a
//! space that was full of small items can take large ones again. A block has at least three words, the size of a free
//! one, and at most two words more than its item needs. Free space in pieces that are too small is gathered (`gather`).

use std::io;

use crate::canary::{Canary, is_broken};
use crate::index::Entry;
use crate::item::{Header, Site};
use crate::memory::{Array, Element, Pages, Ring, SMALL_PAGES_BYTES, UNIT_BYTES};
use crate::sync::{AtomicU64, Ordering, fence};

use super::size_class::{CLASSES, class_of, is_exact};
use super::traits::Region;

/// Words of the smallest block.
pub(crate) const BLOCK_WORDS_MIN: u32 = 3;
/// Maximum blocks inspected in a class of several sizes, before one of a later class is taken.
const TRIES: usize = 8;

pub(super) const PREVIOUS_IS_FREE: u64 = 1 << 63;
/// Stored in the bits of a key's length, with a value that no key has.
const FREE: u64 = ((1 << 17) - 1) << 24;
const WORDS_MASK: u64 = (1 << 24) - 1;
const NONE: u32 = u32::MAX;

/// A word that is initially zero.
#[derive(Debug)]
#[repr(transparent)]
struct Word(AtomicU64);

// SAFETY: one atomic integer without drop glue, for which zeros are a valid value.
unsafe impl Element for Word {
    #[cfg(any(not(target_os = "linux"), miri, loom))]
    fn blank() -> Self {
        Self(AtomicU64::new(0))
    }
}

/// See the module. One writer; readers only load words of items.
#[derive(Debug)]
pub(crate) struct Space {
    ring: Ring,
    words: u32,
    /// First free block of each class, plus one; 0 if the class is empty.
    heads: Array<Word>,
    /// A bit for each class that has a free block.
    occupied: [AtomicU64; CLASSES.div_ceil(64)],
    used_words: AtomicU64,
    /// The block at which the next search for a hole starts.
    next_hole: AtomicU64,
    /// Length in words of the lowest part of the space that may have huge pages; reaching its end triggers the next
    /// step.
    huge_from: AtomicU64,
}

impl Space {
    /// An empty space of `bytes`, a multiple of a page.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn new(bytes: usize) -> io::Result<Self> {
        let words = u32::try_from(bytes / UNIT_BYTES).unwrap_or(u32::MAX - 1);
        let space = Self {
            ring: Ring::new(bytes, 0, Pages::AsUsed)?,
            words,
            heads: Array::new(CLASSES)?,
            occupied: std::array::from_fn(|_| AtomicU64::new(0)),
            used_words: AtomicU64::new(0),
            next_hole: AtomicU64::new(0),
            huge_from: AtomicU64::new((SMALL_PAGES_BYTES / UNIT_BYTES) as u64),
        };
        space.add_all();
        Ok(space)
    }

    /// Bytes of a space of `bytes` including its lists.
    pub fn mapped_bytes(bytes: usize) -> usize {
        bytes + Array::<Word>::mapped_bytes(CLASSES)
    }

    /// Makes the whole space free. A size has 24 bits, so a larger space starts as several free blocks, which are never
    /// joined beyond that. The lowest is the first of its list, so that blocks fill the space from its start.
    fn add_all(&self) {
        let (mut start, mut blocks) = (0, Vec::new());
        while start < self.words {
            let mut words = (self.words - start).min(WORDS_MASK as u32);
            if (1..BLOCK_WORDS_MIN).contains(&(self.words - start - words)) {
                words -= BLOCK_WORDS_MIN;
            }
            blocks.push((start, words));
            start += words;
        }
        blocks.into_iter().rev().for_each(|(start, words)| self.insert(start, words));
    }

    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Words in total.
    pub fn words(&self) -> u32 {
        self.words
    }

    /// Words of all blocks in use.
    pub fn used_words(&self) -> u64 {
        self.used_words.load(Ordering::Relaxed)
    }

    /// Takes a block of at least `words` words and returns its position and size. `None` if no free block is large
    /// enough.
    pub fn allocate(&self, words: u32) -> Option<(u32, u32)> {
        // Entries of former items of the block were removed before this line, possibly by another thread: who sees a
        // word written after it sees that too.
        if !is_broken(Canary::AllocationUnfenced) {
            fence(Ordering::Release);
        }
        let words = words.max(BLOCK_WORDS_MIN);
        let start = self.find(words)?;
        let found = self.size(start);
        self.remove(start, found);
        let rest = found - words;
        let taken = if rest < BLOCK_WORDS_MIN { found } else { words };
        if taken < found {
            // The block that follows already knows that the block before it is free.
            self.insert(start + taken, rest);
        } else {
            self.tell_next(start + taken, false);
        }
        self.store(start, u64::from(taken));
        self.used_words.fetch_add(u64::from(taken), Ordering::Relaxed);
        let end = u64::from(start) + u64::from(taken);
        if end > self.huge_from.load(Ordering::Relaxed) {
            self.use_huge_pages(end);
        }
        Some((start, taken))
    }

    /// Called when blocks reach word `end` for the first time. The part before it has huge pages from now on, and as
    /// much after it. The rest does not, since free blocks are marked at both ends, which would make their huge pages
    /// resident.
    #[cold]
    fn use_huge_pages(&self, end: u64) {
        let before = self.huge_from.swap(2 * end, Ordering::Relaxed);
        // The first time, the part in use has small pages.
        let first =
            if before == (SMALL_PAGES_BYTES / UNIT_BYTES) as u64 { 0 } else { before as usize * UNIT_BYTES };
        let end = end as usize * UNIT_BYTES;
        self.ring.use_huge_pages(first, end, 2 * end);
    }

    /// Frees the block at `start`.
    fn free_block(&self, start: u32) {
        let words = self.size(start);
        self.used_words.fetch_sub(u64::from(words), Ordering::Relaxed);
        let (mut first, mut sum) = (start, words);
        if self.load(start) & PREVIOUS_IS_FREE != 0 {
            let before = self.load(start - 1) as u32;
            if self.may_join(sum, before) {
                self.remove(start - before, before);
                (first, sum) = (start - before, sum + before);
            }
        }
        let next = start + words;
        if next < self.words && self.is_free(next) {
            let after = self.size(next);
            if self.may_join(sum, after) {
                self.remove(next, after);
                sum += after;
            }
        }
        self.insert(first, sum);
        self.tell_next(first + sum, true);
        if (first..first + sum).contains(&self.next_hole()) {
            self.set_next_hole(first);
        }
    }

    pub(super) fn next_hole(&self) -> u32 {
        self.next_hole.load(Ordering::Relaxed) as u32
    }

    pub(super) fn set_next_hole(&self, block: u32) {
        self.next_hole.store(u64::from(block), Ordering::Relaxed);
    }

    /// Words of all free blocks.
    pub fn free_words(&self) -> u64 {
        u64::from(self.words) - self.used_words()
    }

    pub(super) fn may_join(&self, words: u32, other: u32) -> bool {
        u64::from(words) + u64::from(other) <= WORDS_MASK
    }

    /// A free block of at least `words` words.
    fn find(&self, words: u32) -> Option<u32> {
        let class = class_of(words);
        if !is_exact(class) {
            let mut block = self.head(class);
            for _ in 0..TRIES {
                let Some(start) = block else { break };
                if self.size(start) >= words {
                    return Some(start);
                }
                block = self.links(start).0;
            }
        }
        let first = if is_exact(class) { class } else { class + 1 };
        self.first_class_from(first).and_then(|class| self.head(class))
    }

    /// The first class from `class` on that has a free block.
    fn first_class_from(&self, class: usize) -> Option<usize> {
        let mut mask = u64::MAX << (class % 64);
        for number in class / 64..self.occupied.len() {
            let bits = self.occupied[number].load(Ordering::Relaxed) & mask;
            if bits != 0 {
                return Some(number * 64 + bits.trailing_zeros() as usize);
            }
            mask = u64::MAX;
        }
        None
    }

    /// Writes a free block and puts it at the head of its list.
    pub(super) fn insert(&self, start: u32, words: u32) {
        let class = class_of(words);
        let next = self.head(class);
        self.store(start, FREE | u64::from(words));
        self.store_links(start, next, None);
        self.store(start + words - 1, u64::from(words));
        if let Some(next) = next {
            self.store_links(next, self.links(next).0, Some(start));
        }
        self.set_head(class, Some(start));
    }

    /// Takes a free block out of its list.
    pub(super) fn remove(&self, start: u32, words: u32) {
        let class = class_of(words);
        let (next, previous) = self.links(start);
        match previous {
            Some(previous) => self.store_links(previous, next, self.links(previous).1),
            None => self.set_head(class, next),
        }
        if let Some(next) = next {
            self.store_links(next, self.links(next).0, previous);
        }
    }

    /// Tells the block at `start`, if there is one and it is used, whether the block before it is free.
    pub(super) fn tell_next(&self, start: u32, is_free: bool) {
        if start < self.words && !self.is_free(start) {
            let header = self.load(start) & !PREVIOUS_IS_FREE;
            self.store(start, if is_free { header | PREVIOUS_IS_FREE } else { header });
        }
    }

    pub(super) fn is_free(&self, start: u32) -> bool {
        self.load(start) & FREE == FREE
    }

    /// Words of the block at `start`, used or free.
    pub(super) fn size(&self, start: u32) -> u32 {
        Header(self.load(start)).words() as u32
    }

    fn head(&self, class: usize) -> Option<u32> {
        (self.heads[class].0.load(Ordering::Relaxed) as u32).checked_sub(1)
    }

    fn set_head(&self, class: usize, block: Option<u32>) {
        self.heads[class].0.store(block.map_or(0, |block| u64::from(block) + 1), Ordering::Relaxed);
        let (word, bit) = (&self.occupied[class / 64], 1 << (class % 64));
        let bits = word.load(Ordering::Relaxed) & !bit;
        word.store(bits | if block.is_some() { bit } else { 0 }, Ordering::Relaxed);
    }

    /// Next and previous block of the same list.
    fn links(&self, start: u32) -> (Option<u32>, Option<u32>) {
        let links = self.load(start + 1);
        let block = |number: u32| (number != NONE).then_some(number);
        (block((links >> 32) as u32), block(links as u32))
    }

    fn store_links(&self, start: u32, next: Option<u32>, previous: Option<u32>) {
        let number = |block: Option<u32>| u64::from(block.unwrap_or(NONE));
        self.store(start + 1, number(next) << 32 | number(previous));
    }

    #[inline(always)]
    pub fn load(&self, unit: u32) -> u64 {
        self.ring.word(unit as usize).load(Ordering::Relaxed)
    }

    /// Counts `words` words of a block as free.
    pub(super) fn count_freed(&self, words: u32) {
        self.used_words.fetch_sub(u64::from(words), Ordering::Relaxed);
    }

    /// Marks a block that is not in any list as free, for its neighbours.
    pub(super) fn mark_free(&self, start: u32, words: u32) {
        self.store(start, FREE | u64::from(words));
    }

    pub(super) fn store(&self, unit: u32, word: u64) {
        self.ring.word(unit as usize).store(word, Ordering::Relaxed);
    }
}

impl Region for Space {
    #[inline(always)]
    fn site(&self, entry: Entry) -> Site<'_> {
        // The number of a word is the lowest part of an entry.
        let unit = entry.0 as u32;
        Site { ring: &self.ring, unit: unit as usize, words_max: self.words.saturating_sub(unit) as usize }
    }

    /// Nothing is evicted from a space.
    #[inline(always)]
    fn contains(&self, _entry: Entry) -> bool {
        true
    }

    fn free(&self, entry: Entry) {
        self.free_block(entry.0 as u32);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Every word belongs to one block; no two free blocks are adjacent; bits and last words are correct.
    fn check(space: &Space, used: &std::collections::BTreeMap<u32, u32>) {
        let (mut at, mut was_free, mut count) = (0, false, 0);
        while at < space.words {
            let words = space.size(at);
            if space.is_free(at) {
                assert!(!was_free, "two free blocks at {at}");
                assert_eq!(space.load(at + words - 1), u64::from(words));
            } else {
                assert_eq!(used.get(&at), Some(&words));
                assert_eq!((space.load(at) & PREVIOUS_IS_FREE != 0), was_free, "block at {at}");
                count += 1;
            }
            was_free = space.is_free(at);
            at += words;
        }
        assert_eq!((at, count), (space.words, used.len()));
        assert_eq!(space.used_words(), used.values().map(|&words| u64::from(words)).sum::<u64>());
    }

    proptest! {
        #[test]
        fn blocks_never_overlap_and_free_neighbours_join(
            steps in proptest::collection::vec((any::<bool>(), 1_u32..3000, any::<u32>()), 1..300)
        ) {
            let space = Space::new(1 << 16).unwrap();
            let mut used = std::collections::BTreeMap::new();
            for (allocates, words, choice) in steps {
                if allocates {
                    if let Some((start, taken)) = space.allocate(words) {
                        prop_assert!(taken >= words && taken < words.max(BLOCK_WORDS_MIN) + BLOCK_WORDS_MIN);
                        prop_assert!(used.insert(start, taken).is_none());
                    }
                } else if let Some((&start, _)) = used.iter().nth(choice as usize % used.len().max(1)) {
                    space.free_block(start);
                    used.remove(&start);
                }
                check(&space, &used);
            }
            for start in used.keys() {
                space.free_block(*start);
            }
            check(&space, &std::collections::BTreeMap::new());
            // Everything is one block again.
            prop_assert_eq!(space.allocate(space.words), Some((0, space.words)));
        }
    }
}
