//! The memory of a partition: index, logs and ghost, replaced as a whole when the partition is resized.

use std::io;
use std::sync::Arc;

use crate::eviction::{GHOST_PERCENT, PROBATION_PERCENT};
use crate::ghost::Ghost;
use crate::index::bucket::Bucket;
use crate::index::{Entry, LossyIndex};
use crate::inline::InlineTable;
use crate::item::{Header, header_of};
use crate::log::CircularLog;
use crate::memory::{Array, HUGE_PAGE_BYTES, PAGE_BYTES, UNIT_BYTES};
use crate::sync::{AtomicU32, Ordering};

use super::Common;

/// Number of the log that stores most items.
pub(crate) const MAIN: usize = 0;
/// Number of the log for items on probation.
pub(crate) const PROBATION: usize = 1;

/// Mean entries per bucket of fifteen, in tenths: with more, buckets overflow, which loses items (1.2 % of them at this
/// number, 3 % at twelve); fewer waste memory.
const ENTRIES_PER_BUCKET_TENTHS: usize = if cfg!(loom) { 20 } else { 105 };

/// Mean items per inline bucket, in tenths. One item in fifteen then finds its bucket full by chance and goes to the
/// logs; fewer would waste memory, with more a smaller share of the items would find room in their bucket.
const ITEMS_PER_INLINE_BUCKET_TENTHS: usize = if cfg!(loom) { 10 } else { 105 };

/// If most items are stored inline: the share for which the logs have room, in percent, besides those on probation.
const LOGGED_PERCENT: usize = 9;

/// Smallest log.
const LOG_BYTES_MIN: usize = 2 * PAGE_BYTES;

/// The kind of items for which a partition is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Purpose {
    /// Bytes of key and value of an item, on average.
    pub payload: usize,
    /// Bytes of key and value for which cells have room; `None` for no cells.
    pub cell_payload: Option<usize>,
    /// Bytes of the largest item.
    pub item_bytes_max: usize,
    pub has_probation: bool,
}

/// Sizes of a partition's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub buckets: usize,
    /// Bytes of key and value of an item, on average.
    pub payload: usize,
    /// Number of inline buckets, 0 if there are no cells, and bytes of key and value that fit in a cell.
    pub inline_buckets: usize,
    pub cell_payload: usize,
    /// Bytes of the two logs; both exist under every policy.
    pub log_bytes: [usize; 2],
    /// Bytes of the largest item, by log.
    pub item_bytes_max: [usize; 2],
    /// Keys that the ghost remembers; 0 for none.
    pub ghosts: usize,
}

/// Bytes that an item of `payload` bytes of key and value takes in a log.
pub(crate) fn item_bytes(payload: usize) -> usize {
    UNIT_BYTES + payload.next_multiple_of(UNIT_BYTES)
}

impl Purpose {
    /// Items for which the logs have room, in percent.
    fn logged_percent(&self) -> usize {
        if self.cell_payload.is_some() { LOGGED_PERCENT + PROBATION_PERCENT } else { 100 }
    }
}

impl Shape {
    /// The sizes of a partition of `bytes` in total. `None` if that is too little memory to be useful.
    pub fn within(bytes: usize, purpose: Purpose) -> Option<Self> {
        // In thousandths of a byte, since the main log gets everything that rounding leaves over.
        let per_bucket = |bytes: usize, tenths: usize| 1000 * bytes * 10 / tenths;
        let in_log = 1000 * item_bytes(purpose.payload.max(1))
            + per_bucket(size_of::<Bucket>(), ENTRIES_PER_BUCKET_TENTHS);
        let bucket_bytes = purpose.cell_payload.map_or(0, InlineTable::bucket_bytes);
        let inline = per_bucket(bucket_bytes, ITEMS_PER_INLINE_BUCKET_TENTHS);
        let ghost = if purpose.has_probation { 10 * size_of::<u16>() * GHOST_PERCENT } else { 0 };
        let each = in_log * purpose.logged_percent() / 100 + inline + ghost;
        let items = (bytes as u128 * 1000 / each as u128) as usize;
        let mut shape = Self::for_items(items, purpose);
        // Pages and windows are rounded up: take the excess from the main log, or give it the remainder.
        let main_bytes = |shape: &Self| (bytes + shape.log_bytes[MAIN]) as isize - shape.bytes() as isize;
        // Small logs beside cells may be rounded up by more than their size.
        while main_bytes(&shape) < LOG_BYTES_MIN as isize {
            let buckets = PAGE_BYTES.div_ceil(bucket_bytes.max(1));
            shape.inline_buckets = shape.inline_buckets.checked_sub(buckets).filter(|&left| left > 0)?;
        }
        shape.log_bytes[MAIN] = main_bytes(&shape) as usize / PAGE_BYTES * PAGE_BYTES;
        shape.limit_items(purpose.item_bytes_max);
        Some(shape)
    }

