//! Items that are stored in their bucket of the inline table, in front of index and region.
//!
//! A key has one item: inline or in the region. A reader looks inline first. An item that moves is stored at its new
//! position before it is removed from the old one. So a reader that finds the item in neither place finally checks
//! whether the inline bucket has changed since it looked there.

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::canary::{Canary, is_broken};
use crate::index::{Index, Version, Versioned};
use crate::inline::{CELLS, Cell, InlineBucket, InlineTable, Spot};
use crate::item::{Fast, Metadata};
use crate::sync::{AtomicU64, spin_hint};

use super::body::Body;
use super::policy::Policy;
use super::visit::Copied;
use super::{Counters, Partition};

/// What was prepared before an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ahead {
    /// Nothing: it is a single operation.
    Nothing,
    /// As an operation of a batch, its memory was prefetched. These ways of the key's bucket in the index had its tag
    /// at that time; 0 if they were not compared.
    Loaded(u32),
}

impl Ahead {
    /// The ways that are known; 0 if none are.
    #[inline(always)]
    pub fn ways(self) -> u32 {
        match self {
            Self::Nothing => 0,
            Self::Loaded(ways) => ways,
        }
    }

    /// The place of a key's item in the inline table, which is prefetched if it was not yet.
    #[inline(always)]
    fn spot(self, table: &InlineTable, hash: KeyHash) -> Spot<'_> {
        let spot = table.spot(hash);
        if let Self::Nothing = self {
            spot.prefetch();
        }
        spot
    }
}

/// A key was not in its inline bucket, or there is no such bucket.
#[derive(Clone, Copy)]
pub(super) struct Absence<'a>(Option<(&'a InlineBucket, Version)>);

impl Absence<'_> {
    /// Whether no item was added to the bucket since.
    #[inline(always)]
    pub fn still_holds(self) -> bool {
        is_broken(Canary::AbsenceUnchecked)
            || self.0.is_none_or(|(bucket, version)| bucket.version().is_unchanged(version))
    }
}

/// An item found inline, not validated yet.
pub(super) struct InlineItem<'a> {
    spot: Spot<'a>,
    way: usize,
    pub cell: Cell<'a>,
    version: Version,
}

impl<P: Policy> Body<P> {
    /// The inline table. The compiler knows if a policy has none.
    #[inline(always)]
    pub fn cells(&self) -> Option<&InlineTable> {
        if P::HAS_CELLS { self.inline.as_ref() } else { None }
    }

    /// The inline table, if it has cells for a key of this length.
    #[inline(always)]
    fn inline_for(&self, key: &[u8]) -> Option<&InlineTable> {
        self.cells().filter(|table| key.len() <= table.payload())
    }

    /// Whether such an item fits in a cell.
    #[inline(always)]
    pub(super) fn has_cell_for(&self, key: &[u8], value: &[u8]) -> bool {
        self.cells().is_some_and(|table| table.fits(key, value))
    }

    /// Looks for the inline item of `key`.
    #[inline(always)]
    pub(super) fn look_inline(&self, hash: KeyHash, key: &[u8]) -> Fast<InlineItem<'_>, Absence<'_>> {
        let Some(table) = self.inline_for(key) else { return Fast::Miss(Absence(None)) };
        let spot = table.spot(hash);
        let Some(version) = spot.bucket().version().at_rest() else { return Fast::Retry };
        match spot.find(key) {
            Some((way, cell)) => Fast::Hit(InlineItem { spot, way, cell, version }),
            None => Fast::Miss(Absence(Some((spot.bucket(), version)))),
        }
    }

    /// As [`look_inline`](Self::look_inline), in fewer instructions, if no other item in the bucket has the key's tag.
    #[inline(always)]
    pub(super) fn see_inline(
        &self,
        hash: KeyHash,
        key: &[u8],
        ahead: Ahead,
    ) -> Fast<InlineItem<'_>, Absence<'_>> {
        let Some(table) = self.inline_for(key) else { return Fast::Miss(Absence(None)) };
        let spot = ahead.spot(table, hash);
        let Some(version) = spot.bucket().version().at_rest() else { return Fast::Retry };
        match spot.first() {
            Some((way, cell)) if cell.is_of(key) => Fast::Hit(InlineItem { spot, way, cell, version }),
            Some(_) => Fast::Retry,
            None => Fast::Miss(Absence(Some((spot.bucket(), version)))),
        }
    }

    /// Writer: the inline item of `key`.
    #[inline(always)]
    pub(super) fn find_inline(&self, hash: KeyHash, key: &[u8]) -> Option<InlineItem<'_>> {
        match self.look_inline(hash, key) {
            Fast::Hit(item) => Some(item),
            // No change is in progress.
            Fast::Miss(_) | Fast::Retry => None,
        }
    }
}

impl<P: Policy, A: Access> Partition<P, A> {
    /// Whether what was read of an inline item is consistent. Counts an access if it is.
    #[inline(always)]
    pub(super) fn confirm_inline(&self, body: &Body<P>, item: &InlineItem<'_>) -> bool {
        let bucket = item.spot.bucket();
        let is_valid = bucket.version().is_unchanged(item.version) && self.body.is_current(body);
        if is_valid {
            bucket.counts().count(item.way, self.counted_max);
        }
        is_valid
    }

