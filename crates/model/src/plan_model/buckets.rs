//! What bucketed tables cost: the pages that items take, the reads that moved items cost, and the filters that are
//! copied from table to table (docs/decisions/0019).

use std::f64::consts::{PI, SQRT_2};

use crate::plan::{Filter, LevelSpec};

use super::evaluate::PlanModel;
use super::level_state::LevelState;
use super::rules::Rules;

/// Bytes of a remembered migration in memory.
const REMEMBERED_BYTES: f64 = 8.0;
/// Bytes of a group of buckets in memory, and how many buckets it has.
const GROUP_BYTES: f64 = 20.0;
const GROUP_BUCKETS: f64 = 64.0;
/// Items of a column of filters, and bytes that a column takes besides the filters: a checksum, three numbers and the
/// bits of a set; its place, and the overhead of each filter in it.
const COLUMN_ITEMS_IN_MEMORY: f64 = 128.0;
const COLUMN_ITEMS_ON_FLASH: f64 = 16.0;
/// Columns of all hashes on flash that tables of small data have, and items of all tables over a column up to which
/// larger tables keep their columns.
const COLUMNS_MIN: f64 = 16_384.0;
const ITEMS_OF_COLUMN_MAX: f64 = 1_250.0;
/// Items of a column of the youngest level's sections.
const COLUMN_ITEMS_ALONE: f64 = 1024.0;
const COLUMN_BYTES: f64 = 13.0;
const COLUMN_PLACE_BYTES: f64 = 1.5;
const COLUMN_FILTER_BYTES: f64 = 1.6;
/// Maximum number of tables that share a filter in memory.
const TABLES_IN_MEMORY_MAX: f64 = 4.0;
/// Where filters are on flash, one item in this many over a place has its filter in memory. All filters are rewritten
/// when more would.
const ITEMS_IN_MEMORY: f64 = 8.0;

impl Rules {
    /// Bytes of pages that an item takes: buckets are filled to a share, and hold whole items.
    pub(super) fn bucket_item_bytes(&self, bytes: f64, deviation_bytes: f64) -> f64 {
        let item = bytes + self.page_item_bytes + self.length_bytes(bytes);
        let by_fill = (self.page_bytes - self.page_header_bytes) * self.bucket_fill / item;
        let whole = Self { page_loss_max: 1.0, ..*self };
        self.page_bytes / by_fill.min(whole.items_per_page(bytes, deviation_bytes))
    }

    /// How full a bucket's home is, with items spread by their hashes: mean and standard deviation of its bytes, and
    /// its items.
    fn bucket_load(&self, bytes: f64, deviation_bytes: f64) -> (f64, f64, f64) {
        let item = bytes + self.page_item_bytes + self.length_bytes(bytes);
        let items = self.page_bytes / self.bucket_item_bytes(bytes, deviation_bytes);
        (items * item, (items * (item * item + deviation_bytes * deviation_bytes)).sqrt(), items)
    }

    /// Share of the buckets that give items away and are remembered.
    fn remembered_buckets(&self, bytes: f64, deviation_bytes: f64) -> f64 {
        let (mean, deviation, _) = self.bucket_load(bytes, deviation_bytes);
        let overloaded = 1.0 - below((self.page_bytes - self.page_header_bytes - mean) / deviation);
        overloaded.min(self.remembered_share)
    }

    /// Reads to fetch an item: two for items that were moved out of a bucket that is not remembered (one of the less
    /// overloaded buckets), else one. Loads are nearly normal. A bucket gives away what exceeds its capacity, and the
    /// item at the boundary, which is hit in proportion to its size.
    pub(super) fn bucket_reads(&self, bytes: f64, deviation_bytes: f64) -> f64 {
        if let Some(reads) = self.bucket_reads {
            return reads;
        }
        let (mean, deviation, items) = self.bucket_load(bytes, deviation_bytes);
        let item = mean / items;
        let capacity = (self.page_bytes - self.page_header_bytes - mean) / deviation;
        let remembered = at_share_above(self.remembered_share);
        if remembered <= capacity {
            return 1.0;
        }
        let buckets = below(remembered) - below(capacity);
        let moved_bytes = deviation * (density(capacity) - density(remembered) - capacity * buckets);
        let at_mark = (item * item + deviation_bytes * deviation_bytes) / (2.0 * item * item);
        1.0 + (moved_bytes / item + buckets * at_mark) / items
    }

    /// Bits of memory per item used to find its bucket.
    pub(super) fn bucket_index_bits(&self, bytes: f64, deviation_bytes: f64) -> f64 {
        let (_, _, items) = self.bucket_load(bytes, deviation_bytes);
        let remembered = self.remembered_buckets(bytes, deviation_bytes);
        8.0 * (remembered * REMEMBERED_BYTES + GROUP_BYTES / GROUP_BUCKETS) / items
    }
}

/// Bits of a clustered filter for an item, where `tables` tables share columns of `items` items each.
fn cluster_bits(bloom_bits: f64, items: f64, tables: f64) -> f64 {
    let of_column = (COLUMN_BYTES + COLUMN_PLACE_BYTES) / tables.max(1.0) + COLUMN_FILTER_BYTES;
    bloom_bits + 8.0 * of_column / items
}

/// Items of the newest table in a column on flash. A table that was merged from all others has columns of its own.
fn column_items_on_flash(state: &LevelState) -> f64 {
    if state.runs < 2.0 {
        return COLUMN_ITEMS_ON_FLASH;
    }
    let items = state.records * state.newest_share / COLUMNS_MIN;
    items.min(ITEMS_OF_COLUMN_MAX / state.runs_like_newest().max(1.0)).max(COLUMN_ITEMS_ON_FLASH)
}

