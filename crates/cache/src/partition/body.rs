//! The memory of a partition: an index and cells over a region, replaced as a whole when they grow or are resized.

use std::io;
use std::sync::Arc;

use crate::index::bucket::Bucket;
use crate::index::{Entry, Index, Place, Slot};
use crate::inline::InlineTable;
use crate::item::{Site, Stored};
use crate::region::Region;
use crate::sync::{AtomicU32, Ordering};

use super::policy::Policy;
use super::tables::Tables;

/// An item found in the region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'a> {
    pub place: Place,
    pub slot: Slot,
    /// The slot's bucket.
    pub bucket: &'a Bucket,
    pub entry: Entry,
    pub stored: Stored<'a>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Body<P: Policy> {
    /// The sizes that index and inline table may have.
    pub tables: Tables,
    /// Whether entries of evicted items stay in the index.
    may_dangle: bool,
    /// How often index and inline table have yet to grow before they have these sizes.
    growths: u32,
    /// Whether the system refused memory for growing.
    is_stuck: AtomicU32,
    pub index: P::Index,
    pub inline: Option<InlineTable>,
    /// Shared with the body from which this one grew.
    pub region: Arc<P::Region>,
}

impl<P: Policy> Body<P> {
    /// Empty tables over a region, for `items` items soon and more over time.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn new(policy: &P, region: P::Region, tables: Tables, items: u64) -> io::Result<Self> {
        Self::over(Arc::new(region), tables, tables.growths_for(items), policy.leaves_entries())
    }

    fn over(region: Arc<P::Region>, tables: Tables, growths: u32, may_dangle: bool) -> io::Result<Self> {
        let now = tables.before(growths);
        let inline = P::HAS_CELLS && now.inline_buckets > 0;
        Ok(Self {
            tables,
            may_dangle,
            growths,
            is_stuck: AtomicU32::new(0),
            index: P::Index::new(now.buckets)?,
            inline: inline.then(|| InlineTable::new(now.inline_buckets, now.cell_payload)).transpose()?,
            region,
        })
    }

    /// A body with empty tables over the same region, four times as large.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn grown(&self) -> io::Result<Self> {
        Self::over(Arc::clone(&self.region), self.tables, self.growths.saturating_sub(1), self.may_dangle)
    }

    /// The present sizes of index and inline table.
    pub fn tables_now(&self) -> Tables {
        self.tables.before(self.growths)
    }

    /// Whether index and inline table can grow, in which case a full bucket is no reason to forget or refuse an item.
    #[inline(always)]
    pub fn may_grow(&self) -> bool {
        self.growths > 0 && self.is_stuck.load(Ordering::Relaxed) == 0
    }

    /// There is no memory for larger tables: the present ones are used as if no larger ones were allowed.
    pub fn stop_growing(&self) {
        self.is_stuck.store(1, Ordering::Relaxed);
    }

    /// Where the entry's item is, unless it was evicted.
    #[inline(always)]
    fn site(&self, entry: Entry) -> Option<Site<'_>> {
        (!self.may_dangle || self.region.contains(entry)).then(|| self.region.site(entry))
    }

    /// The entry's item, if it is still present and its header is sound.
    #[inline(always)]
    pub fn item(&self, entry: Entry) -> Option<Stored<'_>> {
        self.site(entry)?.sound_item()
    }

    /// The item of `key`, in the chain and under the tag of `place`.
    #[inline(always)]
    pub fn find(&self, place: Place, key: &[u8]) -> Option<Found<'_>> {
        for bucket in self.index.chain(place.bucket) {
            let candidates = self.index.buckets()[bucket].matches(place.tag);
            let found = self.find_among(place, bucket, candidates, key);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// As [`find`](Self::find), but checks `ways` of the first bucket before the others.
    #[inline(always)]
    pub fn find_beginning_with(&self, place: Place, ways: u32, key: &[u8]) -> Option<Found<'_>> {
        match self.find_among(place, place.bucket, ways, key) {
            None => self.find(place, key),
            found => found,
        }
    }

    /// The item of `key`, if the entry in one of the ways in `candidates`, one bit each, refers to it.
    #[inline(always)]
    fn find_among(&self, place: Place, number: usize, mut candidates: u32, key: &[u8]) -> Option<Found<'_>> {
        let bucket = &self.index.buckets()[number];
        while candidates != 0 {
            let way = candidates.trailing_zeros() as usize;
            candidates &= candidates - 1;
            let entry = bucket.entry(way);
            // The way may have been emptied since the candidates were determined.
            if entry.tag() == place.tag
                && let Some(site) = self.site(entry)
                && let Some(stored) = site.item_of(key)
            {
                return Some(Found { place, slot: Slot { bucket: number, way }, bucket, entry, stored });
            }
        }
        None
    }

    /// Starts loading the items that a lookup of `place` would compare; the bucket should already be in the cache.
    /// Returns the ways of their entries in the first bucket.
    #[inline(always)]
    pub fn prefetch_items(&self, place: Place) -> u32 {
        let mut in_first = 0;
        for number in self.index.chain(place.bucket) {
            let bucket = &self.index.buckets()[number];
            let mut candidates = bucket.matches(place.tag);
            if number == place.bucket {
                in_first = candidates;
            }
            while candidates != 0 {
                let entry = bucket.entry(candidates.trailing_zeros() as usize);
                self.region.site(entry).prefetch(self.tables.item_bytes());
                candidates &= candidates - 1;
            }
        }
        in_first
    }

    /// Returns the memory of the tables to the system; readers that still use this body find nothing.
    pub fn release_tables(&self) {
        self.index.release();
        self.inline.iter().for_each(InlineTable::release_all);
    }
}
