//! How many items of a frozen log replace older ones: some of them are looked up.
//!
//! A run collects beside others until its keyspace holds too many old values
//! ([decision 0015](../../../../docs/decisions/0015-runs-collect-until-old-values-are-many.md)), and which these are
//! nobody knows before a merge.

use alluvium_model::{GARBAGE_SHARE_MAX, Growth, Plan};

use crate::db::{KeyspaceShared, Shared, find_in_tables};
use crate::error::{Error, Result};
use crate::log::LogStore;

/// Items that are looked up of a log: a share is known to 0.09 at worst, and that of ten logs to 0.03.
const SAMPLES_MAX: usize = 32;

/// The share of the store's items that have older values in the keyspace's tables, estimated. Not asked, and 0, where
/// the share of items in runs bounds old values by itself. Costs a read of a page for each item looked up that is
/// there.
///
/// # Errors
/// Those of the log. Of a table that can't be read nothing is known here; whoever needs its items will report it.
pub(super) fn repeats_of(shared: &Shared, keyspace: &KeyspaceShared, store: &LogStore) -> Result<f64> {
    let is_bounded = match &keyspace.plan {
        Plan::Levels { levels, .. } => match levels.first().map(|level| level.growth) {
            Some(Growth::Tiering { share, .. }) => share <= GARBAGE_SHARE_MAX,
            _ => true,
        },
        Plan::Chained(_) => true,
    };
    if is_bounded || store.len() == 0 {
        return Ok(0.0);
    }
    let version = keyspace.version.load_full();
    let step = store.len().div_ceil(SAMPLES_MAX);
    let indexes: Vec<_> = store.shards().iter().map(|shard| shard.index()).collect();
    let entries = indexes.iter().flat_map(|index| index.entries());
    let (mut looked_up, mut repeated) = (0, 0);
    for (_, _, offset) in entries.step_by(step) {
        let item = store.segment.encoded_item_at(offset)?.item;
        let hash = keyspace.hasher.hash(item.key);
        let reads = &shared.counters.lookup_page_reads;
        match find_in_tables(&version, reads, hash, item.key, |found| found.is_some()) {
            Ok(is_there) => {
                looked_up += 1;
                repeated += u32::from(is_there);
            }
            Err(Error::Corruption(_) | Error::Io { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(if looked_up == 0 { 0.0 } else { f64::from(repeated) / f64::from(looked_up) })
}