/// Number of tables written over a place between two rewrites of all its filters on flash, if it has as many records as
/// `runs` of these tables.
fn tables_a_rewrite(runs: f64) -> f64 {
    ((runs + 1.0) / ITEMS_IN_MEMORY).floor().max(1.0)
}

impl PlanModel {
    /// Bits of filter and column places that a level keeps in memory for each of its items.
    pub(super) fn cluster_memory_bits(&self, on_flash: bool, state: &LevelState) -> f64 {
        if !self.rules.stored_indexes {
            return if on_flash { 0.0 } else { self.rules.bloom_bits };
        }
        let items = match (on_flash, state.sections > 0.0) {
            (true, _) => column_items_on_flash(state),
            (false, true) => COLUMN_ITEMS_ALONE,
            (false, false) => COLUMN_ITEMS_IN_MEMORY,
        };
        // Sections of the youngest level have a filter each.
        let tables = match (on_flash, state.sections > 0.0) {
            (true, _) => state.runs,
            (false, true) => 1.0,
            (false, false) => state.runs.min(TABLES_IN_MEMORY_MAX),
        };
        let share = match on_flash {
            true => {
                let runs = state.runs_like_newest();
                (tables_a_rewrite(runs) - 1.0) / 2.0 / runs.max(1.0)
            }
            false => 1.0,
        };
        let places = if state.sections > 0.0 { 0.0 } else { 8.0 * COLUMN_PLACE_BYTES / items };
        share * cluster_bits(self.rules.bloom_bits, items, tables) + places
    }

    /// Bits of the table's own filter that are written with each item of a table.
    pub(super) fn own_filter_bits(&self, on_flash: bool) -> f64 {
        let items = if on_flash { COLUMN_ITEMS_ON_FLASH } else { COLUMN_ITEMS_IN_MEMORY };
        cluster_bits(self.rules.bloom_bits, items, 1.0)
    }

    /// Filters that a new table of the level copies, in items of their tables, for each item of its own.
    pub(super) fn filters_taken_over(&self, level: &LevelSpec, state: &LevelState) -> f64 {
        match level.filter {
            Filter::BloomCluster { on_flash: true } => {
                let runs = state.runs_like_newest();
                runs / tables_a_rewrite(runs)
            }
            // The first of the tables that share a filter copies none.
            Filter::BloomCluster { on_flash: false } if state.sections == 0.0 => {
                state.runs.min((TABLES_IN_MEMORY_MAX - 1.0) / 2.0)
            }
            _ => self.covered_as_bloom_items(level, state.runs),
        }
    }

    /// Bytes of filters that are copied from tables of `items` items.
    pub(super) fn taken_over_bytes(&self, items: f64) -> f64 {
        if self.rules.stored_indexes { items * self.rules.bloom_bits / 8.0 } else { 0.0 }
    }

    /// Average share of the filters of a place with `runs` runs, and as many records as `runs_like_newest` new tables,
    /// that a new table of the level copies.
    pub(super) fn share_taken_over(
        &self,
        level: &LevelSpec,
        number: usize,
        (runs, runs_like_newest): (f64, f64),
    ) -> f64 {
        match level.filter {
            Filter::BloomCluster { on_flash: true } => 1.0 / tables_a_rewrite(runs_like_newest),
            Filter::BloomCluster { on_flash: false } if number > 0 && runs > 0.0 => {
                (runs % TABLES_IN_MEMORY_MAX) / runs
            }
            _ => self.covered_as_bloom_items(level, 1.0),
        }
    }
}

/// The density of the standard normal distribution.
fn density(x: f64) -> f64 {
    (-x * x / 2.0).exp() / (2.0 * PI).sqrt()
}

/// The share of the standard normal distribution below `x`.
fn below(x: f64) -> f64 {
    // Abramowitz and Stegun 7.1.26, to 1.5e-7.
    let z = x.abs() / SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let polynomial = t
        * (0.254_829_592
            + t * (-0.284_496_736 + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let tail = polynomial * (-z * z).exp() / 2.0;
    if x >= 0.0 { 1.0 - tail } else { tail }
}

/// The number above which a given share of the standard normal distribution is, between -8 and 8.
fn at_share_above(share: f64) -> f64 {
    let (mut low, mut high) = (-8.0, 8.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if 1.0 - below(middle) > share { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_normal_distribution() {
        for (x, share) in [(0.0, 0.5), (1.0, 0.841_344_7), (-2.0, 0.022_750_1)] {
            assert!((below(x) - share).abs() < 1e-6);
        }
        assert!((at_share_above(0.2) - 0.841_621_2).abs() < 1e-5);
    }

    #[test]
    fn items_of_1_to_200_bytes_take_1_01_reads() {
        // The structure itself takes 1.0096 (crates/index/tests/bucketed_model.rs).
        let remembered_share = Rules::papers().remembered_share;
        let rules = Rules { page_item_bytes: 0.0, bucket_fill: 0.95, remembered_share, ..Rules::engine() };
        let reads = rules.bucket_reads(100.5, 57.7);
        assert!((1.008..1.012).contains(&reads), "{reads}");
        let all = Rules { remembered_share: 1.0, ..rules };
        assert_eq!(all.bucket_reads(100.5, 57.7), 1.0);
        let none = Rules { remembered_share: 0.0, ..rules }.bucket_reads(100.5, 57.7);
        assert!((1.045..1.065).contains(&none), "{none}");
    }

    #[test]
    fn small_items_fill_buckets_and_large_ones_leave_a_rest() {
        let rules = Rules::engine();
        assert!((rules.bucket_item_bytes(116.0, 0.0) - 120.0 / 0.97 * 4096.0 / 4080.0).abs() < 1e-9);
        assert_eq!(rules.bucket_item_bytes(1400.0, 0.0), 2048.0);
    }
}
