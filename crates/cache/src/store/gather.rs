//! Free space in small pieces becomes one piece where items move: what MICA's store mode, whose items stay where they
//! are, loses to fragmentation (decision 0038).
//!
//! ```text
//!  before   [ hole ][ a ][free][ b ][ c ][free]
//!  after    a moved to a hole elsewhere that fits, b and c slid down:   [ b ][ c ][      hole      ]
//! ```
//!
//! A hole grows upwards. Each item behind it goes to a free block elsewhere, if one fits, so that the hole gains a word
//! for each word moved; otherwise it slides down over the hole, which so comes to the next free block. The next hole
//! begins where the last one was filled, and so never slides over what lies densely already, until it has come to the
//! end of the space.

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
    /// Takes the first free block from where the last hole was filled, out of its list, as a hole to grow. Looks at
    /// no more than `looks_left` blocks, and takes those off; `None` if there is none among them.
    pub fn dig(&self, looks_left: &mut u64) -> Option<Hole> {
        let mut start = self.next_hole();
        let mut may_begin_again = true;
        loop {
            if start >= self.words() && may_begin_again {
                (start, may_begin_again) = (0, false);
            }
            if start >= self.words() || *looks_left == 0 {
                self.set_next_hole(start);
                return None;
            }
            let words = self.size(start);
            if self.is_free(start) {
                self.remove(start, words);
                return Some(Hole { start, words });
            }
            *looks_left -= 1;
            start += words;
        }
    }

    /// The next hole is the lowest.
    pub fn begin_again(&self) {
        self.set_next_hole(0);
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

    /// Puts the hole into its list. The next one is looked for from there.
    pub fn fill(&self, hole: Hole) {
        self.set_next_hole(hole.start);
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
