//! Which chains are [written anew](super::rewrite_chain): those that lookups found long, and all of them when
//! everything is compacted.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use alluvium_base::KeyHash;

use super::rewrite_chain::{has_same_chains, is_counted_with_log, kept, rewrite_chain};
use crate::chained::{
    Address, Chain, Directory, Linked, ReadChain, RegionHeads, are_together, for_each_linked,
};
use crate::core::{KeyspaceShared, Shared};
use crate::error::{Error, Result};
use crate::item::{EncodedItem, Item};
use crate::level::Version;

/// Approximate bytes of records that are collected at once, without a memory limit. Each pass over the log collects
/// them for some regions of the directory.
const PASS_BYTES: u64 = 256 << 20;

/// Whether a lookup found a chain long that is not written anew yet.
pub(crate) fn long_chains_are_due(shared: &Shared) -> bool {
    due(shared).is_some()
}

fn due(shared: &Shared) -> Option<Arc<KeyspaceShared>> {
    let has_long = |keyspace: &Arc<KeyspaceShared>| {
        keyspace.version.load().chain.as_ref().is_some_and(|chain| !chain.directory.long_chains.is_empty())
    };
    shared.all_keyspaces().into_iter().find(has_long)
}

/// Writes the chains of one key anew that a lookup found long; returns whether there was one.
pub(crate) fn rewrite_long_chain(shared: &Shared) -> Result<bool> {
    let _no_collection = shared.collect_lock.lock().expect("no panic while held");
    let Some(keyspace) = due(shared) else { return Ok(false) };
    let version = keyspace.version.load_full();
    let Some(chain) = version.chain.as_deref() else { return Ok(true) };
    let Some(hash) = chain.directory.long_chains.take() else { return Ok(true) };
    for is_in_second in [false, true] {
        match rewrite_of(shared, &keyspace, &version, chain, (hash, is_in_second)) {
            // The chain continues in a segment that is younger than the version, or the keyspace is dropped.
            Err(Error::MissingFile { .. }) if !Arc::ptr_eq(&version, &keyspace.version.load()) => {}
            Err(Error::KeyspaceDropped { .. }) => {}
            outcome => outcome?,
        }
    }
    Ok(true)
}

fn rewrite_of(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    version: &Version,
    chain: &Chain,
    place: (KeyHash, bool),
) -> Result<()> {
    let reads = &shared.counters.lookup_page_reads;
    let Some((read, records)) = chain.read_chain(version, reads, &keyspace.hasher, place)? else {
        return Ok(());
    };
    if are_together(records.iter().map(|record| record.address), bytes_of(records.iter().map(|r| &r.bytes))) {
        return Ok(());
    }
    let decoded = records.iter().filter_map(|record| {
        EncodedItem::decode(&record.bytes).map(|found| (record.address, record.hash, found.item))
    });
    if let Some(items) = newest(shared, version, decoded) {
        rewrite_chain(shared, keyspace, version, &read, &items)?;
    }
    Ok(())
}

fn bytes_of<'a>(items: impl Iterator<Item = &'a Vec<u8>>) -> usize {
    items.map(Vec::len).sum()
}

/// Returns the newest item of each key, from records ordered young to old. Returns `None` if there are no records, or
/// if the chain cannot be rewritten yet.
fn newest<'a>(
    shared: &Shared,
    version: &Version,
    records: impl Iterator<Item = (Address, KeyHash, Item<'a>)>,
) -> Option<Vec<(KeyHash, Item<'a>)>> {
    let (mut seen, mut items) = (HashSet::new(), Vec::new());
    for (address, hash, item) in records {
        if !seen.insert(item.key) {
            continue;
        }
        if is_counted_with_log(version, &item, address.segment()) {
            return None;
        }
        items.push((hash, kept(shared, &item)));
    }
    (!items.is_empty()).then_some(items)
}

/// Writes all chains anew whose records are not together. Reads the log once for each part of the directory of which
/// the records fit in memory.
pub(crate) fn rewrite_all_chains(shared: &Shared) -> Result<()> {
    let _no_collection = shared.collect_lock.lock().expect("no panic while held");
    for keyspace in shared.all_keyspaces() {
        match rewrite_chains_of(shared, &keyspace) {
            Err(Error::KeyspaceDropped { .. }) => {}
            outcome => outcome?,
        }
    }
    Ok(())
}

