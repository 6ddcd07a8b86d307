//! A ring with head and tail.

use std::io;

use crate::canary::{Canary, is_broken};
use crate::item::Header;
use crate::memory::{HUGE_PAGE_BYTES, Pages, Ring, SMALL_PAGES_BYTES, UNIT_BYTES};
use crate::sync::{AtomicU64, Ordering, fence};

use super::position::{Layout, Position};

/// Items one behind another, in a circle. One writer; readers check with [`contains`](Self::contains) whether what
/// they read was still there.
#[derive(Debug)]
pub(crate) struct CircularLog {
    ring: Ring,
    layout: Layout,
    item_words_max: usize,
    /// Position of the oldest item, and of the next one. Written by the writer.
    head: AtomicU64,
    tail: AtomicU64,
    /// Where the writer looks ahead of the head, and how many items that is.
    scout: AtomicU64,
    scouted: AtomicU64,
    /// The position of the tail from which on the ring has huge pages; `u64::MAX` once it has, or if it is too small.
    huge_from: AtomicU64,
}

impl CircularLog {
    /// An empty log of `capacity` bytes for items of at most `window` bytes, both multiples of a page; positions of
    /// `position_bits`.
    ///
    /// # Errors
    /// What the system says when it refuses.
    pub fn new(capacity: usize, window: usize, position_bits: u32) -> io::Result<Self> {
        Ok(Self {
            ring: Ring::new(capacity, window, Pages::AsUsed)?,
            layout: Layout::new((capacity / UNIT_BYTES) as u64, position_bits),
            item_words_max: window / UNIT_BYTES,
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            scout: AtomicU64::new(0),
            scouted: AtomicU64::new(0),
            huge_from: AtomicU64::new(huge_from(capacity)),
        })
    }

    #[inline(always)]
    pub fn ring(&self) -> &Ring {
        &self.ring
    }

    #[inline(always)]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Words of the largest item that fits.
    #[inline(always)]
    pub fn item_words_max(&self) -> usize {
        self.item_words_max
    }

    /// Where the oldest item lies.
    #[inline(always)]
    pub fn head(&self) -> Position {
        Position(self.head.load(Ordering::Relaxed))
    }

    /// Where the next item goes.
    #[inline(always)]
    pub fn tail(&self) -> Position {
        Position(self.tail.load(Ordering::Relaxed))
    }

    /// Words in use.
    #[inline(always)]
    pub fn used(&self) -> u64 {
        self.layout.distance(self.head(), self.tail())
    }

    /// Words that an append may take.
    #[inline(always)]
    pub fn free(&self) -> u64 {
        self.layout.capacity() - self.used()
    }

    /// Whether the item at `position` has not been evicted.
    ///
    /// A reader beside the writer calls it behind an acquire fence after its last load from the ring: `advance_head`
    /// is stored before the release fence in `reserve`, which comes before the stores that a reader might have seen.
    #[inline(always)]
    pub fn contains(&self, position: Position) -> bool {
        let head = self.head();
        self.layout.distance(head, position) < self.layout.distance(head, self.tail())
    }

    /// Writer: makes the next `words` words the caller's to write, and moves the tail behind them.
    ///
    /// `free` must be at least that much.
    #[inline(always)]
    pub fn reserve(&self, words: usize) -> Position {
        debug_assert!(words as u64 <= self.free(), "the caller made room");
        // Evictions and unlinks before this line are seen by whoever sees one of the words written after it.
        if !is_broken(Canary::ReserveUnfenced) {
            fence(Ordering::Release);
        }
        let position = self.tail();
        let tail = self.layout.after(position, words as u64);
        self.tail.store(tail.0, Ordering::Relaxed);
        if tail.0 >= self.huge_from.load(Ordering::Relaxed) {
            self.use_huge_pages();
        }
        position
    }

    /// Writer: the ring is used as far as it has small pages. The rest and what is there have huge ones from now on.
    #[cold]
    fn use_huge_pages(&self) {
        let capacity = self.layout.capacity() as usize * UNIT_BYTES;
        let used = huge_from(capacity) as usize * UNIT_BYTES;
        self.huge_from.store(u64::MAX, Ordering::Relaxed);
        self.ring.use_huge_pages(0, used, capacity);
    }

    /// Writer: the oldest item, of `words` words, is evicted.
    #[inline(always)]
    pub fn advance_head(&self, words: usize) {
        self.head.store(self.layout.after(self.head(), words as u64).0, Ordering::Relaxed);
        match self.scouted.load(Ordering::Relaxed) {
            0 => self.scout.store(self.head().0, Ordering::Relaxed),
            scouted => self.scouted.store(scouted - 1, Ordering::Relaxed),
        }
    }

    /// Writer: the next item ahead of the head that was not looked at, up to `lead` items ahead.
    #[inline(always)]
    pub fn scout(&self, lead: u64) -> Option<(usize, Header)> {
        let (position, scouted) =
            (Position(self.scout.load(Ordering::Relaxed)), self.scouted.load(Ordering::Relaxed));
        if scouted >= lead || position == self.tail() {
            return None;
        }
        let header = Header(self.load(position, 0));
        self.scout.store(self.layout.after(position, header.words() as u64).0, Ordering::Relaxed);
        self.scouted.store(scouted + 1, Ordering::Relaxed);
        Some((self.layout.unit(position), header))
    }

    /// Writer: all items are evicted.
    pub fn clear(&self) {
        self.head.store(self.tail().0, Ordering::Relaxed);
        self.scout.store(self.tail().0, Ordering::Relaxed);
        self.scouted.store(0, Ordering::Relaxed);
    }

    /// Loads the word at `position`.
    #[inline(always)]
    pub fn load(&self, position: Position, word: usize) -> u64 {
        self.ring.word(self.layout.unit(position) + word).load(Ordering::Relaxed)
    }

    /// Writer: gives the memory back; readers find zeros.
    pub fn release(&self) {
        self.clear();
        self.ring.release(0, self.layout.capacity() as usize * UNIT_BYTES);
    }

    /// Gives back the memory of items before `position`, a lap ago at most, as far as it begins at byte `from` of the
    /// ring. Returns where the next call should begin.
    pub fn release_before(&self, from: usize, position: Position) -> usize {
        let end = self.layout.unit(position) * UNIT_BYTES;
        if end < from {
            self.ring.release(from, self.layout.capacity() as usize * UNIT_BYTES - from);
            return 0;
        }
        self.ring.release(from, end - from);
        end
    }
}

/// Where the tail of a log of `capacity` bytes is in its first lap when the ring gets huge pages.
fn huge_from(capacity: usize) -> u64 {
    if capacity < HUGE_PAGE_BYTES {
        return u64::MAX;
    }
    let used = SMALL_PAGES_BYTES.min(capacity / 2) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    (used.max(HUGE_PAGE_BYTES) / UNIT_BYTES) as u64
}

/// Writer: copies `count` words between logs, or within one to a place whose words are read later than written only
/// behind their own reading: upwards.
#[inline]
pub(crate) fn copy_words(from: (&CircularLog, Position), to: (&CircularLog, Position), count: usize) {
    let source = from.0.ring.run(from.0.layout.unit(from.1), count);
    let target = to.0.ring.run(to.0.layout.unit(to.1), count);
    for (source, target) in source.zip(target) {
        target.store(source.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}
