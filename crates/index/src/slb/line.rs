//! [`Line`]: a bucket of the cache table, one cache line.
//!
//! ```text
//!   word 0   head: counts, lock, changes (see `head`)
//!   word 1   63  tag  48 47   reference of item 0   0      0: empty
//!   ...
//!   word 7   63  tag  48 47   reference of item 6   0
//! ```
//!
//! Tag and reference are one word, so that a reader never takes one item's reference for another's tag.

use super::head::Head;
use super::reference::Reference;
use crate::sync::{AtomicU64, Ordering, fence, spin_hint};

/// Entries of a line.
pub(super) const WAYS: usize = 7;

/// Number of hits that a new entry starts with.
const COUNT_FIRST: u64 = 1;

/// Number of times that an edit that may fail tries to get the lock while only counts of hits are in its way.
const EDIT_TRIES: usize = 4;

/// See the module.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Line {
    head: AtomicU64,
    entries: [AtomicU64; WAYS],
}

#[cfg(not(loom))]
const _: () = assert!(size_of::<Line>() == 64);

/// A change of a key in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Changing {
    version: u64,
    was_alone: bool,
    /// The hit count of the key's entry, or `None` if there was none.
    count: Option<u64>,
}

/// The word of an entry.
#[inline(always)]
pub(super) fn entry(tag: u16, reference: Reference) -> u64 {
    u64::from(tag) << Reference::BITS | reference.number()
}

impl Line {
    pub fn new() -> Self {
        Self { head: AtomicU64::new(0), entries: std::array::from_fn(|_| AtomicU64::new(0)) }
    }

    #[inline(always)]
    pub fn head(&self) -> Head {
        Head(self.head.load(Ordering::Acquire))
    }

    /// Loads the head after all loads so far.
    #[inline(always)]
    pub fn head_after(&self) -> Head {
        fence(Ordering::Acquire);
        Head(self.head.load(Ordering::Relaxed))
    }

    /// Acquires, which pairs with the release in [`emit`](Self::emit): what the emitter knew of the item is visible.
    #[inline(always)]
    pub fn entry(&self, way: usize) -> u64 {
        self.entries[way].load(Ordering::Acquire)
    }

    /// Bit n is set when way n has `tag`.
    #[inline(always)]
    pub fn matches(&self, tag: u16) -> u32 {
        #[cfg(all(target_arch = "x86_64", not(miri), not(loom)))]
        return super::tags::equal(self, tag) >> 1;
        // From the last way to the first, so that each outcome is shifted in: few instructions a way, no branch.
        #[cfg(not(all(target_arch = "x86_64", not(miri), not(loom))))]
        self.entries.iter().rev().fold(0, |found, entry| {
            found << 1 | u32::from(entry.load(Ordering::Relaxed) >> Reference::BITS == u64::from(tag))
        })
    }

    pub fn has_room(&self) -> bool {
        self.matches(0) != 0
    }

    /// Puts `entry` into an empty way, or in place of the coldest entry, unless a change has begun since `version` or
    /// is in progress, or another thread edits the line. Returns whether the entry is in the line afterwards.
    pub fn emit(&self, version: u64, entry: u64) -> bool {
        let Some(head) = self.lock_if(|head| head.version() == version && head.changers() == 0) else {
            return false;
        };
        let mut unlocked = head;
        if !self.entries.iter().any(|other| other.load(Ordering::Relaxed) == entry) {
            let empty = self.entries.iter().position(|other| other.load(Ordering::Relaxed) == 0);
            let way = empty.unwrap_or_else(|| head.coldest());
            self.entries[way].store(entry, Ordering::Release);
            unlocked = head.with_count(way, COUNT_FIRST);
        }
        self.head.store(unlocked.0, Ordering::Release);
        true
    }

