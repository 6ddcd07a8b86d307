//! The version of a keyspace: log stores, runs and the sorted run, young to old.

use std::sync::Arc;

use alluvium_base::KeyHash;

use super::run::Run;
use super::table_file::TableFile;
use crate::blob::VersionBlobs;
use crate::log::LogStore;
use crate::table::Section;

/// Everything a reader of one keyspace needs, immutable but for the youngest log store. A lookup goes through it in
/// order and stops at the first item, which is the newest.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    /// Young to old; the first is the active one.
    pub log_stores: Vec<Arc<LogStore>>,
    /// Young to old.
    pub runs: Vec<Arc<Run>>,
    /// The one sorted run: its tables, ascending and disjoint.
    pub sorted: Arc<[SortedTable]>,
    /// Large items that lie out of line.
    pub blobs: Arc<VersionBlobs>,
}

/// The part `low..=high` (leading hash bits) of a table of the sorted run.
#[derive(Debug, Clone)]
pub(crate) struct SortedTable {
    pub low: u64,
    pub high: u64,
    pub section: Arc<Section>,
    pub file: Arc<TableFile>,
}

impl Version {
    pub fn active(&self) -> &Arc<LogStore> {
        &self.log_stores[0]
    }

    /// The sorted table whose range holds `hash`.
    #[inline]
    pub fn sorted_table(&self, hash: KeyHash) -> Option<&SortedTable> {
        let high = hash.high();
        let index = self.sorted.partition_point(|table| table.high < high);
        self.sorted.get(index).filter(|table| table.low <= high)
    }

    /// Sorted tables that reach into `low..=high`.
    pub fn sorted_within(&self, low: u64, high: u64) -> &[SortedTable] {
        let start = self.sorted.partition_point(|table| table.high < low);
        let end = self.sorted.partition_point(|table| table.low <= high);
        &self.sorted[start..end.max(start)]
    }

    /// The sorted run with `new` in place of whatever covered its range.
    pub fn with_sorted(&self, new: SortedTable) -> Arc<[SortedTable]> {
        let mut tables = Vec::with_capacity(self.sorted.len() + 2);
        for table in self.sorted.iter().filter(|table| table.low < new.low) {
            tables.push(SortedTable { high: table.high.min(new.low - 1), ..table.clone() });
        }
        let (low, high) = (new.low, new.high);
        tables.push(new);
        debug_assert!(low <= high);
        for table in self.sorted.iter().filter(|table| table.high > high) {
            tables.push(SortedTable { low: table.low.max(high + 1), ..table.clone() });
        }
        tables.into()
    }

    /// Bytes of pages of the sorted run that hold items with leading hash bits in `low..=high`, about.
    pub fn sorted_bytes_within(&self, low: u64, high: u64) -> u64 {
        let tables = self.sorted_within(low, high).iter();
        tables.map(|table| (table.bytes_estimate() as f64 * table.share_within(low, high)) as u64).sum()
    }

    /// Items in log stores and runs, tombstones and old values of present keys included.
    pub fn young_items(&self) -> u64 {
        let logs: u64 = self.log_stores.iter().map(|store| store.len() as u64).sum();
        logs + self.run_items()
    }

    /// Items in runs.
    pub fn run_items(&self) -> u64 {
        self.runs.iter().map(|run| run.item_count()).sum()
    }

    /// Items in the sorted run. A table that counts in part counts by its share of the range.
    pub fn sorted_items(&self) -> u64 {
        self.sorted.iter().map(SortedTable::items_estimate).sum()
    }
}

impl SortedTable {
    /// Items in the part that counts: exact for a whole table.
    pub fn items_estimate(&self) -> u64 {
        (self.section.item_count() as f64 * self.share()) as u64
    }

    /// Bytes of pages in the part that counts.
    pub fn bytes_estimate(&self) -> u64 {
        (self.section.pages_bytes() as f64 * self.share()) as u64
    }

    /// Which share of the part that counts lies in `low..=high`, which it meets.
    pub fn share_within(&self, low: u64, high: u64) -> f64 {
        let span = (self.high.min(high) - self.low.max(low)) as f64;
        span / ((self.high - self.low) as f64).max(1.0)
    }

    fn share(&self) -> f64 {
        let (low, high) = self.section.range();
        (self.high - self.low) as f64 / ((high - low) as f64).max(1.0)
    }
}
