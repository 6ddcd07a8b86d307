//! [`ClusterFilter`]: the Bloom filter of a table in buckets and of the tables below it (LSM-trie's BloomCluster, Wu's
//! thesis, §4.2.4.3).
//!
//! The filter is divided into *columns* by leading hash bits, the same for all tables that share it. A column contains,
//! from the filter of each table, the part for its hashes, so one read shows which of the tables may hold a key. A new
//! table above others copies their columns into its own filter and records their file numbers: the tables below a table
//! in its level never change while the table counts there. Filters that are read together are therefore one block of
//! the youngest of their tables, in memory or on flash, and need no file of their own.
//!
//! ```text
//! index block of a table in buckets:
//! 0  8  length of the bucket directory
//! 8     the bucket directory (see `alluvium_index::bucketed`)
//!    8  hash bits after those that determine the column
//!    8  number of tables covered other than this one
//!    8  for each, young to old: number of its file
//!       the directory of the columns (see `alluvium_index::bloom_cluster`), which are the filter block
//! ```

use alluvium_base::{Corruption, KeyHash, TableId};
use alluvium_index::bloom_cluster::{BloomCluster, ClusterDirectory, ColumnRange, RUNS_MAX, RunSet};

use crate::columns::Columns;
use crate::frame::u64_at;

/// The filter of a table and of those it covers, or where on flash it is.
#[derive(Clone, Debug)]
pub(super) struct ClusterFilter {
    columns: Columns,
    /// File numbers of the covered tables other than this one, young to old.
    covers: Vec<TableId>,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Memory(BloomCluster),
    Flash(ClusterDirectory),
}

/// The position of a column to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ColumnPlace {
    pub number: u64,
    pub range: ColumnRange,
}

impl ClusterFilter {
    /// Decodes the second part of the index block and the filter block, which is empty if the filter is on flash.
    pub fn decode(bytes: &[u8], range: (u64, u64), filter: &[u8]) -> Result<Self, Corruption> {
        let bad = |expected: &str, found: String| Err(Corruption::new("index", 0, expected, found));
        if bytes.len() < 16 {
            return bad("columns of a filter", format!("{} bytes", bytes.len()));
        }
        let (shift, covered) = (u64_at(bytes, 0), u64_at(bytes, 8));
        if shift > 63 || covered >= u64::from(RUNS_MAX) {
            return bad("a cut of hashes into columns", format!("{shift} bits, {covered} tables"));
        }
        let Some((files, directory)) = bytes[16..].split_at_checked(8 * covered as usize) else {
            return bad("files covered", format!("{} bytes", bytes.len() - 16));
        };
        let covers: Vec<TableId> = files.chunks_exact(8).map(|file| TableId(u64_at(file, 0))).collect();
        let columns = Columns::new(range, shift as u32);
        let at = (16 + files.len()) as u64;
        let directory = ClusterDirectory::from_bytes(directory).map_err(|error| error.within("index", at))?;
        if directory.buckets() != columns.count || u64::from(directory.runs()) != covered + 1 {
            let expected = format!("{} columns of {} filters", columns.count, covered + 1);
            return bad(&expected, format!("{} of {}", directory.buckets(), directory.runs()));
        }
        let place = match filter {
            [] => Place::Flash(directory),
            bytes => Place::Memory(BloomCluster::from_parts(directory, bytes.to_vec())?),
        };
        Ok(Self { columns, covers, place })
    }

    /// The same filter without what can be read from flash.
    pub fn away(&self) -> Self {
        Self { place: Place::Flash(self.directory().clone()), covers: self.covers.clone(), ..*self }
    }

    /// Whether the filter is in memory.
    #[inline]
    pub fn is_in_memory(&self) -> bool {
        self.in_memory().is_some()
    }

    /// The filter, if it is in memory.
    #[inline]
    pub fn in_memory(&self) -> Option<&BloomCluster> {
        match &self.place {
            Place::Memory(cluster) => Some(cluster),
            Place::Flash(_) => None,
        }
    }

    /// The division into columns.
    pub fn columns(&self) -> Columns {
        self.columns
    }

    /// File numbers of the covered tables other than this one, young to old.
    #[inline]
    pub fn covers(&self) -> &[TableId] {
        &self.covers
    }

    /// Number of tables covered, this one included.
    #[inline]
    pub fn runs(&self) -> u32 {
        self.directory().runs()
    }

    /// Where the columns are stored.
    pub fn directory(&self) -> &ClusterDirectory {
        match &self.place {
            Place::Memory(cluster) => cluster.directory(),
            Place::Flash(directory) => directory,
        }
    }

    /// The tables that may hold a key: the oldest covered table is number 0, this one the last. Returns `None` if the
    /// filter is not in memory.
    #[inline]
    pub fn runs_of(&self, hash: KeyHash) -> Option<RunSet> {
        match &self.place {
            Place::Memory(cluster) => Some(cluster.runs_of(self.columns.column(hash), hash)),
            Place::Flash(_) => None,
        }
    }

    /// The position in the filter block of the hash's column, or `None` if it has no column.
    pub fn column_place(&self, hash: KeyHash) -> Option<ColumnPlace> {
        let number = self.columns.column(hash);
        Some(ColumnPlace { number, range: self.directory().column(number)? })
    }

    /// Starts loading the column of the hash.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        if let Place::Memory(cluster) = &self.place {
            cluster.prefetch(self.columns.column(hash));
        }
    }

    /// Bytes of memory of the filter, and of what says where the filter is stored.
    pub fn memory_bytes(&self) -> (u64, u64) {
        let known = (size_of::<Self>() + self.covers.capacity() * 8) as u64;
        match &self.place {
            Place::Memory(cluster) => (cluster.memory_bytes(), known),
            Place::Flash(directory) => (0, known + directory.memory_bytes()),
        }
    }
}
