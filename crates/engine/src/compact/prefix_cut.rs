//! Ending all items of a prefix that are in levels, in one step
//! ([decision 0018](../../../../docs/decisions/0018-a-prefix-ends-in-one-record.md)).

use std::sync::atomic::Ordering;

use super::flow::Flow;
use super::merge_part::write_parts;
use super::young::YoungItems;
use crate::db::{KeyspaceShared, Shared};
use crate::error::Result;

/// Ends all items of the prefix that are in the levels below the youngest: what lies over the hashes of the prefix is
/// merged into one table without them, which as a rule is empty. One record of the manifest says so.
///
/// Items of other prefixes with the same hash are in that table. Reads what lies there, once; tables that lie in the
/// prefix's range as a whole are given back at once, those at its ends when they are merged the next time.
pub(crate) fn cut_prefix(shared: &Shared, keyspace: &KeyspaceShared, prefix: &[u8]) -> Result<()> {
    let Some(hash) = keyspace.hasher.prefix_hash(prefix) else { return Ok(()) };
    let _only_one = shared.merge_lock.lock().expect("no panic while held");
    keyspace.check_present()?;
    let low = u128::from(hash) << 64;
    let range = (low, low | u128::from(u64::MAX));
    let last = {
        let version = keyspace.version.load();
        if version.levels.iter().all(|level| level.within(range.0, range.1).is_empty()) {
            return Ok(());
        }
        version.last_level()
    };
    let flow = Flow::without_prefix(last, prefix);
    let counts = write_parts(shared, keyspace, &flow, &YoungItems::default(), [range].into_iter())?;
    shared.blobs.unhide(&counts.placed);
    shared.counters.merges.fetch_add(1, Ordering::Relaxed);
    Ok(())
}
