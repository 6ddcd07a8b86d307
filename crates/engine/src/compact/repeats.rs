//! Estimates how many items of a new run replace older ones, by lookups of a sample.
//!
//! Runs accumulate until there are too many obsolete versions
//! ([decision 0015](../../../../docs/decisions/0015-runs-collect-until-old-values-are-many.md)), and which versions are
//! obsolete is not known before a merge.

use alluvium_base::KeyHash;
use alluvium_io::sync::atomic::AtomicU64;
use alluvium_model::{GARBAGE_SHARE_MAX, Growth, LevelsPlan};

use crate::core::{KeyspaceShared, Shared, VersionLookup, find_by, find_in_tables};
use crate::error::{Error, Result};
use crate::log::LogStore;

/// Number of items of a log or a table that are looked up: the standard error of its share is at most 0.09, and 0.03
/// for ten together.
const SAMPLES_MAX: usize = 32;

/// Estimated share of the store's items that have older versions in the keyspace's tables. It is not determined, and 0,
/// if the bound on items in runs also bounds obsolete versions. Costs a read of a page for each sampled item that is
/// found.
///
/// # Errors
/// Those of the log. A table that cannot be read contributes nothing here; an operation that needs its items will
/// report the error.
pub(super) fn repeats_of(shared: &Shared, keyspace: &KeyspaceShared, store: &LogStore) -> Result<f64> {
    let version = keyspace.version.load_full();
    if !bounds_garbage(version.body.plan()) || store.len() == 0 {
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
        count.add(find_in_tables(&version, reads, hash, item.key, |found, _| found.is_some()))?;
    }
    Ok(count.share())
}

/// Whether the obsolete versions hidden by runs are counted.
fn bounds_garbage(plan: &LevelsPlan) -> bool {
    match plan.levels[0].growth {
        Growth::Tiering { share, .. } => share > GARBAGE_SHARE_MAX,
        Growth::Leveling { .. } => false,
    }
}

/// Number of lookups, and how many of them found an item.
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
            // An item may have moved to a version that is younger.
            Err(Error::Corruption(_) | Error::Io { .. } | Error::MissingFile { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn share(&self) -> f64 {
        if self.looked_up == 0 { 0.0 } else { f64::from(self.found) / f64::from(self.looked_up) }
    }
}

/// A sample of the items of a table being written, evenly distributed.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// One of this many items is taken; none if this is 0.
    step: u64,
    offered: u64,
    taken: Vec<(KeyHash, Vec<u8>)>,
}

impl Samples {
    /// A sample of approximately `items` items.
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

    /// The share of the sampled items that have older versions in the level of this number or below. Errors as for
    /// [`repeats_of`].
    pub fn share_from_level(&self, shared: &Shared, keyspace: &KeyspaceShared, level: usize) -> Result<f64> {
        if self.taken.is_empty() {
            return Ok(0.0);
        }
        let version = keyspace.version.load_full();
        let reads: &AtomicU64 = &shared.counters.lookup_page_reads;
        let mut count = Count::default();
        for (hash, key) in &self.taken {
            let mut lookup = VersionLookup::in_levels(version.body.lookup_from_level(level, *hash));
            let first = lookup.next(key)?;
            count.add(find_by(lookup, first, reads, key, |found, _| found.is_some()))?;
        }
        Ok(count.share())
    }
}
