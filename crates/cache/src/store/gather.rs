//! Free space in small pieces becomes one piece where items move: what MICA's store mode, whose items stay where they
//! are, loses to fragmentation (decision 0038).
//!
//! ```text
//!  before   [ hole ][ a ][free][ b ][ c ][free]
//!  after    a moved to a hole elsewhere that fits, b and c slid down:   [ b ][ c ][      hole      ]
//! ```
//!
//! A hole begins as one of the largest free blocks and grows upwards. Each item behind it goes to a free block
//! elsewhere, if one fits, so that the hole gains a word for each word moved; otherwise it slides down over the hole,
//! which so comes to the next free block.

use crate::item::Header;
use crate::sync::Ordering;

use super::space::{PREVIOUS_IS_FREE, Space};

/// A free block that is in no list while it grows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hole {
    /// Its first unit.
    pub start: u32,
    /// Its words.
    pub words: u32,
}

/// What lies behind a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Neighbour {
    /// The space ends, or the hole may grow no more.
    End,
    /// An item's block of so many words.
    Item(u32),
}

impl Hole {
    /// The unit behind the hole.
    pub fn end(self) -> u32 {
        self.start + self.words
    }
}

impl Space {
    /// Takes one of the largest free blocks, but not the one at `but`, out of its list, as a hole to grow. `None` if
    /// there is no other.
    pub fn dig(&self, but: Option<u32>) -> Option<Hole> {
        let start = self.largest(but)?;
        let words = self.size(start);
        self.remove(start, words);
        Some(Hole { start, words })
    }

    /// Joins free blocks behind the hole to it, and tells what comes then.
    pub fn widen(&self, hole: &mut Hole) -> Neighbour {
        loop {
            let end = hole.end();
            if end >= self.words() {
                return Neighbour::End;
            }
            let words = self.size(end);
            if !self.may_join(hole.words, words) {
                return Neighbour::End;
            }
            if !self.is_free(end) {
                return Neighbour::Item(words);
            }
            self.remove(end, words);
            self.grow(hole, words);
        }
    }

    /// The block of `words` words behind the hole, whose item has moved elsewhere, becomes part of the hole.
    pub fn take_over(&self, hole: &mut Hole, words: u32) {
        self.count_freed(words);
        self.grow(hole, words);
    }

    /// The block of `words` words behind the hole has moved to the hole's start.
    pub fn shift(&self, hole: &mut Hole, words: u32) {
        hole.start += words;
        self.mark_free(hole.start, hole.words);
    }

    /// Puts the hole into its list.
    pub fn fill(&self, hole: Hole) {
        self.insert(hole.start, hole.words);
        self.tell_next(hole.end(), true);
    }

    /// Copies a block of `words` words from `from` to `to`, which may overlap if it is the lower one, under another
    /// header.
    pub fn copy(&self, from: u32, to: u32, words: u32, header: Header) {
        let source = self.ring().run(from as usize, words as usize).skip(1);
        let target = self.ring().run(to as usize, words as usize).skip(1);
        self.store(to, header.0 & !PREVIOUS_IS_FREE);
        for (source, target) in source.zip(target) {
            target.store(source.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    fn grow(&self, hole: &mut Hole, words: u32) {
        hole.words += words;
        self.mark_free(hole.start, hole.words);
    }
}
