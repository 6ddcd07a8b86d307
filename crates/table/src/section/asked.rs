//! What a section answers to a lookup.

use std::sync::Arc;

use alluvium_base::TableId;
use alluvium_index::bloom_cluster::RunSet;

use crate::cluster_filter::ColumnPlace;
use crate::index::SectionIndex;
use crate::page_list::{PageList, PageRead};

/// The answer of a section to a lookup of a hash.
#[derive(Debug)]
pub enum Asked {
    /// The pages that may hold the key.
    Pages(PageList),
    /// Which tables may hold it, among this one and those that its filter covers.
    Runs(Verdict),
    /// A column of the filter has to be read first.
    Column(ColumnRead),
}

/// Which of several tables may hold a key.
#[derive(Debug)]
pub struct Verdict {
    pub(super) index: Arc<SectionIndex>,
    pub(super) runs: RunSet,
}

/// A read of a column of a filter.
#[derive(Debug)]
pub struct ColumnRead {
    pub(super) index: Arc<SectionIndex>,
    pub(super) place: ColumnPlace,
    /// What to read. The pages are numbered as if the filter were part of the section's pages.
    pub read: PageRead,
    /// Offset of the column in what is read.
    pub(super) skip: usize,
}

impl Verdict {
    /// Whether the table at `depth` below this one may hold the key. Returns `None` if the filter does not cover the
    /// file of this number there.
    #[inline]
    pub fn says(&self, depth: usize, file: TableId) -> Option<bool> {
        let covers = self.index.covers()?;
        let is_known = depth == 0 || covers.get(depth - 1) == Some(&file);
        let run = covers.len().checked_sub(depth)?;
        is_known.then(|| self.runs.contains(run as u32))
    }
}