    /// Counts a hit of `way`. A hit that conflicts with another thread's edit is not counted.
    pub fn count_hit(&self, way: usize, random: u64) {
        let head = Head(self.head.load(Ordering::Relaxed));
        if !head.is_locked() {
            self.replace_head(head.0, head.with_hit(way, random).0);
        }
    }

    /// Begins a change of a key with `tag`: from here until [`end_change`](Self::end_change) the line has no entry with
    /// that tag. Waits for edits, which take a few nanoseconds.
    pub fn begin_change(&self, tag: u16) -> Changing {
        let before = loop {
            let head = Head(self.head.load(Ordering::Relaxed));
            if !head.is_locked() && self.replace_head(head.0, head.locked().with_change_begun().0) {
                break head;
            }
            spin_hint();
        };
        let mut head = before.with_change_begun();
        let mut count = None;
        for way in 0..WAYS {
            let has_tag = self.entries[way].load(Ordering::Relaxed) >> Reference::BITS == u64::from(tag);
            if has_tag || head.is_retired() {
                self.entries[way].store(0, Ordering::Relaxed);
                count = has_tag.then(|| before.count(way)).or(count);
                head = head.with_count(way, 0);
            }
        }
        self.head.store(head.0, Ordering::Release);
        // A reader that has seen anything of what the caller does to the item finds the head changed.
        fence(Ordering::Release);
        let was_alone = before.changers() == 0 && !head.is_retired();
        Changing { version: head.version(), was_alone, count }
    }

    /// Ends a change. `entry` is the key's new entry: it replaces the old one, if there was an old one and no other
    /// change overlapped with this one, since otherwise it is unknown which of two came last.
    pub fn end_change(&self, changing: Changing, entry: Option<u64>) {
        loop {
            let head = Head(self.head.load(Ordering::Relaxed));
            if head.is_locked() {
                spin_hint();
                continue;
            }
            let is_alone = changing.was_alone && head.version() == changing.version;
            let ended = head.with_change_ended();
            if let (true, Some(entry), Some(count)) = (is_alone, entry, changing.count)
                && let Some(way) = self.entries.iter().position(|other| other.load(Ordering::Relaxed) == 0)
            {
                if self.replace_head(head.0, head.locked().0) {
                    self.entries[way].store(entry, Ordering::Release);
                    self.head.store(ended.with_count(way, count).0, Ordering::Release);
                    return;
                }
            } else if self.replace_head(head.0, ended.0) {
                return;
            }
            spin_hint();
        }
    }

    /// Entries in use.
    pub fn len(&self) -> usize {
        WAYS - self.matches(0).count_ones() as usize
    }

    /// Replaces the head, both acquiring and releasing. Returns whether it was `current`.
    fn replace_head(&self, current: u64, new: u64) -> bool {
        self.head.compare_exchange(current, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    fn lock_if(&self, is_wanted: impl Fn(Head) -> bool) -> Option<Head> {
        for _ in 0..EDIT_TRIES {
            let head = Head(self.head.load(Ordering::Relaxed));
            if head.is_locked() || head.is_retired() || !is_wanted(head) {
                return None;
            }
            if self.replace_head(head.0, head.locked().0) {
                return Some(head);
            }
        }
        None
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_told_from_the_others() {
        for tag in [1, 0x7fff, 0x8000, 0xffff, 0] {
            for mask in [0, 1, 1 << 6, 0x7f, 0x55, 0x2a] {
                let line = Line::new();
                let word = |tag: u16, rest: u64| u64::from(tag) << Reference::BITS | rest;
                line.head.store(word(tag, 0), Ordering::Relaxed);
                for (way, own) in line.entries.iter().enumerate() {
                    let same = word(tag, u64::MAX >> 16);
                    let other = word(tag ^ 0x0100, u64::from(tag));
                    own.store(if mask >> way & 1 == 1 { same } else { other }, Ordering::Relaxed);
                }
                assert_eq!(line.matches(tag), mask, "{tag:x}");
            }
        }
    }
}
