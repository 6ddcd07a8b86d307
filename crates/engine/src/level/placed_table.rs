//! [`PlacedTable`]: a table as part of a level.

use std::sync::Arc;

use alluvium_base::HashRange;

use super::container::Container;
use super::table_file::TableFile;
use crate::table::Section;

/// A table of sorted layout in a level. The part of it in use is that in the containers that it covers.
#[derive(Clone, Debug)]
pub(crate) struct PlacedTable {
    pub section: Arc<Section>,
    pub file: Arc<TableFile>,
    /// Estimated share of its items that had obsolete versions below it in its level when it was added; 0 if that was
    /// not determined.
    pub repeats: f64,
}

impl PlacedTable {
    /// Items in `range`: exact for the whole range of the table, otherwise estimated.
    pub fn items_within(&self, range: HashRange) -> f64 {
        self.section.item_count() as f64 * self.section.share_within(range)
    }

    /// Estimated bytes of the pages with these items.
    pub fn bytes_within(&self, range: HashRange) -> f64 {
        self.section.pages_bytes() as f64 * self.section.share_within(range)
    }
}

impl Container<PlacedTable> {
    /// Items of all tables over the container.
    pub fn items(&self) -> f64 {
        self.items_within(self.range)
    }

    /// Items of all tables over the part of the container in `range`.
    pub fn items_within(&self, range: HashRange) -> f64 {
        let Some(range) = self.range.clip(range) else { return 0.0 };
        self.tables.iter().map(|table| table.items_within(range)).sum()
    }

    /// Bytes of the pages of all tables over the container.
    pub fn bytes(&self) -> f64 {
        self.bytes_within(self.range)
    }

    /// Bytes of the pages of all tables over the part of the container in `range`.
    pub fn bytes_within(&self, range: HashRange) -> f64 {
        let Some(range) = self.range.clip(range) else { return 0.0 };
        self.tables.iter().map(|table| table.bytes_within(range)).sum()
    }

    /// The share of the hash space that the container covers: 1 for all.
    pub fn span(&self) -> f64 {
        ((self.range.high - self.range.low) as f64 + 1.0) / 2f64.powi(128)
    }
}
