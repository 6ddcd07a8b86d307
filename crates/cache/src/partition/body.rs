//! The memory of a partition: index, logs and ghost, replaced as a whole when the partition is resized.

use std::io;

use crate::eviction::{GHOST_PERCENT, PROBATION_PERCENT};
use crate::ghost::Ghost;
use crate::index::bucket::Bucket;
use crate::index::{Entry, LossyIndex};
use crate::inline::{CELL_BYTES, InlineBucket, InlineTable};
use crate::item::{Header, header_of};
use crate::log::CircularLog;
use crate::memory::{Array, HUGE_PAGE_BYTES, PAGE_BYTES, UNIT_BYTES};

use super::Common;

/// Number of the log in which most items lie.
pub(crate) const MAIN: usize = 0;
/// Number of the log for items on probation.
pub(crate) const PROBATION: usize = 1;

/// Entries that a bucket of fifteen has on average: more make buckets overflow, which loses items (1.2 % of them at
/// this figure, 3 % at twelve), fewer waste memory.
const ENTRIES_PER_BUCKET_TENTHS: usize = if cfg!(loom) { 20 } else { 105 };

/// Items that an inline bucket is for, on average. By chance one in fifteen finds its bucket full then and goes to the
/// logs; fewer would waste memory, more would find less of what they need in their bucket.
const ITEMS_PER_INLINE_BUCKET_TENTHS: usize = if cfg!(loom) { 10 } else { 105 };

/// Of items that mostly lie inline, those for which the logs have room, in percent: besides those on probation.
const LOGGED_PERCENT: usize = 9;

/// Smallest log.
const LOG_BYTES_MIN: usize = 2 * PAGE_BYTES;

/// Sizes of a partition's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub buckets: usize,
    /// Bytes of key and value of an item, on average.
    pub payload: usize,
    /// Buckets for tiny items; 0 where items are larger.
    pub inline_buckets: usize,
    /// Bytes of the two logs; both are there, whatever the policy.
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

impl Shape {
    /// The parts of a partition of `bytes` in all, for items of `payload` bytes on average and `item_bytes_max` at
    /// most. `None` if that is too little memory to be useful.
    pub fn within(bytes: usize, payload: usize, item_bytes_max: usize, has_probation: bool) -> Option<Self> {
        let in_log = item_bytes(payload.max(1)) + size_of::<Bucket>() * 10 / ENTRIES_PER_BUCKET_TENTHS + 1;
        let inline = if is_inline(payload, has_probation) {
            size_of::<InlineBucket>() * 10 / ITEMS_PER_INLINE_BUCKET_TENTHS + 1
        } else {
            0
        };
        let ghost = if has_probation { size_of::<u16>() * GHOST_PERCENT / 100 + 1 } else { 0 };
        let logged_percent = logged_percent(payload, has_probation);
        let items = bytes / ((in_log * logged_percent).div_ceil(100) + inline + ghost);
        let mut shape = Self::for_items(items, payload, item_bytes_max, has_probation);
        // Pages and windows round up: take what is too much, or left, from or to the main log.
        let main_bytes = |shape: &Self| (bytes + shape.log_bytes[MAIN]) as isize - shape.bytes() as isize;
        // Small logs beside inline buckets are rounded up by more than they are.
        let missing = LOG_BYTES_MIN as isize - main_bytes(&shape);
        if missing > 0 {
            let pages = (missing as usize).div_ceil(PAGE_BYTES);
            let buckets = (pages * PAGE_BYTES).div_ceil(size_of::<InlineBucket>());
            shape.inline_buckets = shape.inline_buckets.checked_sub(buckets).filter(|&left| left > 0)?;
        }
        shape.log_bytes[MAIN] = main_bytes(&shape) as usize / PAGE_BYTES * PAGE_BYTES;
        shape.limit_items(item_bytes_max);
        Some(shape)
    }

    /// The parts of a partition for `items` items of `payload` bytes on average.
    pub fn for_items(items: usize, payload: usize, item_bytes_max: usize, has_probation: bool) -> Self {
        let logged = (items * logged_percent(payload, has_probation)).div_ceil(100);
        let in_logs = logged * item_bytes(payload);
        let probation = if has_probation { items * item_bytes(payload) * PROBATION_PERCENT / 100 } else { 0 };
        let inline_buckets = match is_inline(payload, has_probation) {
            true => (items * 10).div_ceil(ITEMS_PER_INLINE_BUCKET_TENTHS).max(1),
            false => 0,
        };
        let mut shape = Self {
            buckets: (logged * 10).div_ceil(ENTRIES_PER_BUCKET_TENTHS).max(1),
            payload,
            inline_buckets,
            log_bytes: [in_logs - probation, probation].map(log_bytes),
            item_bytes_max: [0; 2],
            ghosts: if has_probation { (items * GHOST_PERCENT).div_ceil(100).max(1) } else { 0 },
        };
        shape.limit_items(item_bytes_max);
        shape
    }

