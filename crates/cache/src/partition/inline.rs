//! Items that lie in their bucket of the inline table, in front of index and logs.
//!
//! A key has one item: inline or in the logs. A reader looks inline first. An item that moves is in its new place
//! before it leaves the old one; so a reader that finds it nowhere asks at last whether the inline bucket has changed
//! since it looked there.

use alluvium_base::KeyHash;

use crate::access::{Access, Gate};
use crate::canary::{Canary, is_broken};
use crate::error::TooLarge;
use crate::index::{Entry, Version};
use crate::inline::{CELL_BYTES, CELLS, Cell, InlineBucket};
use crate::item::Metadata;
use crate::memory::HUGE_PAGE_BYTES;
use crate::sync::{AtomicU64, spin_hint};

use super::body::Body;
use super::evict::Oldest;
use super::read::Stored;
use super::visit::Copied;
use super::{Counters, Partition};

/// What a look at a key's inline bucket tells.
pub(super) enum Look<'a> {
    /// Its item.
    Hit(Cell),
    /// The item, if there is one, lies in the logs.
    Absent(Absence<'a>),
    /// A writer came in between.
    Unusual,
}

/// A key was not in its inline bucket, if there is one.
#[derive(Clone, Copy)]
pub(super) struct Absence<'a>(Option<(&'a InlineBucket, Version)>);

impl Absence<'_> {
    /// Whether nothing has come into the bucket since.
    #[inline(always)]
    pub fn still_holds(self) -> bool {
        is_broken(Canary::AbsenceUnchecked)
            || self.0.is_none_or(|(bucket, version)| bucket.version().is_unchanged(version))
    }
}

/// An item found inline.
pub(super) struct InlineItem<'a> {
    bucket: &'a InlineBucket,
    tag: u16,
    way: usize,
    pub cell: Cell,
}

impl Body {
    /// Writer: the inline item of `key`.
    #[inline(always)]
    pub(super) fn find_inline(&self, hash: KeyHash, key: &[u8]) -> Option<InlineItem<'_>> {
        let table = self.inline.as_ref().filter(|_| key.len() <= CELL_BYTES)?;
        let (bucket, tag) = table.place(hash);
        bucket.find(tag, key).map(|(way, cell)| InlineItem { bucket, tag, way, cell })
    }
}

impl<A: Access> Partition<A> {
    /// Starts loading what a lookup of one key reads first. In batches `Cache::prefetch` does better.
    #[inline(always)]
    pub fn prefetch_inline(&self, hash: KeyHash) {
        if let Some(table) = &self.body.get().inline {
            table.place(hash).0.prefetch_all();
        }
    }

