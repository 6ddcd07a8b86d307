//! The memory of blocks: a log in segments, from which the blocks that are left are moved together (log-structured
//! memory, Rumble et al., FAST 2014).
//!
//! ```text
//!  segment   [ block ][ gone ][ block ][ block ][ gone ] ...      closed
//!            [ block ][ block ]                                   open: the next block goes here
//!            [                                         ]          empty
//! ```
//!
//! Every size of a block fits without pieces between them, and a segment that is empty goes back to the system whole,
//! so the arena can shrink while it is used. The thesis takes blocks from `malloc` (§3.3.2), which can do neither.

use crate::canary::{Canary, is_broken};
use crate::memory::{Ring, UNIT_BYTES};
use crate::sync::{Ordering, fence};

/// Share of the segments that blocks may fill, in percent. At this share five bytes of other blocks are moved for each
/// byte of a new one, which takes a tenth of the time of compressing it; at 94 %, ten.
const FILLED_PERCENT: u64 = 90;

/// Segments that are kept empty for blocks that move, and for the open segment.
const SPARE_SEGMENTS: u64 = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Its memory belongs to the system.
    Unused,
    Empty,
    Open,
    Closed,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    state: State,
    /// Words from its start that were written.
    written: u32,
    /// Words of blocks that are still in use.
    live: u32,
}

/// The writer's knowledge of the segments of a ring.
#[derive(Debug)]
pub(super) struct Arena {
    segment_words: u32,
    segments: Vec<Segment>,
    open: Option<usize>,
    /// Maximum segments that may be resident.
    limit: usize,
    resident: usize,
    live_words: u64,
}

impl Arena {
    /// An empty arena over a ring of `words` words.
    pub fn new(words: u64, segment_words: u32) -> Self {
        let segments = (words / u64::from(segment_words)) as usize;
        let unused = Segment { state: State::Unused, written: 0, live: 0 };
        Self {
            segment_words,
            segments: vec![unused; segments],
            open: None,
            limit: 0,
            resident: 0,
            live_words: 0,
        }
    }

    /// Bytes of a segment.
    pub fn segment_bytes(&self) -> usize {
        self.segment_words as usize * UNIT_BYTES
    }

    /// Resident bytes.
    pub fn resident_bytes(&self) -> usize {
        self.resident * self.segment_bytes()
    }

    /// Words of blocks in use.
    pub fn live_words(&self) -> u64 {
        self.live_words
    }

    /// Sets the maximum resident bytes. If more are resident, [`is_over`](Self::is_over) until blocks were dropped and
    /// segments were emptied.
    pub fn set_limit(&mut self, bytes: usize) {
        self.limit = (bytes / self.segment_bytes()).min(self.segments.len());
    }

    /// Whether blocks must be dropped before blocks of `words` words are added.
    pub fn is_over(&self, words: u64) -> bool {
        self.live_words + words > self.live_words_max()
    }

    fn live_words_max(&self) -> u64 {
        let limit = self.limit as u64;
        let segments = limit.saturating_sub(SPARE_SEGMENTS);
        (limit * u64::from(self.segment_words) * FILLED_PERCENT / 100)
            .min(segments * u64::from(self.segment_words))
    }

    /// Whether `words` words can be reserved without the segment that is kept for blocks that move.
    pub fn has_room(&self, words: u32) -> bool {
        self.left_in_open() >= words || self.empty_segments() > 1
    }

    fn left_in_open(&self) -> u32 {
        self.open.map_or(0, |open| self.segment_words - self.segments[open].written)
    }

    /// Segments that may be opened.
    fn empty_segments(&self) -> usize {
        let empty = self.segments.iter().filter(|segment| segment.state == State::Empty).count();
        empty + self.limit.saturating_sub(self.resident)
    }

    /// Whether more segments are resident than the limit allows.
    pub fn exceeds_limit(&self) -> bool {
        self.resident > self.limit
    }

    /// Reserves `words` words and returns the first; `None` if no segment has room.
    pub fn reserve(&mut self, words: u32) -> Option<u32> {
        debug_assert!(words <= self.segment_words);
        // Blocks that were here before were dropped before this line: a reader that sees a word written after it also
        // sees the changed version.
        if !is_broken(Canary::AllocationUnfenced) {
            fence(Ordering::Release);
        }
        if self.left_in_open() < words {
            self.open_another()?;
        }
        let open = self.open?;
        let segment = &mut self.segments[open];
        let start = open as u32 * self.segment_words + segment.written;
        segment.written += words;
        segment.live += words;
        self.live_words += u64::from(words);
        Some(start)
    }

    fn open_another(&mut self) -> Option<()> {
        let with = |state: State| self.segments.iter().position(|segment| segment.state == state);
        let next = match with(State::Empty) {
            Some(empty) => empty,
            None if self.resident < self.limit => {
                let unused = with(State::Unused)?;
                self.resident += 1;
                unused
            }
            None => return None,
        };
        if let Some(full) = self.open {
            self.segments[full].state = State::Closed;
        }
        self.segments[next] = Segment { state: State::Open, written: 0, live: 0 };
        self.open = Some(next);
        Some(())
    }

    /// The block of `words` words at `unit` is not used any more.
    pub fn drop_block(&mut self, unit: u32, words: u32) {
        self.segments[(unit / self.segment_words) as usize].live -= words;
        self.live_words -= u64::from(words);
    }

    /// The closed segment with the fewest words in use: its number, its words, and how many of them were written.
    /// `None` if moving its blocks would free nothing.
    pub fn emptiest(&self) -> Option<(usize, std::ops::Range<u32>)> {
        let closed = self.segments.iter().enumerate().filter(|(_, segment)| segment.state == State::Closed);
        let (number, segment) = closed.min_by_key(|(_, segment)| segment.live)?;
        let start = number as u32 * self.segment_words;
        (segment.live < self.segment_words).then_some((number, start..start + segment.written))
    }

    /// A segment has no blocks any more.
    pub fn emptied(&mut self, number: usize, ring: &Ring) {
        debug_assert_eq!(self.segments[number].live, 0);
        self.segments[number].state = State::Empty;
        self.shrink(ring);
    }

    /// Returns empty segments to the system while the limit is exceeded, except one for blocks that move.
    pub fn shrink(&mut self, ring: &Ring) {
        while self.exceeds_limit() {
            let mut empty =
                (0..self.segments.len()).rev().filter(|&at| self.segments[at].state == State::Empty);
            let (Some(empty), Some(_)) = (empty.next(), empty.next()) else { return };
            self.segments[empty].state = State::Unused;
            self.resident -= 1;
            ring.release(empty * self.segment_bytes(), self.segment_bytes());
        }
    }

    /// Drops all blocks and returns all memory.
    pub fn clear(&mut self, ring: &Ring) {
        for number in 0..self.segments.len() {
            if self.segments[number].state != State::Unused {
                ring.release(number * self.segment_bytes(), self.segment_bytes());
            }
            self.segments[number] = Segment { state: State::Unused, written: 0, live: 0 };
        }
        (self.open, self.resident, self.live_words) = (None, 0, 0);
    }
}