    /// The sizes of a partition for `items` items.
    pub fn for_items(items: usize, purpose: Purpose) -> Self {
        let Purpose { payload, cell_payload, item_bytes_max, has_probation } = purpose;
        let logged = (items * purpose.logged_percent()).div_ceil(100);
        let in_logs = logged * item_bytes(payload);
        let probation = if has_probation { items * item_bytes(payload) * PROBATION_PERCENT / 100 } else { 0 };
        let inline_buckets =
            cell_payload.map_or(0, |_| (items * 10).div_ceil(ITEMS_PER_INLINE_BUCKET_TENTHS).max(1));
        let mut shape = Self {
            buckets: (logged * 10).div_ceil(ENTRIES_PER_BUCKET_TENTHS).max(1),
            payload,
            inline_buckets,
            cell_payload: cell_payload.unwrap_or(0),
            log_bytes: [in_logs - probation, probation].map(log_bytes),
            item_bytes_max: [0; 2],
            ghosts: if has_probation { (items * GHOST_PERCENT).div_ceil(100).max(1) } else { 0 },
        };
        shape.limit_items(item_bytes_max);
        shape
    }

    /// An item may take a quarter of its log; the largest item determines the log's window.
    fn limit_items(&mut self, item_bytes_max: usize) {
        self.item_bytes_max =
            self.log_bytes.map(|bytes| item_bytes_max.min(bytes / 4).next_multiple_of(PAGE_BYTES).min(bytes));
    }

    /// Whether the largest item allowed is no smaller than one of the mean size, which is stored in a cell or in the
    /// main log.
    pub fn has_room_for_mean(&self) -> bool {
        self.inline_buckets > 0 && self.payload <= self.cell_payload
            || item_bytes(self.payload) <= self.item_bytes_max[MAIN]
    }

    /// Bytes of an item in its log, on average.
    #[inline(always)]
    pub fn item_bytes(&self) -> usize {
        UNIT_BYTES + self.payload
    }

    /// Resident bytes of all parts once all memory was used.
    pub fn bytes(&self) -> usize {
        let ghosts = if self.ghosts > 0 { Ghost::mapped_bytes(self.ghosts) } else { 0 };
        self.index_bytes() + self.log_bytes[MAIN] + self.log_bytes[PROBATION] + ghosts
    }

    /// Of these, bytes of the index including the inline items.
    pub fn index_bytes(&self) -> usize {
        let inline = match self.inline_buckets {
            0 => 0,
            buckets => InlineTable::mapped_bytes(buckets, self.cell_payload),
        };
        inline + Array::<Bucket>::mapped_bytes(self.buckets)
    }
}

fn log_bytes(wanted: usize) -> usize {
    let unit = if wanted >= 16 * HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { PAGE_BYTES };
    wanted.next_multiple_of(unit).max(LOG_BYTES_MIN)
}

/// An item found in a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found<'a> {
    pub body: &'a Body,
    pub bucket: &'a Bucket,
    pub way: usize,
    pub entry: Entry,
    pub header: Header,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Body {
    pub shape: Shape,
    /// Whether entries of evicted items stay in the index.
    may_dangle: bool,
    /// How often index and inline table have yet to grow before they have the size of `shape`.
    growths: u32,
    /// Whether the system refused memory for growing.
    is_stuck: AtomicU32,
    pub index: LossyIndex,
    pub inline: Option<InlineTable>,
    /// Logs and ghost are shared with the body from which this one grew.
    pub logs: Arc<[CircularLog; 2]>,
    pub ghost: Option<Arc<Ghost>>,
}

/// Minimum bytes of an index with its inline table, if a larger one is allowed. Under the model checker so few that
/// most tests need no growth.
const TABLE_BYTES_MIN: usize = if cfg!(loom) { 2 * size_of::<Bucket>() } else { 64 << 10 };

/// Binary logarithm of the factor by which index and inline table grow.
const GROWTH_BITS: u32 = 2;

/// Buckets of a table that has yet to grow `growths` times before it has `all`.
fn buckets_before(all: usize, growths: u32) -> usize {
    (all >> (GROWTH_BITS * growths)).max(1)
}

impl Shape {
    /// Bytes of the tables of a partition that have yet to grow `growths` times.
    fn table_bytes(&self, growths: u32) -> usize {
        let inline = match self.inline_buckets {
            0 => 0,
            all => buckets_before(all, growths) * InlineTable::bucket_bytes(self.cell_payload),
        };
        inline + buckets_before(self.buckets, growths) * size_of::<Bucket>()
    }

    /// How often the tables of a partition that starts with `items` items should have yet to grow: as often as
    /// possible, provided that no bucket is likely to get more entries than fit.
    fn growths_for(&self, items: u64) -> u32 {
        let is_right = |growths: &u32| {
            self.table_bytes(*growths) >= TABLE_BYTES_MIN
                && items * 2 <= buckets_before(self.buckets, *growths) as u64
        };
        let most = usize::BITS / GROWTH_BITS;
        (0..most).rev().find(is_right).unwrap_or(0)
    }
}

