//! A ring with head and tail.

use std::io;

use crate::canary::{Canary, is_broken};
use crate::item::Header;
use crate::memory::{HUGE_PAGE_BYTES, PAGE_BYTES, Pages, Ring, SMALL_PAGES_BYTES, UNIT_BYTES};
use crate::sync::{AtomicU64, Ordering, fence};

use super::position::{Layout, Position};

/// A log that is smaller than its ring may have this many pieces resident besides its items: the one that has the head,
/// and after the tail a whole one and the rest of the one where that ends.
const TRIM_MARGIN: u64 = 3;
/// A ring of at least this many huge pages is returned in these, a smaller one in this many pieces, which with the
/// margin take 3 % of it.
const HUGE_PIECES_MIN: usize = 32;
const SMALL_PIECES: usize = 128;

/// Items one after another, in a circle. There is one writer; readers check with [`contains`](Self::contains) whether
/// what they read was still present.
#[derive(Debug)]
pub(crate) struct CircularLog {
    ring: Ring,
    layout: Layout,
    item_words_max: usize,
    /// Positions of the oldest item and of the next one. Stored by the writer.
    head: AtomicU64,
    tail: AtomicU64,
    /// Where the writer looks ahead of the head, and how many items ahead that is.
    scout: AtomicU64,
    scouted: AtomicU64,
    /// Maximum words in use; fewer than the ring has if the log shrinks.
    limit: AtomicU64,
    /// The word of the ring up to which the memory before the head was returned; the log's capacity if it was not.
    released: AtomicU64,
    /// The tail position at which the ring switches to huge pages; `u64::MAX` once it has, or if it is too small.
    huge_from: AtomicU64,
}

