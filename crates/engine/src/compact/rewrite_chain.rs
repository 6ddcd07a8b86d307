//! Writes a chain anew: what is live in it goes to one place of the log, where a read finds several of its records
//! (SkimpyStash, SIGMOD 2011, §4.6).
//!
//! The items are one record of the log, a batch of which the first item ends the chain: a crash keeps all or none. They
//! are appended only if the head of the chain is where it was when the chain was read. So no key of it was written in
//! between, and the copies say what readers already see.

use std::sync::Arc;

use alluvium_base::{KeyHash, SegmentId};
use alluvium_io::sync::atomic::Ordering;

use crate::blob::Reference;
use crate::chained::{BatchItem, BatchRegions, LINKED_EXTRA_BYTES_MAX, ReadChain};
use crate::core::{KeptPieces, KeyspaceShared, Moment, Shared};
use crate::error::Result;
use crate::item::{Item, ItemKind};
use crate::level::Version;
use crate::planted_race::PlantedRace;

/// What the newest item of a key becomes. A tombstone stays even if nothing is below the chains: an older segment may
/// have the key, and become a run. It goes with the oldest segment.
pub(super) fn kept<'a>(shared: &Shared, item: &Item<'a>) -> Item<'a> {
    match Moment::Now(shared).is_live(item) {
        true => *item,
        false => Item::tombstone(item.key),
    }
}

/// Appends `items`, the newest of all keys of a chain that was read in `version`, as a chain of their own. Returns
/// whether that was done: not if the chain, or what is older, has changed since.
pub(super) fn rewrite_chain(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    version: &Version,
    read: &ReadChain,
    items: &[(KeyHash, Item<'_>)],
) -> Result<bool> {
    let is_reference = |item: &Item<'_>| item.kind == ItemKind::Reference;
    let references = items.iter().map(|(_, item)| item).filter(|item| is_reference(item));
    let pieces: Vec<_> =
        references.map(|item| KeptPieces::remember(shared, Reference::all_of(item))).collect();
    loop {
        shared.check_refusal()?;
        match try_to_rewrite(shared, keyspace, version, read, items)? {
            Attempt::Done => {
                pieces.into_iter().for_each(KeptPieces::commit);
                return Ok(true);
            }
            Attempt::Changed => return Ok(false),
            Attempt::Full(segment) => shared.freeze(segment, false)?,
        }
    }
}

enum Attempt {
    Done,
    Changed,
    /// This segment is full.
    Full(SegmentId),
}

fn try_to_rewrite(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    version: &Version,
    read: &ReadChain,
    items: &[(KeyHash, Item<'_>)],
) -> Result<Attempt> {
    let store = keyspace.version.load_full().active().clone();
    let Some(linked) = store.linked() else { return Ok(Attempt::Changed) };
    let mut shards: Vec<u64> = items.iter().map(|&(hash, _)| store.shard_number(hash)).collect();
    shards.sort_unstable();
    shards.dedup();
    let shards = || shards.iter().map(|&shard| &store.shards()[shard as usize]);
    let _writers: Vec<_> = shards().map(|shard| shard.lock()).collect();
    let current = keyspace.version.load_full();
    let Some(chain) = current.chain.as_deref().filter(|_| has_same_chains(&current, version)) else {
        return Ok(Attempt::Changed);
    };
    if store.is_closed() {
        return Ok(Attempt::Changed);
    }
    let segment = &*store.segment;
    for shard in shards() {
        if !store.has_room(shard)? {
            return Ok(Attempt::Full(segment.id));
        }
    }
    if !linked.note(&shared.log, segment, keyspace.id) {
        return Ok(Attempt::Full(segment.id));
    }
    let of_item = |&(hash, item): &(KeyHash, _)| BatchItem {
        keyspace: keyspace.id,
        item,
        hash,
        chained: Some((chain, &*store)),
    };
    let batch: Vec<BatchItem<'_>> = items.iter().map(of_item).collect();
    let is_checked = !shared.planted_bugs.has(PlantedRace::RewriteChanged);
    let Some(mut regions) = BatchRegions::lock_anew(&batch, linked, read, is_checked) else {
        return Ok(Attempt::Changed);
    };
    let len = regions.record_len(segment, &batch);
    if len > (shared.log.record_bytes_max() as usize).saturating_sub(LINKED_EXTRA_BYTES_MAX) {
        return Ok(Attempt::Changed);
    }
    let mut starts = Vec::new();
    let start = shared.log.append_linked(segment, len, |start| {
        let (bytes, found) = regions.encode(segment, &batch, start);
        starts = found;
        bytes
    });
    let Some(start) = start else { return Ok(Attempt::Full(segment.id)) };
    let _indexed = (items.len() > 1).then(|| segment.indexing.begin(start..start + len as u64));
    for (&(hash, item), item_start) in items.iter().zip(starts) {
        store.index_unbounded(hash, item.key, start as u32 + item_start as u32)?;
    }
    chain.directory.passes.note_moved(len);
    shared.counters.chained_bytes_moved.fetch_add(len as u64, Ordering::Relaxed);
    // Readers walk the chain when it is complete.
    drop(regions);
    Ok(Attempt::Done)
}

/// Whether chains that were read in `version` are those of `current`, and nothing between them and the log in memory is
/// younger.
pub(super) fn has_same_chains(current: &Version, version: &Version) -> bool {
    let directory = |version: &Version| version.chain.as_ref().map(|chain| Arc::as_ptr(&chain.directory));
    let oldest = |version: &Version| version.oldest_of_chains().map(|(_, oldest)| oldest);
    current.epoch == version.epoch
        && directory(current) == directory(version)
        && oldest(current) == oldest(version)
        && current.log_stores.iter().all(|store| store.linked().is_some())
}

/// Whether a chain with such an item in this segment stays as it is, because the large value is counted with the log in
/// memory.
pub(super) fn is_counted_with_log(version: &Version, item: &Item<'_>, segment: SegmentId) -> bool {
    item.kind == ItemKind::Reference && version.log_stores.iter().any(|store| store.segment.id == segment)
}