fn rewrite_chains_of(shared: &Shared, keyspace: &KeyspaceShared) -> Result<()> {
    let version = keyspace.version.load_full();
    if !version.keeps_chain() {
        return Ok(());
    }
    let Some(chain) = version.chain.as_deref() else { return Ok(()) };
    let budget = shared.memory.budget();
    let pass_bytes = if budget.limit.is_some() { budget.merge_bytes } else { PASS_BYTES };
    let region_bytes = chain.bytes() / Directory::REGIONS as u64 + 1;
    let regions = (pass_bytes / region_bytes).clamp(1, Directory::REGIONS as u64) as usize;
    for first in (0..Directory::REGIONS).step_by(regions) {
        shared.check_open()?;
        let count = regions.min(Directory::REGIONS - first);
        let _held = shared.hold_buffers(region_bytes * count as u64);
        let heads: Vec<RegionHeads> =
            (first..first + count).map(|number| chain.directory.lock_region(number).heads(number)).collect();
        let records = Records::of(shared, keyspace, &version, chain, &heads)?;
        drop(heads);
        records.rewrite(shared, keyspace, &version)?;
        if !has_same_chains(&keyspace.version.load(), &version) {
            return Ok(());
        }
    }
    Ok(())
}

/// All records of some regions.
#[derive(Default)]
struct Records {
    bytes: Vec<u8>,
    found: Vec<Found>,
    /// Ascending.
    addresses: Vec<Address>,
    /// The chains to which the records belong, with the numbers of their regions and slots.
    chains: HashMap<(usize, usize), ReadChain>,
}

#[derive(Clone, Copy)]
struct Found {
    chain: (usize, usize),
    address: Address,
    hash: KeyHash,
    start: usize,
    len: usize,
}

impl Records {
    fn of(
        shared: &Shared,
        keyspace: &KeyspaceShared,
        version: &Version,
        chain: &Chain,
        heads: &[RegionHeads],
    ) -> Result<Self> {
        let mut records = Self::default();
        let first = heads.first().map_or(0, RegionHeads::number);
        let mut note = |linked: Linked<'_>| {
            let Linked::Record(record) = linked else { return Ok(()) };
            if record.keyspace != keyspace.id {
                return Ok(());
            }
            let hash = keyspace.hasher.hash(record.item.item.key);
            let region = Directory::region_of(hash).checked_sub(first).and_then(|place| heads.get(place));
            let Some(region) = region else { return Ok(()) };
            let read = region.slot(hash, record.link.is_in_second).and_then(|slot| region.chain(slot));
            let Some(read) = read else { return Ok(()) };
            let place = (read.region, read.slot.0);
            records.chains.insert(place, read);
            let start = records.bytes.len();
            records.bytes.extend_from_slice(record.item.bytes);
            let len = record.item.bytes.len();
            records.found.push(Found { chain: place, address: record.address, hash, start, len });
            Ok(())
        };
        for file in &chain.files {
            shared.check_open()?;
            file.for_each_linked(shared.memory.budget().read_bytes, &mut note)?;
        }
        for store in version.log_stores.iter().filter(|store| store.linked().is_some()) {
            let segment = &store.segment;
            let bytes = segment.slice(0..segment.published()).unwrap_or_default();
            for_each_linked(segment.id, segment.seed, bytes, &mut note)?;
        }
        records.found.sort_unstable_by_key(|found| (found.chain, Reverse(found.address)));
        records.addresses = records.found.iter().map(|found| found.address).collect();
        records.addresses.sort_unstable();
        Ok(records)
    }

    /// Writes the chains anew that are as they were.
    fn rewrite(&self, shared: &Shared, keyspace: &KeyspaceShared, version: &Version) -> Result<()> {
        for of_chain in self.found.chunk_by(|left, right| left.chain == right.chain) {
            let read = &self.chains[&of_chain[0].chain];
            let bytes = of_chain.iter().map(|found| found.len).sum();
            // Otherwise something younger was in the chain already when its head was looked up.
            let is_whole = self.addresses.binary_search(&read.head).is_ok();
            if !is_whole || are_together(of_chain.iter().map(|found| found.address), bytes) {
                continue;
            }
            let decoded = of_chain.iter().filter_map(|found| {
                let encoded = EncodedItem::decode(&self.bytes[found.start..found.start + found.len])?;
                Some((found.address, found.hash, encoded.item))
            });
            if let Some(items) = newest(shared, version, decoded) {
                rewrite_chain(shared, keyspace, version, read, &items)?;
            }
        }
        Ok(())
    }
}