impl Body {
    /// Empty parts of the given sizes, for `items` items soon and more over time.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn new(shape: Shape, items: u64, common: &Common) -> io::Result<Self> {
        let log = |number: usize| {
            CircularLog::new(shape.log_bytes[number], shape.item_bytes_max[number], common.position_bits)
        };
        let logs = Arc::new([log(MAIN)?, log(PROBATION)?]);
        let ghost = (shape.ghosts > 0).then(|| Ghost::new(shape.ghosts)).transpose()?.map(Arc::new);
        Self::over(logs, ghost, shape, shape.growths_for(items), common.eviction.leaves_entries())
    }

    /// A body with empty tables over these logs.
    fn over(
        logs: Arc<[CircularLog; 2]>,
        ghost: Option<Arc<Ghost>>,
        shape: Shape,
        growths: u32,
        may_dangle: bool,
    ) -> io::Result<Self> {
        Ok(Self {
            shape,
            may_dangle,
            growths,
            is_stuck: AtomicU32::new(0),
            index: LossyIndex::new(buckets_before(shape.buckets, growths))?,
            inline: (shape.inline_buckets > 0)
                .then(|| InlineTable::new(buckets_before(shape.inline_buckets, growths), shape.cell_payload))
                .transpose()?,
            logs,
            ghost,
        })
    }

    /// A body with empty tables over the same logs, four times as large.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn grown(&self) -> io::Result<Self> {
        let (logs, ghost) = (Arc::clone(&self.logs), self.ghost.clone());
        Self::over(logs, ghost, self.shape, self.growths.saturating_sub(1), self.may_dangle)
    }

    /// Bytes of the index including the inline items.
    pub fn index_bytes(&self) -> usize {
        let (buckets, inline_buckets) =
            (self.index.buckets().len(), self.inline.as_ref().map_or(0, InlineTable::len));
        Shape { buckets, inline_buckets, ..self.shape }.index_bytes()
    }

    /// Whether index and inline table can grow, in which case a full bucket is no reason to forget an item.
    #[inline(always)]
    pub fn may_grow(&self) -> bool {
        self.growths > 0 && self.is_stuck.load(Ordering::Relaxed) == 0
    }

    /// There is no memory for larger tables: the present ones are used as if no larger ones were allowed.
    pub fn stop_growing(&self) {
        self.is_stuck.store(1, Ordering::Relaxed);
    }

    /// The log of an entry.
    #[inline(always)]
    pub fn log(&self, entry: Entry) -> &CircularLog {
        &self.logs[entry.log()]
    }

    /// The log of an entry, unless the entry's item was evicted.
    #[inline(always)]
    fn log_with(&self, entry: Entry) -> Option<&CircularLog> {
        let log = self.log(entry);
        (!self.may_dangle || log.contains(entry.position())).then_some(log)
    }

    /// The header of the entry's item, if the item is still present and the header is sound.
    #[inline(always)]
    pub fn header(&self, entry: Entry) -> Option<Header> {
        let log = self.log_with(entry)?;
        let header = Header(log.load(entry.position(), 0));
        (header.is_sound() && header.words() <= log.item_words_max()).then_some(header)
    }

    /// The header of the entry's item, if the item is still present and its key is `key`.
    #[inline(always)]
    pub fn header_of(&self, entry: Entry, key: &[u8]) -> Option<Header> {
        let log = self.log_with(entry)?;
        header_of(log.ring(), log.layout().unit(entry.position()), log.item_words_max(), key)
    }

    /// Returns the memory of the tables to the system; readers that still use this body find nothing.
    pub fn release_tables(&self) {
        self.index.release();
        self.inline.iter().for_each(InlineTable::release_all);
    }

    /// Returns all memory to the system, likewise.
    pub fn release(&self) {
        self.release_tables();
        self.logs.iter().for_each(CircularLog::release);
        self.ghost.iter().for_each(|ghost| ghost.release());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inline::CELL_BYTES_MAX;

    #[test]
    fn a_partition_takes_what_it_was_given_and_no_more() {
        for bytes in [64 << 10, 1 << 20, 100_000_000, 1 << 30] {
            for payload in [16, 80, 1152, 20_000] {
                for (has_probation, cell_payload) in [(false, None), (true, None), (true, Some(payload))] {
                    let cell_payload = cell_payload.filter(|&bytes| bytes <= CELL_BYTES_MAX);
                    let purpose = Purpose { payload, cell_payload, item_bytes_max: 1 << 20, has_probation };
                    let shape = Shape::within(bytes, purpose).unwrap();
                    assert!(shape.bytes() <= bytes, "{bytes} {payload}: {shape:?}");
                    assert!(bytes - shape.bytes() < 2 * PAGE_BYTES, "{bytes} {payload}: {shape:?}");
                }
            }
        }
        let tiny =
            Purpose { payload: 16, cell_payload: Some(16), item_bytes_max: 1 << 20, has_probation: true };
        assert_eq!(Shape::within(8 << 10, tiny), None);
    }
}
