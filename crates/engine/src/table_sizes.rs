//! [`TableSizes`]: how large merges make tables.

/// Minimum and maximum size of tables of the levels below the youngest.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableSizes {
    pub bytes_min: u64,
    pub bytes_max: u64,
}

impl Default for TableSizes {
    fn default() -> Self {
        Self { bytes_min: 256 << 10, bytes_max: 32 << 20 }
    }
}

/// Number of tables into which a merge of leveling is divided, as far as their sizes allow.
const TABLES_OF_MERGE: f64 = 8.0;

impl TableSizes {
    /// Approximate size of the tables that a merge of `bytes` makes.
    pub fn of_merge(&self, bytes: f64) -> f64 {
        self.clamp(bytes / TABLES_OF_MERGE)
    }

    pub fn clamp(&self, bytes: f64) -> f64 {
        bytes.clamp(self.bytes_min as f64, self.bytes_max as f64)
    }
}
