//! [`LogTable`]: recent lookups of items that are not in the cache table (§2.3.3.2).
//!
//! ```text
//!   half 0: where the next tag goes, 0 to 14      halves 1 to 15: tags of 32 bits, a ring; 0: empty
//! ```
//!
//! Threads that append to one line at once may lose an append. A log affects what is cached, never what a lookup
//! returns.

use super::large_memory::filled;
use super::place::Place;
use crate::sync::{AtomicU64, Ordering};

/// Number of tags in a line.
const TAGS: u64 = 15;

/// Bytes of a line.
pub(super) const LINE_BYTES: usize = 64;

#[derive(Debug)]
#[repr(align(64))]
struct Line {
    words: [AtomicU64; LINE_BYTES / 8],
}

/// See the module.
#[derive(Debug)]
pub(super) struct LogTable {
    lines: Box<[Line]>,
}

impl LogTable {
    pub fn new(lines: usize) -> Self {
        let line = |_| Line { words: std::array::from_fn(|_| AtomicU64::new(0)) };
        Self { lines: filled(lines.max(1), line) }
    }

    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.lines)
    }

    /// Appends a lookup of `place`. Returns how often the line's ring has its tag now, this time included.
    pub fn append(&self, place: Place) -> u32 {
        let line = &self.lines[place.line_of(self.lines.len())];
        let tag = place.log_tag();
        let position = line.words[0].load(Ordering::Relaxed) as u32 as u64 % TAGS;
        line.set_half(1 + position as usize, tag);
        line.set_half(0, ((position + 1) % TAGS) as u32);
        line.words
            .iter()
            .enumerate()
            .map(|(number, word)| {
                let word = word.load(Ordering::Relaxed);
                u32::from((word >> 32) as u32 == tag) + u32::from(number != 0 && word as u32 == tag)
            })
            .sum()
    }
}

impl Line {
    fn set_half(&self, half: usize, value: u32) {
        let word = &self.words[half / 2];
        let shift = half % 2 * 32;
        let others = word.load(Ordering::Relaxed) & !(u64::from(u32::MAX) << shift);
        word.store(others | u64::from(value) << shift, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    #[test]
    fn a_ring_knows_its_last_fifteen_tags() {
        let log = LogTable::new(1);
        let place = |number: u64| Place::of(number << 16 | 1);
        for times in 1..=3 {
            assert_eq!(log.append(place(1)), times);
        }
        for number in 2..=13 {
            assert_eq!(log.append(place(number)), 1);
        }
        // Fifteen are in the ring; the next one replaces the oldest, which has the same tag.
        assert_eq!(log.append(place(1)), 3);
        for number in 20..34 {
            assert_eq!(log.append(place(number)), 1);
        }
        // Only the last of four was left, and it was the oldest.
        assert_eq!(log.append(place(1)), 1);
        assert_eq!(log.append(place(1)), 2);
    }
}
