//! What a repair found and did.

use serde::Serialize;

/// Where the database's structure came from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ManifestRepair {
    /// The manifest is sound.
    #[default]
    Sound,
    /// The manifest was read whole although `CURRENT` or some of its own bytes were damaged.
    Restored,
    /// Records of the manifest are lost: the structure was put together from the tables. Keyspaces whose names are lost
    /// are called `keyspace-` and their number; some that were dropped or cleared may be back.
    Rebuilt,
}

/// What [`repair()`](crate::repair()) found, and did unless it was a dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// Whether this only tells what would be done.
    pub dry_run: bool,
    /// Whether anything had to be done: false for a sound database.
    pub changed: bool,
    /// Where the structure came from.
    pub manifest: ManifestRepair,
    /// Tables looked at.
    pub tables: u64,
    /// Damaged tables whose sound pages were written to new ones.
    pub tables_rewritten: u64,
    /// Tables that are missing, or of which nothing could be read.
    pub tables_lost: u64,
    /// Pages that are lost.
    pub pages_lost: u64,
    /// Items in these pages and tables, and large items whose records are lost.
    pub items_lost: u64,
    /// Whether more may be lost than `items_lost` says: of a table, segment or blob file nothing tells how many items
    /// it had.
    pub items_lost_is_minimum: bool,
    /// Items, older ones of present keys included, whose record in a blob file can't be read. They are removed.
    pub large_items_lost: u64,
    /// Items of damaged tables that were kept.
    pub items_kept: u64,
    /// Blob files that are missing: the items in them are lost.
    pub blob_files_lost: u64,
    /// Damaged blob files whose sound records were written to new ones.
    pub blob_files_rewritten: u64,
    /// Segments of the log looked at.
    pub segments: u64,
    /// Segments that are missing, or of which nothing could be read.
    pub segments_lost: u64,
    /// Places in the log where records are lost: at least one in each. `items_lost` does not count them.
    pub log_gaps: u64,
    /// Bytes in these places.
    pub log_bytes_lost: u64,
    /// Records of a damaged log that were kept; 0 when the log is sound and stays as it is.
    pub records_kept: u64,
    /// What is wrong, one line each.
    pub problems: Vec<String>,
    /// Names of the damaged files that were kept.
    pub set_aside: Vec<String>,
}

impl RepairReport {
    /// Whether older values, or items that were removed, may be seen where newer ones were lost.
    pub fn may_show_old_values(&self) -> bool {
        self.manifest == ManifestRepair::Rebuilt || self.lost_anything()
    }

    pub(super) fn lost_anything(&self) -> bool {
        self.tables_lost + self.pages_lost + self.segments_lost + self.log_gaps + self.blob_files_lost > 0
            || self.large_items_lost > 0
    }

    /// Counts what a table had that is lost as a whole, as far as that is known.
    pub(super) fn lost_of(&mut self, items: Option<u64>) {
        self.items_lost += items.unwrap_or(1);
        self.items_lost_is_minimum |= items.is_none();
    }

    pub(super) fn problem(&mut self, what: impl ToString) {
        self.problems.push(what.to_string());
    }
}
