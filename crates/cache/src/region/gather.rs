//! Gathers free space in small pieces into one piece by moving items. MICA's store mode, whose items never move, loses
//! this space to fragmentation (decision 0038).
//!
//! ```text
//!  before   [ hole ][ a ][free][ b ][ c ][free]
//!  after    a moved to a hole elsewhere that fits, b and c slid down:   [ b ][ c ][      hole      ]
//! ```
//!
//! A hole grows upwards. Each item after it moves to a free block elsewhere, if one fits, so that the hole gains a word
//! for each word moved; otherwise it slides down over the hole, which thereby gets closer to the next free block. The
//! next search for a hole starts where the last one was filled, so it never slides items that are already dense until
//! it has reached the end of the space.

use crate::item::Header;
use crate::sync::Ordering;

use super::space::{PREVIOUS_IS_FREE, Space};

/// A free block that is not in any list while it grows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hole {
    /// Its first unit.
    pub start: u32,
    /// Its words.
    pub words: u32,
}

/// What follows a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Neighbour {
    /// The space ends, or the hole must not grow further.
    End,
    /// An item's block of this many words.
    Item(u32),
}

impl Hole {
    /// The unit after the hole.
    pub fn end(self) -> u32 {
        self.start + self.words
    }
}

impl Space {
    /// Takes the first free block after the place where the last hole was filled out of its list, as a hole to grow.
    /// Inspects at most `looks_left` blocks, and subtracts those that it inspected; `None` if none of them is free.
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

    /// Makes the next search start at the beginning of the space.
    pub fn begin_again(&self) {
        self.set_next_hole(0);
    }

    /// Joins the free blocks after the hole to it, and returns what follows them.
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

    /// Adds the block of `words` words after the hole, whose item has moved elsewhere, to the hole.
    pub fn take_over(&self, hole: &mut Hole, words: u32) {
        self.count_freed(words);
        self.grow(hole, words);
    }

    /// Called when the block of `words` words after the hole has moved to the hole's start.
    pub fn shift(&self, hole: &mut Hole, words: u32) {
        hole.start += words;
        self.mark_free(hole.start, hole.words);
    }

    /// Puts the hole into its list. The next search starts there.
    pub fn fill(&self, hole: Hole) {
        self.set_next_hole(hole.start);
        self.insert(hole.start, hole.words);
        self.tell_next(hole.end(), true);
    }

    /// Copies a block of `words` words from `from` to `to`, with another header. The two may overlap if `to` is the
    /// lower one.
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
