//! [`ClusterDirectory`]: where each bucket's column is.

use alluvium_base::Corruption;

use crate::elias_fano::NearLinearList;
use crate::elias_fano::wire::{WireReader, WireWriter};

const NAME: &str = "filter cluster directory";
const KIND: u64 = 0x3144_554c_434d_4c42;

/// Maximum number of buckets: more than a container of any size has.
const BUCKETS_MAX: u64 = 1 << 40;

/// A range of bytes to read in one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColumnRange {
    /// Offset of the first byte in the cluster.
    pub offset: u64,
    /// Number of bytes: the column and the zeros behind it.
    pub length: u64,
}

/// The offsets of a cluster's columns, in about 12 bits for each column: 0.01 bits an item. Immutable; built by a
/// [`ClusterWriter`](super::ClusterWriter).
///
/// # Bytes
///
/// Little-endian 64-bit words: kind (`0x3144_554c_434d_4c42`), buckets, runs, offsets and end of the columns as a list
/// near a line (see `trie`), XXH3-64 of everything before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterDirectory {
    offsets: NearLinearList,
    buckets: u64,
    runs: u32,
}

impl ClusterDirectory {
    pub(super) fn new(offsets: NearLinearList, buckets: u64, runs: u32) -> Self {
        Self { offsets, buckets, runs }
    }

    /// Number of buckets.
    pub fn buckets(&self) -> u64 {
        self.buckets
    }

    /// Number of runs.
    pub fn runs(&self) -> u32 {
        self.runs
    }

    /// Bytes of all columns.
    pub fn len(&self) -> u64 {
        self.offsets.last()
    }

    /// Whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.buckets == 0
    }

    /// The location of the column of `bucket`, or `None` if there is no such bucket.
    #[inline]
    pub fn column(&self, bucket: u64) -> Option<ColumnRange> {
        if bucket >= self.buckets {
            return None;
        }
        let (offset, end) = self.offsets.pair(bucket);
        Some(ColumnRange { offset, length: end.saturating_sub(offset) })
    }

    /// Bytes of memory, this value included.
    pub fn memory_bytes(&self) -> u64 {
        size_of::<Self>() as u64 + self.offsets.memory_bytes()
    }

    /// The directory as bytes, in the layout above.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = WireWriter::new(KIND, 8);
        writer.word(self.buckets);
        writer.word(u64::from(self.runs));
        self.offsets.write(&mut writer);
        writer.finish()
    }

    /// The directory that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// When checksum, numbers or offsets are wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Corruption> {
        let mut reader = WireReader::new(NAME, KIND, bytes)?;
        let buckets = reader.word_up_to(BUCKETS_MAX, "a number of buckets")?;
        let runs = reader.word_up_to(u64::from(super::RUNS_MAX), "a number of runs")? as u32;
        let offsets = NearLinearList::read(buckets, u64::MAX, &mut reader)?;
        reader.finish()?;
        Ok(Self { offsets, buckets, runs })
    }
}
