//! [`Version`]: what readers of a keyspace see.

use std::sync::Arc;

use alluvium_base::HashRange;

use super::levels::Levels;
use crate::blob::VersionBlobs;
use crate::chained::{Address, Chain};
use crate::log::LogStore;

/// Everything a reader of one keyspace needs; immutable except for the youngest log store. A lookup visits the parts in
/// order and stops at the first item, which is the newest.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    /// Young to old; the first is the active one.
    pub log_stores: Vec<Arc<LogStore>>,
    /// What was in the log and stays in its segments, if items are chained.
    pub chain: Option<Arc<Chain>>,
    /// What is below that.
    pub body: Levels,
    /// Large items, stored in blob files.
    pub blobs: Arc<VersionBlobs>,
    /// Grows when items change without a write to the log: a witness of another epoch proves nothing. Not stored.
    pub epoch: u64,
}

impl Version {
    pub fn active(&self) -> &Arc<LogStore> {
        &self.log_stores[0]
    }

    /// Whether new records have links: the plan demands chains like those that there are.
    pub fn keeps_chain(&self) -> bool {
        let wanted = self.body.plan().log.chained;
        let is_alike = |chain: &Arc<Chain>| wanted.is_some_and(|spec| chain.directory.suits(&spec));
        self.chain.as_ref().is_some_and(is_alike)
    }

    /// The chains, and where their oldest record may be.
    pub fn oldest_of_chains(&self) -> Option<(&Chain, Address)> {
        let log = self.log_stores.last().map(|store| store.segment.id);
        self.chain.as_deref().map(|chain| (chain, chain.oldest(log)))
    }

    /// Whether the next log store of this version has links.
    pub fn goes_on(&self) -> bool {
        self.chain.as_ref().is_some_and(|chain| self.goes_on_chained(chain))
    }

    /// Whether the next log store has links: also while chains that the plan does not demand have more than a segment
    /// that is to become a run.
    fn goes_on_chained(&self, chain: &Chain) -> bool {
        self.keeps_chain() || self.active().linked().is_some() && chain.files.len() > 1
    }

    /// Whether filters say of most absent keys that nothing is to be read.
    pub fn has_filters(&self) -> bool {
        self.body.has_filters() && self.chain.as_ref().is_none_or(|chain| chain.directory.has_filters())
    }

    /// Items in the log and below, including tombstones and obsolete versions.
    pub fn items(&self) -> u64 {
        let logged: u64 = self.log_stores.iter().map(|store| store.len() as u64).sum();
        let chained = self.chain.as_ref().map_or(0, |chain| chain.items());
        logged + chained + self.body.items()
    }

    /// Estimated items in the files of chains, in a range of hashes.
    pub fn chained_items_within(&self, range: HashRange) -> f64 {
        let share = (range.high - range.low) as f64 / u128::MAX as f64;
        self.chain.as_ref().map_or(0.0, |chain| chain.items() as f64 * share)
    }
}
