//! [`PlacedTable`]: a table in its place in a level.

use std::sync::Arc;

use alluvium_base::HashRange;

use super::container::Container;
use super::table_file::TableFile;
use crate::table::Section;

/// A table of sorted layout in its place: what of it counts are the containers that it lies over.
#[derive(Clone, Debug)]
pub(crate) struct PlacedTable {
    pub section: Arc<Section>,
    pub file: Arc<TableFile>,
    /// Share of its items that had older values below it in its level when it came, estimated; 0 where that was not
    /// asked.
    pub repeats: f64,
}

impl PlacedTable {
    /// Items in `low..=high`: exact for all that the table covers.
    pub fn items_within(&self, low: u128, high: u128) -> f64 {
        self.section.item_count() as f64 * self.share_within(low, high)
    }

    /// Bytes of the pages that hold them, about.
    pub fn bytes_within(&self, low: u128, high: u128) -> f64 {
        self.section.pages_bytes() as f64 * self.share_within(low, high)
    }

    fn share_within(&self, low: u128, high: u128) -> f64 {
        self.section.share_within(HashRange::new(low, high))
    }
}

impl Container<PlacedTable> {
    /// Items of all tables over the container.
    pub fn items(&self) -> f64 {
        self.items_within(self.low, self.high)
    }

    /// Items of all tables over its part `low..=high`.
    pub fn items_within(&self, low: u128, high: u128) -> f64 {
        let (low, high) = (self.low.max(low), self.high.min(high));
        self.tables.iter().map(|table| table.items_within(low, high)).sum()
    }

    /// Bytes of pages of all tables over the container.
    pub fn bytes(&self) -> f64 {
        self.bytes_within(self.low, self.high)
    }

    /// Bytes of pages of all tables over its part `low..=high`.
    pub fn bytes_within(&self, low: u128, high: u128) -> f64 {
        let (low, high) = (self.low.max(low), self.high.min(high));
        self.tables.iter().map(|table| table.bytes_within(low, high)).sum()
    }

    /// The part of the hash space that it is: 1 for all.
    pub fn span(&self) -> f64 {
        ((self.high - self.low) as f64 + 1.0) / 2f64.powi(128)
    }
}
