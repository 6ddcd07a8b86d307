//! [`CoveringFilter`]: the multi-level cuckoo filter of a table and of the tables below it, which names the one of them
//! to read (SlimDB, VLDB 2017, §3.2).
//!
//! As with the filters of tables in buckets ([`crate::cluster_filter`]), the tables below a table in its level never
//! change while the table counts there. A new table therefore takes over the content of the filter below it, and its
//! filter answers for all. SlimDB has one filter per level that changes in place; ours belongs to the youngest table of
//! a container.
//!
//! ```text
//! index block of a table of sorted layout with such a filter:
//! 0  8  length of the page index
//! 8     the page index
//!    8  number of tables covered other than this one, at most 7
//!    8  for each, young to old: number of its file
//!    8  number of shared hashes
//!   16  for each, ascending: the hash, low half first
//! ```

use std::sync::Arc;

use alluvium_base::{Corruption, KeyHash, TableId};
use alluvium_index::bloom_cluster::RunSet;
use alluvium_index::multi_level_filter::{MultiLevelFilter, RUNS_MAX};

use crate::frame::u64_at;

/// The filter of a table and of those that it covers, or what is known while the filter is not in memory.
#[derive(Clone, Debug)]
pub(super) struct CoveringFilter {
    known: Arc<Known>,
    /// `None` while it is not in memory.
    filter: Option<Arc<MultiLevelFilter>>,
}

/// The part that is in memory for as long as the page index is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    /// File numbers of the covered tables other than this one, young to old.
    pub covers: Vec<TableId>,
    /// Hashes that different keys of these tables share, ascending, by the bits that place them. The filter would name
    /// the table of only one of the keys, so all tables may hold them. Nearly always empty.
    pub shared: Vec<KeyHash>,
}

impl Known {
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.covers.len() as u64).to_le_bytes());
        self.covers.iter().for_each(|file| out.extend_from_slice(&file.0.to_le_bytes()));
        out.extend_from_slice(&(self.shared.len() as u64).to_le_bytes());
        self.shared.iter().for_each(|hash| out.extend_from_slice(&hash.0.to_le_bytes()));
    }

    fn decode(bytes: &[u8]) -> Result<Self, Corruption> {
        let bad = |expected: &str, found: String| Err(Corruption::new("index", 0, expected, found));
        let counted = |bytes: &[u8], width: usize| {
            let (count, rest) = bytes.split_first_chunk::<8>()?;
            let length = usize::try_from(u64::from_le_bytes(*count)).ok()?.checked_mul(width)?;
            (length <= rest.len()).then_some(8 + length)
        };
        let Some((files, rest)) = counted(bytes, 8).and_then(|length| bytes.split_at_checked(length)) else {
            return bad("files that a filter covers", format!("{} bytes", bytes.len()));
        };
        if counted(rest, 16) != Some(rest.len()) {
            return bad("hashes that keys share", format!("{} bytes", rest.len()));
        }
        let covers: Vec<TableId> = files[8..].chunks_exact(8).map(|file| TableId(u64_at(file, 0))).collect();
        if covers.len() >= RUNS_MAX as usize {
            return bad("a filter of eight tables at most", format!("{} covered", covers.len()));
        }
        let hash = |bytes: &[u8]| KeyHash::from_halves(u64_at(bytes, 8), u64_at(bytes, 0));
        let shared: Vec<KeyHash> = rest[8..].chunks_exact(16).map(hash).collect();
        if !shared.is_sorted_by(|one, other| one < other) {
            return bad("ascending hashes that keys share", format!("{shared:?}"));
        }
        Ok(Self { covers, shared })
    }
}

impl CoveringFilter {
    /// Decodes the second part of the index block and the filter block, which is empty if the filter is not in memory.
    pub fn decode(bytes: &[u8], filter: &[u8]) -> Result<Self, Corruption> {
        let known = Arc::new(Known::decode(bytes)?);
        let filter = match filter {
            [] => None,
            bytes => Some(Arc::new(MultiLevelFilter::from_bytes(bytes)?)),
        };
        Ok(Self { known, filter })
    }

    /// The same filter without what can be read from flash.
    pub fn away(&self) -> Self {
        Self { known: Arc::clone(&self.known), filter: None }
    }

    #[inline]
    pub fn is_in_memory(&self) -> bool {
        self.filter.is_some()
    }

    pub fn filter(&self) -> Option<&MultiLevelFilter> {
        self.filter.as_deref()
    }

    #[inline]
    pub fn known(&self) -> &Known {
        &self.known
    }

    /// Number of tables covered, this one included.
    #[inline]
    pub fn runs(&self) -> u32 {
        self.known.covers.len() as u32 + 1
    }

    /// The tables that may hold a key placed by `hash`: the oldest covered table is number 0, this one the last. At
    /// most one, except for hashes that keys share. Returns `None` if the filter is not in memory.
    #[inline]
    pub fn runs_of(&self, hash: KeyHash) -> Option<RunSet> {
        let filter = self.filter.as_deref()?;
        let mut runs = RunSet::default();
        filter.runs(hash).for_each(|run| runs.insert(run.into()));
        if !self.known.shared.is_empty() && self.known.shared.binary_search(&hash).is_ok() {
            (0..self.runs()).for_each(|run| runs.insert(run));
        }
        Some(runs)
    }

    /// Starts loading what a lookup of the hash reads.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        if let Some(filter) = &self.filter {
            filter.prefetch(hash);
        }
    }

    /// Bytes of memory of the filter, and of what is known without it.
    pub fn memory_bytes(&self) -> (u64, u64) {
        let Known { covers, shared } = &*self.known;
        let known = size_of::<Self>() + size_of::<Known>() + covers.capacity() * 8 + shared.capacity() * 16;
        (self.filter.as_ref().map_or(0, |filter| filter.memory_bytes() as u64), known as u64)
    }
}