impl CircularLog {
    /// An empty log of `capacity` bytes for items of at most `window` bytes, both multiples of a page, with positions
    /// of `position_bits`. If it is to be [trimmed](Self::trim), it has huge pages only if they are as small as the
    /// pieces that are returned: the system would make the others whole again.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn new(capacity: usize, window: usize, position_bits: u32, is_trimmed: bool) -> io::Result<Self> {
        let has_huge_pages = !is_trimmed || capacity >= HUGE_PIECES_MIN * HUGE_PAGE_BYTES;
        Ok(Self {
            ring: Ring::new(capacity, window, Pages::AsUsed)?,
            layout: Layout::new((capacity / UNIT_BYTES) as u64, position_bits),
            item_words_max: window / UNIT_BYTES,
            head: AtomicU64::new(0),
            tail: AtomicU64::new(0),
            scout: AtomicU64::new(0),
            scouted: AtomicU64::new(0),
            limit: AtomicU64::new((capacity / UNIT_BYTES) as u64),
            released: AtomicU64::new((capacity / UNIT_BYTES) as u64),
            huge_from: AtomicU64::new(if has_huge_pages { huge_from(capacity) } else { u64::MAX }),
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

    /// Position of the oldest item.
    #[inline(always)]
    pub fn head(&self) -> Position {
        Position(self.head.load(Ordering::Relaxed))
    }

    /// Position of the next item.
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
        self.limit().saturating_sub(self.used())
    }

    /// Maximum words in use.
    #[inline(always)]
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Whether the item at `position` has not been evicted yet.
    ///
    /// A reader beside the writer calls it after an acquire fence that follows its last load from the ring:
    /// `advance_head` stores before the release fence in `reserve`, which comes before the stores that a reader might
    /// have seen.
    #[inline(always)]
    pub fn contains(&self, position: Position) -> bool {
        let head = self.head();
        self.layout.distance(head, position) < self.layout.distance(head, self.tail())
    }

    /// Writer: reserves the next `words` words for the caller to write, and moves the tail past them.
    ///
    /// `free` must be at least that much.
    #[inline(always)]
    pub fn reserve(&self, words: usize) -> Position {
        debug_assert!(words as u64 <= self.layout.capacity() - self.used(), "the caller made room");
        // Who sees one of the words written after this line also sees the evictions and unlinks before it.
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

    /// Writer: called when the part of the ring that is used has reached the limit for small pages. That part and the
    /// rest have huge pages from now on.
    #[cold]
    fn use_huge_pages(&self) {
        let capacity = self.layout.capacity() as usize * UNIT_BYTES;
        let used = huge_from(capacity) as usize * UNIT_BYTES;
        self.huge_from.store(u64::MAX, Ordering::Relaxed);
        self.ring.use_huge_pages(0, used, capacity);
    }

    /// Writer: evicts the oldest item, which has `words` words.
    #[inline(always)]
    pub fn advance_head(&self, words: usize) {
        self.head.store(self.layout.after(self.head(), words as u64).0, Ordering::Relaxed);
        match self.scouted.load(Ordering::Relaxed) {
            0 => self.scout.store(self.head().0, Ordering::Relaxed),
            scouted => self.scouted.store(scouted - 1, Ordering::Relaxed),
        }
    }

    /// Writer: the next item ahead of the head that was not returned yet, up to `lead` items ahead.
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

    /// Writer: evicts all items.
    pub fn clear(&self) {
        self.head.store(self.tail().0, Ordering::Relaxed);
        self.scout.store(self.tail().0, Ordering::Relaxed);
        self.scouted.store(0, Ordering::Relaxed);
    }

    /// Loads word number `word` of the item at `position`.
    #[inline(always)]
    pub fn load(&self, position: Position, word: usize) -> u64 {
        self.ring.word(self.layout.unit(position) + word).load(Ordering::Relaxed)
    }

    /// Writer: sets the maximum words in use, at least those of the largest item. If more are in use, the next appends
    /// evict them.
    pub fn set_limit(&self, words: u64) {
        let words = words.clamp(self.item_words_max as u64, self.layout.capacity());
        self.limit.store(words, Ordering::Relaxed);
    }

    /// Bytes that are resident if at most `words` words are in use and [`trim`](Self::trim) is called after evictions.
    pub fn resident_bytes(&self, words: u64) -> usize {
        (words + TRIM_MARGIN * self.trim_words()).min(self.layout.capacity()) as usize * UNIT_BYTES
    }

    /// The words that are returned at a time: a huge page of a large log, some thousandths of a smaller one.
    fn trim_words(&self) -> u64 {
        let bytes = self.layout.capacity() as usize * UNIT_BYTES;
        let piece = if bytes >= HUGE_PIECES_MIN * HUGE_PAGE_BYTES {
            HUGE_PAGE_BYTES
        } else {
            (bytes / SMALL_PIECES).next_multiple_of(PAGE_BYTES)
        };
        (piece / UNIT_BYTES) as u64
    }

    /// Writer: returns the memory of items before the head to the system, unless nearly all of the ring is in use.
    pub fn trim(&self) {
        let (capacity, piece) = (self.layout.capacity(), self.trim_words());
        let gap = capacity - self.used();
        if gap <= TRIM_MARGIN * piece {
            self.released.store(capacity, Ordering::Relaxed);
            return;
        }
        let head = self.layout.unit(self.head()) as u64;
        let end = head / piece * piece;
        let released = self.released.load(Ordering::Relaxed);
        let since = if released == capacity { gap } else { (end + capacity - released) % capacity };
        // What follows the tail soon gets items again.
        let words = since.min(gap - piece - (head - end));
        if words < piece {
            return;
        }
        // Whole pieces only: of a huge page in part, the system would make the rest resident again.
        let release = |from: u64, end: u64| {
            let from = from.next_multiple_of(piece);
            if from < end {
                self.ring.release(from as usize * UNIT_BYTES, (end - from) as usize * UNIT_BYTES);
            }
        };
        match end.checked_sub(words) {
            Some(start) => release(start, end),
            None => {
                release(0, end);
                release(capacity - (words - end), capacity);
            }
        }
        self.released.store(end, Ordering::Relaxed);
    }

    /// Writer: returns the memory to the system; readers find zeros.
    pub fn release(&self) {
        self.clear();
        self.ring.retire();
    }

    /// Returns the memory of items before `position`, which is at most a lap old, to the system, starting at byte
    /// `from` of the ring. Returns where the next call should start.
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

/// The tail position, in the first lap of a log of `capacity` bytes, at which the ring gets huge pages.
fn huge_from(capacity: usize) -> u64 {
    if capacity < HUGE_PAGE_BYTES {
        return u64::MAX;
    }
    let used = SMALL_PAGES_BYTES.min(capacity / 2) / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES;
    (used.max(HUGE_PAGE_BYTES) / UNIT_BYTES) as u64
}

/// Writer: copies `count` words between logs, or within one to a position at which each word is read before it is
/// overwritten: words are copied in ascending order.
#[inline]
pub(crate) fn copy_words(from: (&CircularLog, Position), to: (&CircularLog, Position), count: usize) {
    let source = from.0.ring.run(from.0.layout.unit(from.1), count);
    let target = to.0.ring.run(to.0.layout.unit(to.1), count);
    for (source, target) in source.zip(target) {
        target.store(source.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

#[cfg(all(test, target_os = "linux", not(miri), not(loom)))]
mod tests {
    use super::*;

    /// Resident bytes of the ring, of which parts may have advice of their own.
    fn resident_bytes(log: &CircularLog) -> usize {
        let start = std::ptr::from_ref(log.ring.word(0)).addr();
        let ring = start..start + log.layout.capacity() as usize * UNIT_BYTES;
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let (mut is_within, mut kibibytes) = (false, 0);
        for line in maps.lines() {
            if let Some((from, _)) = line.split_once('-')
                && let Ok(from) = usize::from_str_radix(from, 16)
            {
                is_within = ring.contains(&from);
            } else if let Some(rss) = line.strip_prefix("Rss:").filter(|_| is_within) {
                kibibytes += rss.trim().trim_end_matches(" kB").parse::<usize>().unwrap();
            }
        }
        kibibytes << 10
    }

    /// Rings with and without huge pages, of a size that is no multiple of one, too.
    #[test]
    fn no_more_is_resident_than_was_said() {
        const STEP: usize = 4096;
        for (capacity, limit) in [(12 << 20, 3 << 20), ((66 << 20) + 12_288, 9 << 20), (80 << 20, 40 << 20)] {
            let log = CircularLog::new(capacity, 1 << 20, 47, true).unwrap();
            let append = |bytes: usize| {
                for _ in 0..bytes / STEP {
                    while log.free() < (STEP / UNIT_BYTES) as u64 {
                        log.advance_head(STEP / UNIT_BYTES);
                    }
                    let unit = log.layout.unit(log.reserve(STEP / UNIT_BYTES));
                    log.ring.copy_in(unit * UNIT_BYTES, &[7; STEP]);
                }
            };
            append(2 * capacity);
            log.set_limit((limit / UNIT_BYTES) as u64);
            for _ in 0..1000 {
                append(capacity / 300);
                log.trim();
                let (resident, said) = (resident_bytes(&log), log.resident_bytes(log.limit()));
                assert!(resident <= said, "{resident} bytes of {capacity}, {said} were said");
                assert!(resident >= limit, "{resident} bytes of {capacity} for {limit}");
            }
        }
    }
}
