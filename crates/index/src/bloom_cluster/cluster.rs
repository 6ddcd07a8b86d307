//! [`BloomCluster`]: all columns in memory.

use alluvium_base::{Corruption, KeyHash};

use super::column::{Column, ColumnBuilder};
use super::directory::ClusterDirectory;
use super::run_set::RunSet;
use super::writer::{ClusterWriter, Packing};
use crate::elias_fano::wire::{WireReader, WireWriter};
use crate::prefetch::prefetch_bytes;

const NAME: &str = "filter cluster";
const KIND: u64 = 0x3154_534c_434d_4c42;

/// The filters of all buckets and runs of a container. Immutable: adding or removing a run makes a new cluster.
///
/// # Bytes
///
/// Little-endian 64-bit words: kind (`0x3154_534c_434d_4c42`), the directory (its length in bytes, its bytes), the
/// columns (their length in bytes, their bytes), XXH3-64 of everything before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BloomCluster {
    directory: ClusterDirectory,
    /// The columns, each already checked.
    bytes: Vec<u8>,
}

impl BloomCluster {
    /// A cluster of `buckets` buckets without runs, for filters of about `bits_per_key`.
    ///
    /// # Panics
    /// When `bits_per_key` is not above 0 and at most 64.
    pub fn empty(buckets: u64, bits_per_key: f64) -> Self {
        let builder = ColumnBuilder::new(bits_per_key);
        Self::build(buckets, |_, _| {}, builder)
    }

    /// Returns this cluster with one younger run, in filters of `bits_per_key`. `hashes_of` is called for each bucket
    /// in turn and appends the hashes of the bucket's keys to an empty list.
    ///
    /// # Panics
    /// When there are 255 runs already, or `bits_per_key` gives another number of probes than the runs here have.
    pub fn with_run(&self, bits_per_key: f64, mut hashes_of: impl FnMut(u64, &mut Vec<KeyHash>)) -> Self {
        let mut hashes = Vec::new();
        let add = |bucket, column: &mut ColumnBuilder| {
            if let Some(old) = self.column(bucket) {
                column.copy(&old, |_| true);
            }
            hashes.clear();
            hashes_of(bucket, &mut hashes);
            column.add(&hashes);
        };
        Self::build(self.buckets(), add, ColumnBuilder::new(bits_per_key))
    }

    /// Returns the cluster with only those runs for which `keeps` returns true, renumbered in the same order.
    pub fn with_runs(&self, keeps: impl Fn(u32) -> bool) -> Self {
        let copy = |bucket, column: &mut ColumnBuilder| {
            if let Some(old) = self.column(bucket) {
                column.copy(&old, &keeps);
            }
        };
        let probes = self.column(0).map_or(1, |column| column.probes());
        Self::build(self.buckets(), copy, ColumnBuilder::with_probes(probes))
    }

    fn build(buckets: u64, mut fill: impl FnMut(u64, &mut ColumnBuilder), mut column: ColumnBuilder) -> Self {
        let mut writer = ClusterWriter::new(Packing::Dense);
        let mut bytes = Vec::new();
        for bucket in 0..buckets {
            column.clear();
            fill(bucket, &mut column);
            writer.push(&column, &mut bytes);
        }
        bytes.shrink_to_fit();
        Self { directory: writer.finish(), bytes }
    }

    /// Where the columns are.
    pub fn directory(&self) -> &ClusterDirectory {
        &self.directory
    }

    /// Number of buckets.
    pub fn buckets(&self) -> u64 {
        self.directory.buckets()
    }

    /// Number of runs.
    pub fn runs(&self) -> u32 {
        self.directory.runs()
    }

    /// The column of `bucket`, or `None` if there is no such bucket.
    #[inline]
    pub fn column(&self, bucket: u64) -> Option<Column<'_>> {
        Column::trusted(self.column_bytes(bucket)?).ok()
    }

    #[inline]
    fn column_bytes(&self, bucket: u64) -> Option<&[u8]> {
        let range = self.directory.column(bucket)?;
        let end = range.offset.checked_add(range.length)?;
        self.bytes.get(usize::try_from(range.offset).ok()?..usize::try_from(end).ok()?)
    }

    /// The runs that may hold the key with `hash`, which belongs to `bucket`. A run that holds it is always among them.
    #[inline]
    pub fn runs_of(&self, bucket: u64, hash: KeyHash) -> RunSet {
        self.column(bucket).map_or(RunSet::default(), |column| column.runs_of(hash))
    }

    /// Starts loading the column of `bucket`.
    #[inline]
    pub fn prefetch(&self, bucket: u64) {
        if let Some(range) = self.directory.column(bucket) {
            prefetch_bytes(&self.bytes, range.offset as usize, range.length as usize);
        }
    }

    /// Bytes of memory, this value included.
    pub fn memory_bytes(&self) -> u64 {
        let directory = self.directory.memory_bytes() - size_of::<ClusterDirectory>() as u64;
        size_of::<Self>() as u64 + directory + self.bytes.capacity() as u64
    }

    /// The cluster as bytes, in the layout above.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = WireWriter::new(KIND, self.bytes.len() / 8 + 16);
        writer.nested(&self.directory.to_bytes());
        writer.nested(&self.bytes);
        writer.finish()
    }

    /// The cluster that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// When the directory or a column is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Corruption> {
        let mut reader = WireReader::new(NAME, KIND, bytes)?;
        let (nested, offset) = reader.nested()?;
        let directory = ClusterDirectory::from_bytes(nested).map_err(|error| error.within(NAME, offset))?;
        let (columns, offset) = reader.nested()?;
        reader.finish()?;
        Self::from_parts(directory, columns.to_vec()).map_err(|error| error.within(NAME, offset))
    }

    /// A cluster of `columns` as a [`ClusterWriter`] wrote them, dense or not, and their directory.
    ///
    /// # Errors
    /// When a column is wrong. The offset is relative to `columns`.
    pub fn from_parts(directory: ClusterDirectory, columns: Vec<u8>) -> Result<Self, Corruption> {
        if columns.len() as u64 != directory.len() {
            let expected = format!("{} bytes of columns", directory.len());
            return Err(Corruption::new(NAME, 0, expected, columns.len().to_string()));
        }
        let cluster = Self { directory, bytes: columns };
        let mut probes = None;
        for bucket in 0..cluster.buckets() {
            let range = cluster.directory.column(bucket);
            let begin = range.map_or(0, |range| range.offset);
            let length = range.map_or(0, |range| range.length);
            let column = Column::open(cluster.column_bytes(bucket).unwrap_or_default(), bucket)
                .map_err(|error| error.within(NAME, begin))?;
            let found = (column.runs(), column.probes(), (column.len() as u64).max(length));
            let expected = (cluster.runs(), *probes.get_or_insert(column.probes()), length);
            let gap = cluster.column_bytes(bucket).unwrap_or_default().get(column.len()..);
            if found != expected || gap.is_none_or(|gap| gap.iter().any(|&byte| byte != 0)) {
                return Err(Corruption::new(
                    NAME,
                    begin,
                    format!("a column of runs, probes and bytes {expected:?}"),
                    format!("{found:?}"),
                ));
            }
        }
        Ok(cluster)
    }
}
