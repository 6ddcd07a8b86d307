//! [`ClusterWriter`]: columns in, bytes and directory out.

use super::column::ColumnBuilder;
use super::directory::ClusterDirectory;
use crate::elias_fano::{Differences, NearLinearList};

const PAGE_LEN: u64 = 4096;

/// Where columns may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// One directly after the other, as in memory.
    Dense,
    /// No column touches more pages of 4 KiB than its length needs, as on flash. Zeros fill the gaps, which are less
    /// than half of all bytes for columns of at most a page.
    Pages,
}

/// Writes the columns of a cluster in the order of buckets. Holds one column at a time, and two bytes for each column
/// written so far.
#[derive(Clone, Debug)]
pub struct ClusterWriter {
    packing: Packing,
    /// Offset of each column.
    offsets: Differences,
    /// Offset at which the last column ends.
    end: u64,
    runs: Option<(u32, u32)>,
}

impl ClusterWriter {
    /// A writer of a cluster that begins at offset 0, where a page begins.
    pub fn new(packing: Packing) -> Self {
        Self { packing, offsets: Differences::default(), end: 0, runs: None }
    }

    /// Columns so far.
    pub fn buckets(&self) -> u64 {
        self.offsets.len()
    }

    /// Bytes held now.
    pub fn memory_bytes(&self) -> u64 {
        self.offsets.memory_bytes()
    }

    /// Appends the next bucket's column to `out`, preceded by the zeros that the packing needs; these count as part of
    /// the previous column. `out` may have been emptied since the last call.
    ///
    /// # Panics
    /// When the column has another number of runs or probes than those before it.
    pub fn push(&mut self, column: &ColumnBuilder, out: &mut Vec<u8>) {
        let runs = (column.runs(), column.probes());
        let first = *self.runs.get_or_insert(runs);
        assert_eq!(runs, first, "all columns have the same runs and probes");
        let bucket = self.buckets();
        let len = column.len() as u64;
        if self.packing == Packing::Pages && self.end % PAGE_LEN + len > len.next_multiple_of(PAGE_LEN) {
            let padding = self.end.next_multiple_of(PAGE_LEN) - self.end;
            out.resize(out.len() + padding as usize, 0);
            self.end += padding;
        }
        column.write(bucket, out);
        self.offsets.push(self.end);
        self.end += len;
    }

    /// The directory of what was written.
    pub fn finish(mut self) -> ClusterDirectory {
        let buckets = self.buckets();
        let (runs, _) = self.runs.unwrap_or_default();
        self.offsets.push(self.end);
        let offsets = NearLinearList::new(self.offsets.iter(), self.offsets.len(), self.end);
        ClusterDirectory::new(offsets, buckets, runs)
    }
}