    /// Looks for the inline item of `key`. Counts an access.
    #[inline(always)]
    pub(super) fn look_inline<'a>(&self, body: &'a Body, hash: KeyHash, key: &[u8]) -> Look<'a> {
        let Some(table) = body.inline.as_ref().filter(|_| key.len() <= CELL_BYTES) else {
            return Look::Absent(Absence(None));
        };
        let (bucket, tag) = table.place(hash);
        let Some(version) = bucket.version().at_rest() else { return Look::Unusual };
        let found = bucket.find(tag, key);
        if !bucket.version().is_unchanged(version) || !self.body.is_current(body) {
            return Look::Unusual;
        }
        match found {
            Some((way, cell)) => {
                bucket.counts().count(way, self.counted_max);
                Look::Hit(cell)
            }
            None => Look::Absent(Absence(Some((bucket, version)))),
        }
    }

    /// As [`overwrite`](Self::overwrite), of an inline item by one that fits in its cell.
    #[inline(always)]
    pub(super) fn overwrite_inline(&self, hash: KeyHash, key: &[u8], value: &[u8]) -> bool {
        let body = self.body.get();
        let Some(table) = &body.inline else { return false };
        let Some(cell) = Cell::new(key, value) else { return false };
        let (bucket, tag) = table.place(hash);
        let Some((way, _)) = bucket.find(tag, key) else { return false };
        let _writing = self.gate.enter();
        let is_same = self.body.is_current(body) && bucket.tag(way) == tag && bucket.cell(way).is_of(key);
        if !is_same || self.is_upkeep_due() {
            return false;
        }
        self.begin_change(bucket.version());
        bucket.set(way, tag, cell);
        self.end_change(bucket.version());
        bucket.counts().count(way, self.counted_max);
        Counters::count(&self.counters.updated_in_place);
        true
    }

    /// Gives a key that has an inline item another one: there, if it fits, else in the logs.
    ///
    /// # Errors
    /// [`TooLarge`]; the key keeps what it had.
    pub(super) fn put_over_inline(
        &self,
        body: &Body,
        hash: KeyHash,
        found: &InlineItem<'_>,
        key: &[u8],
        value: &[u8],
        metadata: Metadata,
    ) -> Result<(), TooLarge> {
        let cell = Cell::new(key, value).filter(|_| metadata == Metadata::default());
        if let Some(cell) = cell {
            self.change(found.bucket.version(), || found.bucket.set(found.way, found.tag, cell));
            found.bucket.counts().count(found.way, self.counted_max);
            Counters::count(&self.counters.updated_in_place);
            return Ok(());
        }
        self.put_in_log(body, hash, None, key, value, metadata)
    }

    /// Empties the cell of a key that has got an item in the logs.
    #[inline(always)]
    pub(super) fn empty_replaced(&self, body: &Body, hash: KeyHash, key: &[u8]) {
        if let Some(found) = body.find_inline(hash, key) {
            self.empty(&found, &self.counters.replaced);
            Counters::uncount(&self.counters.inserted);
        }
    }

    /// Puts the item of a key that has none into its bucket, if there is a cell: an empty one, or that of another item
    /// if the key was evicted lately. Whether it did.
    pub(super) fn put_inline(&self, body: &Body, hash: KeyHash, cell: Cell) -> bool {
        let is_missed = || body.ghost.as_ref().is_some_and(|ghost| ghost.take(hash));
        let is_put = self.take_cell(body, hash, cell, is_missed);
        if is_put {
            Counters::count(&self.counters.inserted);
        }
        is_put
    }

    /// Moves an item that leaves probation into its bucket, if it fits and there is a cell: an empty one, or that of
    /// another item if it was used on probation. Whether it did.
    pub(super) fn move_inline(&self, body: &Body, oldest: &Oldest<'_>, way: usize, was_used: bool) -> bool {
        let Some(cell) = cell_of(&oldest.stored()) else { return false };
        if !self.take_cell(body, oldest.hash, cell, || was_used) {
            return false;
        }
        self.change(oldest.bucket.version(), || {
            oldest.bucket.set_entry(way, Entry::EMPTY);
            oldest.bucket.counts().set(way, 0);
        });
        Counters::count(&self.counters.reinserted);
        true
    }

    /// Puts an item into an empty cell of its bucket, or if `may_evict` into that of an item that was not accessed.
    fn take_cell(&self, body: &Body, hash: KeyHash, cell: Cell, may_evict: impl FnOnce() -> bool) -> bool {
        let Some(table) = &body.inline else { return false };
        let (bucket, tag) = table.place(hash);
        let way = match bucket.empty_way() {
            Some(way) => {
                Counters::count(&self.counters.inline);
                way
            }
            None if may_evict() => {
                let Some(way) = bucket.next_victim() else { return false };
                Counters::count(&self.counters.evicted);
                way
            }
            None => return false,
        };
        self.change(bucket.version(), || {
            bucket.set(way, tag, cell);
            bucket.counts().set(way, 0);
        });
        true
    }

    /// Empties a cell and counts its item under `reason`.
    pub(super) fn empty(&self, item: &InlineItem<'_>, reason: &AtomicU64) {
        self.change(item.bucket.version(), || item.bucket.clear(item.way));
        Counters::uncount(&self.counters.inline);
        Counters::count(reason);
    }

    /// Empties all cells.
    pub(super) fn empty_all(&self, body: &Body) {
        for bucket in body.inline.iter().flat_map(|table| table.buckets()) {
            for way in bucket.ways() {
                let item = InlineItem { bucket, tag: bucket.tag(way), way, cell: bucket.cell(way) };
                self.empty(&item, &self.counters.removed);
            }
        }
    }

    /// Moves the items that lie inline in an old body, whose memory goes back meanwhile.
    pub(super) fn move_inline_items(&self, old: &Body, new: &Body) {
        let Some(table) = &old.inline else { return };
        let step = HUGE_PAGE_BYTES / size_of::<InlineBucket>();
        for (number, bucket) in table.buckets().iter().enumerate() {
            for way in bucket.ways() {
                self.move_inline_item(new, bucket.cell(way), bucket.counts().get(way));
            }
            if (number + 1).is_multiple_of(step) {
                table.release(number + 1 - step, number + 1);
            }
        }
    }

    fn move_inline_item(&self, new: &Body, cell: Cell, count: u32) {
        let (key, value) = cell.parts();
        let hash = self.common.hasher.hash(&key);
        Counters::uncount(&self.counters.inline);
        if self.take_cell(new, hash, cell, || count > 0) {
            return;
        }
        // It was counted when it came.
        match self.put_in_log(new, hash, None, &key, &value, Metadata::default()) {
            Ok(()) => Counters::uncount(&self.counters.inserted),
            Err(_) => Counters::count(&self.counters.evicted),
        }
    }

    /// Adds copies of the inline items whose entries would be in bucket `number` of the index.
    pub(super) fn copy_inline(&self, body: &Body, number: usize, copied: &mut Vec<Copied>) {
        let Some(table) = &body.inline else { return };
        let mut cells: Vec<Cell> = Vec::with_capacity(CELLS);
        for bucket in table.buckets_of(number, body.index.buckets().len()) {
            loop {
                let version = bucket.version().begin_read();
                cells.extend(bucket.ways().map(|way| bucket.cell(way)));
                if bucket.version().is_unchanged(version) {
                    break;
                }
                cells.clear();
                spin_hint();
            }
            let items = cells.drain(..).map(|cell| cell.parts());
            let wanted =
                items.filter(|(key, _)| body.index.place(self.common.hasher.hash(key)).bucket == number);
            copied.extend(wanted.map(|(key, value)| Copied { key, value, metadata: Metadata::default() }));
        }
    }
}

/// The item as a cell, if it fits in one.
fn cell_of(stored: &Stored<'_>) -> Option<Cell> {
    let header = stored.header;
    if header.has_extras() || header.key_len() + header.value_len() > CELL_BYTES {
        return None;
    }
    let mut bytes = [0; CELL_BYTES];
    let (key, rest) = bytes.split_at_mut(header.key_len());
    let value = &mut rest[..header.value_len()];
    stored.copy_key(key);
    stored.copy_value(value);
    Cell::new(key, value)
}
