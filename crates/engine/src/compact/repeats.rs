//! How many items of a new run replace older ones: some of them are looked up.
//!
//! A run collects beside others until there are too many old values
//! ([decision 0015](../../../../docs/decisions/0015-runs-collect-until-old-values-are-many.md)), and which these are
//! nobody knows before a merge.

use alluvium_base::KeyHash;
use alluvium_io::sync::atomic::AtomicU64;
use alluvium_model::{GARBAGE_SHARE_MAX, Growth, Plan};

use super::level_table::level_spec;
use crate::db::{KeyspaceShared, Shared, find_by, find_in_tables};
use crate::error::{Error, Result};
use crate::level::Lookup;
use crate::log::LogStore;

/// Items that are looked up of a log or a table: a share is known to 0.09 at worst, and that of ten to 0.03.
const SAMPLES_MAX: usize = 32;

/// The share of the store's items that have older values in the keyspace's tables, estimated. Not asked, and 0, where
/// the share of items in runs bounds old values by itself. Costs a read of a page for each item looked up that is
/// there.
///
/// # Errors
/// Those of the log. Of a table that can't be read nothing is known here; whoever needs its items will report it.
pub(super) fn repeats_of(shared: &Shared, keyspace: &KeyspaceShared, store: &LogStore) -> Result<f64> {
    let version = keyspace.version.load_full();
    if !bounds_garbage(&version.plan.plan) || store.len() == 0 {
        return Ok(0.0);
    }
    let step = store.len().div_ceil(SAMPLES_MAX);
    let indexes: Vec<_> = store.shards().iter().map(|shard| shard.index()).collect();
    let entries = indexes.iter().flat_map(|index| index.entries());
    let mut count = Count::default();
    for (_, _, offset) in entries.step_by(step) {
        let item = store.segment.encoded_item_at(offset)?.item;
        let hash = keyspace.hasher.hash(item.key);
        let reads = &shared.counters.lookup_page_reads;
        count.add(find_in_tables(&version, reads, hash, item.key, |found| found.is_some()))?;
    }
    Ok(count.share())
}

/// Whether old values under newer ones in the runs are counted.
fn bounds_garbage(plan: &Plan) -> bool {
    match level_spec(plan, 0).growth {
        Growth::Tiering { share, .. } => share > GARBAGE_SHARE_MAX,
        Growth::Leveling { .. } => false,
    }
}

/// Whether merging the runs of a tiering level rids the store of the old values under them: it does where all that is
/// below is one run, and in the last level, which is merged into itself.
pub(super) fn ends_garbage(plan: &Plan, level: usize) -> bool {
    let Plan::Levels { levels, .. } = plan else { return false };
    levels.get(level + 1).is_none_or(|below| matches!(below.growth, Growth::Leveling { .. }))
}

/// Lookups, and how many of them found something.
#[derive(Debug, Default)]
struct Count {
    looked_up: u32,
    found: u32,
}

impl Count {
    fn add(&mut self, outcome: Result<bool>) -> Result<()> {
        match outcome {
            Ok(is_there) => {
                self.looked_up += 1;
                self.found += u32::from(is_there);
            }
            Err(Error::Corruption(_) | Error::Io { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn share(&self) -> f64 {
        if self.looked_up == 0 { 0.0 } else { f64::from(self.found) / f64::from(self.looked_up) }
    }
}

/// Some of the items of a table being written, evenly spread.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// One of so many items is taken; none where this is 0.
    step: u64,
    offered: u64,
    taken: Vec<(KeyHash, Vec<u8>)>,
}

impl Samples {
    /// For about so many items.
    pub fn of(items: u64) -> Self {
        Self { step: (items / SAMPLES_MAX as u64).max(1), ..Self::default() }
    }

    #[inline]
    pub fn offer(&mut self, hash: KeyHash, key: &[u8]) {
        if self.step > 0 {
            if self.offered.is_multiple_of(self.step) && self.taken.len() < 2 * SAMPLES_MAX {
                self.taken.push((hash, key.to_vec()));
            }
            self.offered += 1;
        }
    }

    /// The share of the items that have older values in the level of this number or below. As for [`repeats_of`].
    pub fn share_from_level(&self, shared: &Shared, keyspace: &KeyspaceShared, level: usize) -> Result<f64> {
        if self.taken.is_empty() {
            return Ok(0.0);
        }
        let version = keyspace.version.load_full();
        let reads: &AtomicU64 = &shared.counters.lookup_page_reads;
        let mut count = Count::default();
        for (hash, key) in &self.taken {
            let lookup = Lookup::from_level(&version, level, *hash);
            count.add(find_by(lookup, reads, key, |found| found.is_some()))?;
        }
        Ok(count.share())
    }
}
