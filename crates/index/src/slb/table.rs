//! [`Table`]: the cache table and its log, by hashes and references; it knows no index.
//!
//! # Why no answer is stale
//!
//! Let a change of a key be the time between [`change`](Table::change) and the end of the [`Change`] that it
//! returns; the index is changed within. Then:
//!
//! 1. *During a change its key has no entry.* The beginning of the change removes it under the line's lock, and an
//!    emission takes the same lock and finds the change counted.
//! 2. *No entry is older than the last change.* An emission succeeds only if no change has begun in the line since
//!    the ticket was taken, which was before the index was searched, and none was in progress then.
//! 3. *So at the moment at which a reader loads an entry, the index has that item at that reference.* That moment is
//!    when the lookup takes effect.
//! 4. *What the reader then reads of the item belongs to that moment.* It counts only if no change has begun in the
//!    line by the end of the read: had the reader read a byte that a change wrote, it would see that change counted,
//!    because the change was counted before a release fence, and the reader checks after an acquire fence.
//!
//! An index that lends out items instead of copying them must itself keep them alive and unchanged.

use super::large_memory::filled;
use super::line::{Changing, Line, entry};
use super::log_table::{LINE_BYTES, LogTable};
use super::place::Place;
use super::reference::Reference;

/// Number of lookups in the log that an item must exceed to replace another one (§2.3.3.2).
const THRESHOLD: u32 = 3;

/// A cache table and a log table: see the module.
#[derive(Debug)]
pub struct Table {
    lines: Box<[Line]>,
    log: LogTable,
}

/// Result of a lookup.
#[derive(Debug)]
pub enum Outcome<T> {
    /// What the caller's `resolve` returned for the reference.
    Hit(T, Way),
    /// Nothing. With a ticket, the result of searching the index may be emitted.
    Miss(Option<Ticket>),
}

/// The entry that was hit.
#[derive(Clone, Copy, Debug)]
pub struct Way(u32);

/// Permits emitting the result of a search of the index that began after the ticket was taken. It expires with the next
/// change of any key in the same line.
#[derive(Clone, Copy, Debug)]
pub struct Ticket {
    version: u64,
    has_room: bool,
}

impl Ticket {
    /// Whether the line had an empty entry.
    pub fn has_room(self) -> bool {
        self.has_room
    }
}

/// A change of a key. The index is changed while this value lives; until it is dropped, no lookup of the key hits.
#[derive(Debug)]
#[must_use = "the change ends when this is dropped"]
pub struct Change<'a> {
    line: &'a Line,
    tag: u16,
    changing: Changing,
    reference: Option<Reference>,
}

impl Change<'_> {
    /// Sets the key's new location. If its old location was cached and no other change overlapped with this one, the
    /// new one is cached when the change ends. Without this call, the change is an invalidation.
    pub fn update(mut self, reference: Reference) {
        self.reference = Some(reference);
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        let entry = self.reference.map(|reference| entry(self.tag, reference));
        self.line.end_change(self.changing, entry);
    }
}

impl Table {
    /// A table of `cache_bytes`, with 7 entries in each 64 bytes, and a log of `log_bytes`, with 15 lookups in each 64
    /// bytes; both are rounded down to whole lines, but to at least one.
    pub fn new(cache_bytes: usize, log_bytes: usize) -> Self {
        Self {
            lines: filled((cache_bytes / LINE_BYTES).max(1), |_| Line::new()),
            log: LogTable::new(log_bytes / LINE_BYTES),
        }
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.lines) + self.log.heap_bytes()
    }

    /// Maximum number of entries.
    pub fn capacity(&self) -> usize {
        self.lines.len() * super::line::WAYS
    }

    /// Entries in use; reads the whole table.
    pub fn count_entries(&self) -> usize {
        self.lines.iter().map(Line::len).sum()
    }

    #[inline(always)]
    fn line(&self, place: Place) -> &Line {
        &self.lines[place.line_of(self.lines.len())]
    }

    /// Calls `resolve` with the references of the key's tag, usually none or one, until it returns an item. The item
    /// counts only if no change has begun meanwhile; otherwise the lookup is a miss.
    #[inline(always)]
    pub fn find<T>(&self, hash: u64, mut resolve: impl FnMut(Reference) -> Option<T>) -> Outcome<T> {
        let place = Place::of(hash);
        let line = self.line(place);
        let head = line.head();
        if head.is_locked() {
            return Outcome::Miss(None);
        }
        let tag = place.tag();
        let mut ways = line.matches(tag);
        while ways != 0 {
            let way = ways.trailing_zeros();
            let word = line.entry(way as usize);
            // Beside a writer the entry may have changed since its tag was compared.
            if word >> Reference::BITS == u64::from(tag)
                && let Some(item) = resolve(Reference::from_entry(word))
            {
                if line.head_after().version() != head.version() {
                    return Outcome::Miss(None);
                }
                return Outcome::Hit(item, Way(way));
            }
            ways &= ways - 1;
        }
        let may_emit = head.changers() == 0 && !head.is_retired();
        Outcome::Miss(may_emit.then(|| Ticket { version: head.version(), has_room: line.has_room() }))
    }

    /// Starts loading the line of a key.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        crate::prefetch_element(&self.lines, Place::of(hash).line_of(self.lines.len()));
    }

    /// Counts a hit, for choosing the entry to evict. `random` is any number that differs from call to call.
    pub fn count_hit(&self, hash: u64, way: Way, random: u64) {
        self.line(Place::of(hash)).count_hit(way.0 as usize, random);
    }

    /// Number of hits remembered for the entry at `way`, 0 to 15.
    pub fn hits(&self, hash: u64, way: Way) -> u64 {
        self.line(Place::of(hash)).head().count(way.0 as usize)
    }

    /// Records in the log that a lookup of the key missed. Returns whether it missed often enough to be emitted.
    pub fn log_miss(&self, hash: u64) -> bool {
        self.log.append(Place::of(hash)) > THRESHOLD
    }

    /// Caches the location of the key's item in the index. If the line is full, replaces its entry with the fewest
    /// hits. Does nothing if the ticket has expired. Returns whether the item is cached. `reference` must come from a
    /// search that began after the ticket was taken.
    pub fn emit(&self, ticket: Ticket, hash: u64, reference: Reference) -> bool {
        let place = Place::of(hash);
        self.line(place).emit(ticket.version, entry(place.tag(), reference))
    }

    /// Begins a change of a key. Never waits for another change, so that changes may be nested and need no order.
    #[inline]
    pub fn change(&self, hash: u64) -> Change<'_> {
        let place = Place::of(hash);
        let line = self.line(place);
        Change { line, tag: place.tag(), changing: line.begin_change(place.tag()), reference: None }
    }
}
