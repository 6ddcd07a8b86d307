//! The report of a repair.

use serde::Serialize;

/// The source of the database's structure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ManifestRepair {
    /// The manifest is sound.
    #[default]
    Sound,
    /// The manifest was read completely although `CURRENT` or some of its own bytes were damaged.
    Restored,
    /// Records of the manifest are lost: the structure was assembled from the tables. Keyspaces whose names are lost
    /// are named `keyspace-` and their number; some that were dropped or cleared may be back.
    Rebuilt,
}

/// What [`repair()`](crate::repair()) found, and what it did unless it was a dry run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RepairReport {
    /// Whether this was a dry run, which only reports what would be done.
    pub dry_run: bool,
    /// Whether anything had to be done: false for a sound database.
    pub changed: bool,
    /// The source of the structure.
    pub manifest: ManifestRepair,
    /// Number of tables checked.
    pub tables: u64,
    /// Damaged tables whose sound pages were written to new ones.
    pub tables_rewritten: u64,
    /// Tables that are missing, or of which nothing could be read.
    pub tables_lost: u64,
    /// Number of lost pages.
    pub pages_lost: u64,
    /// Number of items in these pages and tables, and of large items whose records are lost.
    pub items_lost: u64,
    /// Whether `items_lost` is a minimum: for a table, segment or blob file it is not known how many items it had.
    pub items_lost_is_minimum: bool,
    /// Number of items, including older ones of present keys, whose record in a blob file cannot be read. They are
    /// removed.
    pub large_items_lost: u64,
    /// Number of items of damaged tables that were kept.
    pub items_kept: u64,
    /// Number of missing blob files: the items in them are lost.
    pub blob_files_lost: u64,
    /// Number of damaged blob files whose sound records were written to new ones.
    pub blob_files_rewritten: u64,
    /// Number of log segments checked.
    pub segments: u64,
    /// Number of segments that are missing, or of which nothing could be read.
    pub segments_lost: u64,
    /// Number of gaps in the log where records are lost: at least one in each. `items_lost` does not count them.
    pub log_gaps: u64,
    /// Bytes in these gaps.
    pub log_bytes_lost: u64,
    /// Number of records of a damaged log that were kept; 0 if the log is sound and stays as it is.
    pub records_kept: u64,
    /// Problems found, one line each.
    pub problems: Vec<String>,
    /// Names of the damaged files that were kept.
    pub set_aside: Vec<String>,
}

impl RepairReport {
    /// Whether older versions, or items that were removed, may be visible where newer ones were lost.
    pub fn may_show_old_values(&self) -> bool {
        self.manifest == ManifestRepair::Rebuilt || self.lost_anything()
    }

    pub(super) fn lost_anything(&self) -> bool {
        self.tables_lost + self.pages_lost + self.segments_lost + self.log_gaps + self.blob_files_lost > 0
            || self.large_items_lost > 0
    }

    /// Counts the items of a table that is completely lost, as far as their number is known.
    pub(super) fn lost_of(&mut self, items: Option<u64>) {
        self.items_lost += items.unwrap_or(1);
        self.items_lost_is_minimum |= items.is_none();
    }

    pub(super) fn problem(&mut self, what: impl ToString) {
        self.problems.push(what.to_string());
    }
}
