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
    /// Items in `range`: exact for all that the table covers.
    pub fn items_within(&self, range: HashRange) -> f64 {
        self.section.item_count() as f64 * self.section.share_within(range)
    }

    /// Bytes of the pages that hold them, about.
    pub fn bytes_within(&self, range: HashRange) -> f64 {
        self.section.pages_bytes() as f64 * self.section.share_within(range)
    }
}

impl Container<PlacedTable> {
    /// Items of all tables over the container.
    pub fn items(&self) -> f64 {
        self.items_within(self.range)
    }

    /// Items of all tables over its part in `range`.
    pub fn items_within(&self, range: HashRange) -> f64 {
        let Some(range) = self.range.clip(range) else { return 0.0 };
        self.tables.iter().map(|table| table.items_within(range)).sum()
    }

    /// Bytes of pages of all tables over the container.
    pub fn bytes(&self) -> f64 {
        self.bytes_within(self.range)
    }

    /// Bytes of pages of all tables over its part in `range`.
    pub fn bytes_within(&self, range: HashRange) -> f64 {
        let Some(range) = self.range.clip(range) else { return 0.0 };
        self.tables.iter().map(|table| table.bytes_within(range)).sum()
    }

    /// The part of the hash space that it is: 1 for all.
    pub fn span(&self) -> f64 {
        ((self.range.high - self.range.low) as f64 + 1.0) / 2f64.powi(128)
    }
}
