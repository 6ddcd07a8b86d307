//! How the memory of a partition of a cache is divided between index, cells, logs and ghost.

use std::io;

use crate::eviction::{GHOST_PERCENT, PROBATION_PERCENT};
use crate::index::bucket::Bucket;
use crate::index::{Index, LossyIndex};
use crate::inline::InlineTable;
use crate::memory::{HUGE_PAGE_BYTES, PAGE_BYTES, UNIT_BYTES};
use crate::partition::Tables;
use crate::region::{CircularLog, Ghost, Logs, MAIN, PROBATION};
use crate::zone::ZoneShape;

use super::split::Split;

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
    pub tables: Tables,
    /// Bytes of the two logs; both exist under every policy.
    pub log_bytes: [usize; 2],
    /// Bytes of the largest item, by log.
    pub item_bytes_max: [usize; 2],
    /// Keys that the ghost remembers; 0 for none.
    pub ghosts: usize,
    /// The compressed zone, if there is one; the logs are then smaller than this.
    pub tiers: Option<TierShape>,
}

/// Sizes of a compressed zone, and how it shares the memory with the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TierShape {
    pub zone: ZoneShape,
    pub split: Split,
}

/// Bounds of the logs' share of the memory of a partition with a compressed zone, in percent.
const HOT_PERCENT: [usize; 2] = if cfg!(loom) { [10, 90] } else { [10, 60] };

/// Bytes that a zone takes besides blocks and directory: buffers and the table of the compressor.
pub(super) const ZONE_OVERHEAD_BYTES: usize = if cfg!(loom) { 0 } else { 64 << 10 };

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
            shape.tables.inline_buckets =
                shape.tables.inline_buckets.checked_sub(buckets).filter(|&left| left > 0)?;
        }
        shape.log_bytes[MAIN] = main_bytes(&shape) as usize / PAGE_BYTES * PAGE_BYTES;
        shape.limit_items(purpose.item_bytes_max);
        Some(shape)
    }

    /// The sizes of a partition of `bytes` in total whose logs should serve `target_percent` of the requests, and the
    /// rest of whose memory is a compressed zone.
    pub fn with_zone(bytes: usize, purpose: Purpose, target_percent: u64) -> Option<Self> {
        let bytes = bytes.checked_sub(ZONE_OVERHEAD_BYTES)?;
        let [min_percent, max_percent] = HOT_PERCENT;
        let mut shape = Self::within(bytes / 100 * max_percent, purpose)?;
        let hot_max = shape.log_bytes[MAIN] + shape.log_bytes[PROBATION];
        let hot_min = hot_max / max_percent * min_percent;
        let budget = bytes - (shape.bytes() - hot_max);
        let zone_bytes =
            budget.checked_sub(hot_min).filter(|&bytes| bytes >= ZoneShape::arena_bytes_min())?;
        // The largest item fits in the smallest logs.
        let smallest =
            shape.log_bytes.map(|bytes| bytes / max_percent * min_percent / 4 / PAGE_BYTES * PAGE_BYTES);
        for (largest, smallest) in shape.item_bytes_max.iter_mut().zip(smallest) {
            *largest = (*largest).min(smallest.max(PAGE_BYTES));
        }
        let split = Split::new(budget, hot_min.max(16 * PAGE_BYTES).min(hot_max), hot_max, target_percent);
        shape.tiers = Some(TierShape { zone: ZoneShape::for_bytes(zone_bytes), split });
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
            tables: Tables {
                buckets: (logged * 10).div_ceil(ENTRIES_PER_BUCKET_TENTHS).max(1),
                payload,
                inline_buckets,
                cell_payload: cell_payload.unwrap_or(0),
            },
            log_bytes: [in_logs - probation, probation].map(log_bytes),
            item_bytes_max: [0; 2],
            tiers: None,
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
        let Tables { payload, inline_buckets, cell_payload, .. } = self.tables;
        inline_buckets > 0 && payload <= cell_payload || item_bytes(payload) <= self.item_bytes_max[MAIN]
    }

    /// Resident bytes of all parts once all memory was used.
    pub fn bytes(&self) -> usize {
        index_bytes(self.tables) + self.region_bytes()
    }

    /// Of these, bytes of logs and ghost.
    fn region_bytes(&self) -> usize {
        let ghosts = if self.ghosts > 0 { Ghost::mapped_bytes(self.ghosts) } else { 0 };
        self.log_bytes[MAIN] + self.log_bytes[PROBATION] + ghosts
    }

    /// Empty logs and ghost of these sizes.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub(super) fn logs(&self, position_bits: u32) -> io::Result<Logs> {
        let log = |number: usize| {
            let (bytes, item_bytes_max) = (self.log_bytes[number], self.item_bytes_max[number]);
            CircularLog::new(bytes, item_bytes_max, position_bits, self.tiers.is_some())
        };
        Ok(Logs {
            logs: [log(MAIN)?, log(PROBATION)?],
            ghost: (self.ghosts > 0).then(|| Ghost::new(self.ghosts)).transpose()?,
            bytes: self.region_bytes(),
        })
    }
}

/// Bytes of an index including the inline items.
pub(super) fn index_bytes(tables: Tables) -> usize {
    let inline = match tables.inline_buckets {
        0 => 0,
        buckets => InlineTable::mapped_bytes(buckets, tables.cell_payload),
    };
    inline + LossyIndex::mapped_bytes(tables.buckets)
}

fn log_bytes(wanted: usize) -> usize {
    let unit = if wanted >= 16 * HUGE_PAGE_BYTES { HUGE_PAGE_BYTES } else { PAGE_BYTES };
    wanted.next_multiple_of(unit).max(LOG_BYTES_MIN)
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
