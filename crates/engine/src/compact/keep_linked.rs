//! Conversion of log stores of chained keyspaces: their segments stay as they are.

use std::sync::Arc;

use super::convert::rows_to_replace;
use super::drain::drain_oldest;
use crate::blob::ReferenceCounts;
use crate::chained::ChainFile;
use crate::core::{KeyspaceShared, Shared};
use crate::error::Result;
use crate::level::Version;
use crate::log::{LogStore, Segment};

/// Makes runs of the segments of chained logs that are older than a log store of `segment` which becomes a run.
pub(super) fn drain_before(shared: &Shared, segment: &Segment) -> Result<()> {
    for keyspace in shared.all_keyspaces() {
        let becomes_run = |store: Arc<LogStore>| store.len() > 0 && store.linked().is_none();
        if keyspace.frozen_store(segment).is_some_and(becomes_run) {
            while has_older_files(&keyspace, segment) && drain_oldest(shared, &keyspace)? {}
        }
    }
    Ok(())
}

fn has_older_files(keyspace: &KeyspaceShared, segment: &Segment) -> bool {
    let version = keyspace.version.load();
    let oldest = version.chain.as_ref().and_then(|chain| chain.files.first());
    oldest.is_some_and(|file| file.segment < segment.id)
}

/// Replaces rows by the items of a store that stays in its segment; returns the references to blobs.
pub(super) fn keep_linked(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    store: &LogStore,
) -> Result<ReferenceCounts> {
    let rows = rows_to_replace(shared, keyspace, &keyspace.version.load());
    let mut references = ReferenceCounts::default();
    for shard in store.shards() {
        for (_, _, offset) in shard.index().entries() {
            let item = store.segment.item_at(offset)?;
            references.add(&item);
            rows.iter().for_each(|rows| rows.replace(&item));
        }
    }
    Ok(references)
}

/// The version with the segment's log store replaced by its file, which has the same records.
pub(super) fn replace_store_by_file(
    version: &Version,
    segment: &Segment,
    file: &Arc<ChainFile>,
    references: &ReferenceCounts,
) -> Version {
    let mut next = version.clone();
    next.log_stores.retain(|store| store.segment.id != segment.id);
    if let Some(chain) = version.chain.as_ref().filter(|_| next.log_stores.len() < version.log_stores.len()) {
        next.chain = Some(Arc::new(chain.with(file.clone())));
        next.blobs = version.blobs.with_counts(references);
    }
    next
}