    /// As [`overwrite`](Self::overwrite), for an inline item whose new content fits in its cell.
    #[inline(always)]
    pub(super) fn overwrite_inline(&self, hash: KeyHash, key: &[u8], ahead: Ahead, value: &[u8]) -> bool {
        let body = self.body.get();
        if !body.has_cell_for(key, value) {
            return false;
        }
        let Fast::Hit(item) = body.see_inline(hash, key, ahead) else { return false };
        let _writing = self.enter();
        // If the bucket has not changed since it was read, the item is still there.
        let is_same = item.spot.bucket().version().is_unchanged(item.version) && self.body.is_current(body);
        if is_same && !self.policy.is_upkeep_due() {
            self.put_over_at(&item, key.len(), value);
            return true;
        }
        false
    }

    #[inline(always)]
    fn put_over_at(&self, item: &InlineItem<'_>, key_len: usize, value: &[u8]) {
        let bucket = item.spot.bucket();
        let changing = self.begin_change(bucket);
        item.spot.put_over(item.way, key_len, value);
        changing.end();
        bucket.counts().count(item.way, self.counted_max);
        Counters::count(&self.counters.updated_in_place);
    }

    /// Replaces the inline item of a key: in its cell, if the new one fits, otherwise in the region.
    ///
    /// # Errors
    /// The policy's refusal; the key keeps its former item.
    pub(super) fn put_over_inline(
        &self,
        body: &Body<P>,
        hash: KeyHash,
        found: &InlineItem<'_>,
        key: &[u8],
        value: &[u8],
        metadata: Metadata,
    ) -> Result<(), P::Refusal> {
        if metadata == Metadata::default() && body.has_cell_for(key, value) {
            self.put_over_at(found, key.len(), value);
            return Ok(());
        }
        self.put_in_region(body, hash, None, key, value, metadata)
    }

    /// Empties the cell of a key whose item is now in the region.
    #[inline(always)]
    pub(super) fn empty_replaced(&self, body: &Body<P>, hash: KeyHash, key: &[u8]) {
        if let Some(found) = body.find_inline(hash, key) {
            self.empty(&found, &self.counters.replaced);
            Counters::uncount(&self.counters.inserted);
        }
    }

    /// Stores an item that fits in an empty cell of its bucket, or if `may_evict` in the cell of an item that was not
    /// accessed.
    pub fn take_cell(
        &self,
        body: &Body<P>,
        hash: KeyHash,
        key: &[u8],
        value: &[u8],
        may_evict: impl FnOnce() -> bool,
    ) -> bool {
        let Some(table) = body.cells().filter(|table| table.fits(key, value)) else { return false };
        let spot = table.spot(hash);
        let way = match spot.empty_way() {
            Some(way) => {
                Counters::count(&self.counters.inline);
                way
            }
            None if !body.may_grow() && may_evict() => {
                let Some(way) = spot.bucket().next_victim() else { return false };
                Counters::count(&self.counters.evicted);
                way
            }
            None => return false,
        };
        self.change(spot.bucket(), || spot.put(way, key, value));
        true
    }

    /// Empties a cell and counts its item in `reason`.
    pub(super) fn empty(&self, item: &InlineItem<'_>, reason: &AtomicU64) {
        self.empty_way(item.spot.bucket(), item.way, reason);
    }

    fn empty_way(&self, bucket: &InlineBucket, way: usize, reason: &AtomicU64) {
        self.change(bucket, || bucket.clear(way));
        Counters::uncount(&self.counters.inline);
        Counters::count(reason);
    }

    /// Empties all cells.
    pub fn empty_all(&self, body: &Body<P>) {
        for spot in body.cells().into_iter().flat_map(|table| table.spots()) {
            for way in spot.bucket().ways() {
                self.empty_way(spot.bucket(), way, &self.counters.removed);
            }
        }
    }

    /// Adds copies of the inline items whose entries would be in bucket `number` of the index.
    pub(super) fn copy_inline(&self, body: &Body<P>, number: usize, copied: &mut Vec<Copied>) {
        let Some(table) = body.cells() else { return };
        let mut items: Vec<(Vec<u8>, Vec<u8>)> = Vec::with_capacity(CELLS);
        for spot in table.spots_of(number, body.index.len()) {
            let bucket = spot.bucket();
            loop {
                let version = bucket.version().begin_read();
                items.extend(bucket.ways().filter_map(|way| spot.cell(way).parts()));
                if bucket.version().is_unchanged(version) {
                    break;
                }
                items.clear();
                spin_hint();
            }
            let wanted = items
                .drain(..)
                .filter(|(key, _)| body.index.place(self.common.hasher.hash(key)).bucket == number);
            copied.extend(wanted.map(|(key, value)| Copied { key, value, metadata: Metadata::default() }));
        }
    }
}