    /// An item may take a quarter of its log, whose window it determines.
    fn limit_items(&mut self, item_bytes_max: usize) {
        self.item_bytes_max =
            self.log_bytes.map(|bytes| item_bytes_max.min(bytes / 4).next_multiple_of(PAGE_BYTES).min(bytes));
    }

    /// Bytes of an item in its log, on average.
    #[inline(always)]
    pub fn item_bytes(&self) -> usize {
        UNIT_BYTES + self.payload
    }

    /// Resident bytes of all parts once everything was used.
    pub fn bytes(&self) -> usize {
        let ghosts = if self.ghosts > 0 { Ghost::mapped_bytes(self.ghosts) } else { 0 };
        self.index_bytes() + self.log_bytes[MAIN] + self.log_bytes[PROBATION] + ghosts
    }

    /// Of these, bytes of the index, with what lies in it.
    pub fn index_bytes(&self) -> usize {
        let inline = if self.inline_buckets > 0 { InlineTable::mapped_bytes(self.inline_buckets) } else { 0 };
        inline + Array::<Bucket>::mapped_bytes(self.buckets)
    }
}

/// Whether items of `payload` bytes on average mostly lie inline. Which of them leave is decided as S3-FIFO does.
fn is_inline(payload: usize, has_probation: bool) -> bool {
    has_probation && payload <= CELL_BYTES
}

/// Items for which the logs have room, in percent.
fn logged_percent(payload: usize, has_probation: bool) -> usize {
    if is_inline(payload, has_probation) { LOGGED_PERCENT + PROBATION_PERCENT } else { 100 }
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
    pub index: LossyIndex,
    pub inline: Option<InlineTable>,
    pub logs: [CircularLog; 2],
    pub ghost: Option<Ghost>,
}

impl Body {
    /// Empty parts of the given sizes.
    ///
    /// # Errors
    /// What the system says when it refuses the memory.
    pub fn new(shape: Shape, common: &Common) -> io::Result<Self> {
        let log = |number: usize| {
            CircularLog::new(shape.log_bytes[number], shape.item_bytes_max[number], common.position_bits)
        };
        Ok(Self {
            shape,
            may_dangle: common.eviction.leaves_entries(),
            index: LossyIndex::new(shape.buckets)?,
            inline: (shape.inline_buckets > 0).then(|| InlineTable::new(shape.inline_buckets)).transpose()?,
            logs: [log(MAIN)?, log(PROBATION)?],
            ghost: (shape.ghosts > 0).then(|| Ghost::new(shape.ghosts)).transpose()?,
        })
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

    /// The header of the entry's item, if the item is still there and the header makes sense.
    #[inline(always)]
    pub fn header(&self, entry: Entry) -> Option<Header> {
        let log = self.log_with(entry)?;
        let header = Header(log.load(entry.position(), 0));
        (header.is_sound() && header.words() <= log.item_words_max()).then_some(header)
    }

    /// The header of the entry's item, if the item is still there and is that of `key`.
    #[inline(always)]
    pub fn header_of(&self, entry: Entry, key: &[u8]) -> Option<Header> {
        let log = self.log_with(entry)?;
        header_of(log.ring(), log.layout().unit(entry.position()), log.item_words_max(), key)
    }

    /// Gives the memory back, for readers who still look at this body to find nothing.
    pub fn release(&self) {
        self.index.release();
        self.inline.iter().for_each(|table| table.release(0, table.buckets().len()));
        self.logs.iter().for_each(CircularLog::release);
        self.ghost.iter().for_each(Ghost::release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_takes_what_it_was_given_and_no_more() {
        for bytes in [64 << 10, 1 << 20, 100_000_000, 1 << 30] {
            for payload in [16, 80, 1152, 20_000] {
                for has_probation in [false, true] {
                    let shape = Shape::within(bytes, payload, 1 << 20, has_probation).unwrap();
                    assert!(shape.bytes() <= bytes, "{bytes} {payload}: {shape:?}");
                    assert!(bytes - shape.bytes() < 2 * PAGE_BYTES, "{bytes} {payload}: {shape:?}");
                }
            }
        }
        assert_eq!(Shape::within(8 << 10, 16, 1 << 20, true), None);
    }
}
