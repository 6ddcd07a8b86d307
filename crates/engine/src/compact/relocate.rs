//! Collection of chained logs: what is live in the oldest segment is appended to the log again, and the segment is
//! removed (SkimpyStash, SIGMOD 2011, §4.6).
//!
//! A record is live if no younger one of its key is in the log. That is found out by reading the younger segments from
//! one end to the other, once for the whole segment. The paper walks the chain of each record, which takes a random
//! read for each older record; and since no pointer can be changed in place, it moves whole chains. Here a link into a
//! segment that is gone ends a chain, so that only live records are moved: of a log with a share g of garbage, fewer
//! than 1 − g, because the oldest segment has more garbage than the others.
//!
//! Segments are collected old to young. A repair without a manifest would otherwise bring back what a tombstone in a
//! younger segment removed ([decision 0058](../../../../docs/decisions/0058-what-dies-in-the-log-stays-there.md)).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use alluvium_base::SegmentId;
use alluvium_io::AlignedBuffer;
use alluvium_io::sync::atomic::Ordering;

use super::drain::clear_chains;
use crate::blob::{Reference, ReferenceCounts};
use crate::chained::{Chain, ChainFile, Linked};
use crate::core::{KeptPieces, KeyspaceShared, Moment, Shared, Witness, write_item};
use crate::error::{Error, IoContext, Result};
use crate::item::{Item, ItemKind};
use crate::level::Version;
use crate::log::record::{self, Parsed, Record};
use crate::manifest::Edit;
use crate::planted_race::PlantedRace;

/// Approximate bytes of a record beside its item: checksum, tag and link.
const RECORD_BYTES: usize = 12;
/// A segment is collected only if the log has at least this number beside it.
const YOUNGER_MIN: usize = 1;

/// The newest records of all keys in a segment, by the leading halves of their hashes, as far as they may be live.
struct Candidates<'a> {
    bytes: &'a [u8],
    /// Offsets of records.
    offsets: HashMap<u64, u32>,
    /// Those whose place another key has.
    others: Vec<u32>,
}

/// The garbage in a keyspace's chained log, in relation to what its plan allows: above 1, it is collected.
pub(crate) fn chain_pressure(shared: &Shared, version: &Version) -> f64 {
    let Some(chain) = &version.chain else { return 0.0 };
    if chain.files.len() <= YOUNGER_MIN || chain.bytes() <= shared.settings.garbage_bytes_min {
        return 0.0;
    }
    let (passes, oldest) = (&chain.directory.passes, chain.files[0].segment);
    let share_max = version.body.plan().log.chained.unwrap_or(chain.directory.spec).garbage_share_max;
    if !passes.covers(oldest) && !passes.have_passed(share_max * chain.bytes() as f64) {
        return 0.0;
    }
    chain.garbage_share(version, shared.now_ms()) / share_max
}

/// Whether [`collect_chains`] would find work to do.
pub(crate) fn chains_are_due(shared: &Shared) -> bool {
    due(shared).is_some()
}

/// The garbage of the keyspace with the most, as [`chain_pressure`].
pub(crate) fn chains_pressure(shared: &Shared) -> f64 {
    let pressures = shared.all_keyspaces().into_iter();
    pressures.map(|keyspace| chain_pressure(shared, &keyspace.version.load())).fold(0.0, f64::max)
}

fn due(shared: &Shared) -> Option<Arc<KeyspaceShared>> {
    shared.all_keyspaces().into_iter().find(|keyspace| chain_pressure(shared, &keyspace.version.load()) > 1.0)
}

/// Collects the oldest segment of a keyspace with too much garbage; returns whether there was one.
pub(crate) fn collect_chains(shared: &Shared) -> Result<bool> {
    let _only_one = shared.collect_lock.lock().expect("no panic while held");
    match due(shared) {
        // What is dropped or cleared meanwhile needs no collection.
        Some(keyspace) => match collect_oldest(shared, &keyspace) {
            Err(Error::KeyspaceDropped { .. }) => Ok(true),
            outcome => outcome,
        },
        None => Ok(false),
    }
}

/// Moves what is live in the oldest segment of a keyspace, and removes the segment.
fn collect_oldest(shared: &Shared, keyspace: &KeyspaceShared) -> Result<bool> {
    let version = keyspace.version.load_full();
    let Some(chain) = version.chain.clone() else { return Ok(false) };
    let Some(victim) = chain.files.first().cloned() else { return Ok(false) };
    if !chain.directory.passes.covers(victim.segment) {
        chain.directory.passes.begin(shared.log.active_segment().id);
    }
    let _held = shared.hold_buffers(victim.bytes);
    let bytes = read_whole(&victim)?;
    let (mut candidates, counts) = Candidates::of(&bytes, &victim, keyspace)?;
    // Up to this segment, younger files were searched.
    let mut searched = victim.segment;
    loop {
        let version = keyspace.version.load_full();
        let still = version.chain.as_ref().filter(|chain| has_oldest(chain, &victim));
        // The keyspace was cleared or dropped meanwhile.
        let Some(chain) = still else { return Ok(true) };
        candidates.drop_overwritten(shared, keyspace, chain, searched)?;
        searched = chain.files.last().map_or(searched, |file| file.segment);
        if candidates.move_all(shared, keyspace, searched)? {
            break;
        }
    }
    drop_oldest(shared, keyspace, &victim, counts)
}

fn has_oldest(chain: &Chain, victim: &ChainFile) -> bool {
    chain.files.first().is_some_and(|file| std::ptr::eq(&**file, victim))
}

fn read_whole(file: &ChainFile) -> Result<AlignedBuffer> {
    let mut bytes = AlignedBuffer::new();
    bytes.resize_unspecified((file.bytes as usize).next_multiple_of(4096));
    let read = file.file.read_at(&mut bytes, 0).context(|| format!("reading {}", file.name()))?;
    bytes.truncate(read.min(file.bytes as usize));
    Ok(bytes)
}

impl<'a> Candidates<'a> {
    /// All keys of the keyspace in the segment; and what its records count as references to blobs.
    fn of(bytes: &'a [u8], file: &ChainFile, keyspace: &KeyspaceShared) -> Result<(Self, ReferenceCounts)> {
        let mut found = Self { bytes, offsets: HashMap::new(), others: Vec::new() };
        file.for_each_linked(1 << 20, |linked| {
            if let Linked::Record(record) = linked
                && record.keyspace == keyspace.id
            {
                let hash = keyspace.hasher.hash(record.item.item.key);
                found.add(hash.high(), record.address.offset() as u32, record.item.item.key);
            }
            Ok(())
        })?;
        let mut counts = ReferenceCounts::default();
        for offset in found.offsets() {
            if let Some(item) = item_at(bytes, offset) {
                counts.remove(&item);
            }
        }
        Ok((found, counts))
    }

    fn offsets(&self) -> impl Iterator<Item = u32> {
        self.offsets.values().copied().chain(self.others.iter().copied())
    }

    /// Adds the record of a key, which replaces an older one.
    fn add(&mut self, hash: u64, offset: u32, key: &[u8]) {
        let bytes = self.bytes;
        let is_key = |offset: u32| item_at(bytes, offset).is_some_and(|item| item.key == key);
        match self.offsets.entry(hash) {
            Entry::Vacant(place) => drop(place.insert(offset)),
            Entry::Occupied(mut place) if is_key(*place.get()) => drop(place.insert(offset)),
            Entry::Occupied(_) => {
                self.others.retain(|&other| !is_key(other));
                self.others.push(offset);
            }
        }
    }

    /// Removes a key.
    fn remove(&mut self, hash: u64, key: &[u8]) {
        let bytes = self.bytes;
        let is_key = |offset: u32| item_at(bytes, offset).is_some_and(|item| item.key == key);
        if let Some(&offset) = self.offsets.get(&hash) {
            if is_key(offset) {
                self.offsets.remove(&hash);
            } else {
                self.others.retain(|&other| !is_key(other));
            }
        }
    }

    /// Removes the keys that have records in files younger than `searched`.
    fn drop_overwritten(
        &mut self,
        shared: &Shared,
        keyspace: &KeyspaceShared,
        chain: &Chain,
        searched: SegmentId,
    ) -> Result<()> {
        let read_bytes = shared.memory.budget().read_bytes;
        for file in chain.files.iter().filter(|file| file.segment > searched) {
            shared.check_open()?;
            file.for_each_linked(read_bytes, |linked| {
                if let Linked::Record(record) = linked
                    && record.keyspace == keyspace.id
                {
                    let key = record.item.item.key;
                    self.remove(keyspace.hasher.hash(key).high(), key);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Appends what is live to the log. Returns whether all is done: not if a segment has become a file meanwhile that
    /// was not searched.
    fn move_all(&mut self, shared: &Shared, keyspace: &KeyspaceShared, searched: SegmentId) -> Result<bool> {
        let offsets: Vec<u32> = {
            let mut offsets: Vec<u32> = self.offsets().collect();
            offsets.sort_unstable();
            offsets
        };
        for offset in offsets {
            shared.check_refusal()?;
            let Some(item) = item_at(self.bytes, offset) else { continue };
            let hash = keyspace.hasher.hash(item.key);
            loop {
                let version = keyspace.version.load_full();
                let newest = version.chain.as_ref().and_then(|chain| chain.files.last());
                let is_searched = newest.is_some_and(|file| {
                    file.segment <= searched || shared.planted_bugs.has(PlantedRace::MoveUnsearched)
                });
                if !is_searched {
                    return Ok(false);
                }
                // A close, a clear or a change of another kind begins an epoch, and the witness proves nothing.
                let witness = Witness::of(&version, hash, item.key)?;
                if keyspace.update_barriers.wait(hash) {
                    continue;
                }
                let mut stores = version.log_stores.iter();
                if stores.try_fold(false, |found, store| {
                    Ok::<_, crate::Error>(found || store.find(store.shard(hash), hash, item.key)?.is_some())
                })? {
                    break;
                }
                let is_live = Moment::Now(shared).is_live(&item);
                let has_older = version.body.items() > 0;
                if !is_live && !has_older {
                    // Nothing older is in the log, and nothing below it.
                    break;
                }
                let moved = if is_live { item } else { Item::tombstone(item.key) };
                let pieces = match moved.kind {
                    ItemKind::Reference => Reference::all_of(&moved),
                    _ => Default::default(),
                };
                let kept = KeptPieces::remember(shared, pieces);
                let witness =
                    Some(witness).filter(|_| !shared.planted_bugs.has(PlantedRace::MoveWithoutWitness));
                if write_item(shared, keyspace, hash, &moved, witness)?.is_some() {
                    kept.commit();
                    let bytes = moved.encoded_len();
                    shared.counters.chained_bytes_moved.fetch_add(bytes as u64, Ordering::Relaxed);
                    if let Some(chain) = &version.chain {
                        chain.directory.passes.note_moved(bytes + RECORD_BYTES);
                    }
                    break;
                }
            }
            self.remove(hash.high(), item.key);
        }
        Ok(true)
    }
}

/// The item of the record at `offset` of a segment.
fn item_at(bytes: &[u8], offset: u32) -> Option<Item<'_>> {
    match record::decode(0, bytes.get(offset as usize..)?, false) {
        Parsed::Record(Record::Item { item, .. }, _) => Some(item),
        _ => None,
    }
}

/// Removes the oldest segment of a keyspace, in which nothing is live.
fn drop_oldest(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    victim: &Arc<ChainFile>,
    counts: ReferenceCounts,
) -> Result<bool> {
    // No clear, and no conversion between the manifest's record and the version.
    let _no_conversion = shared.convert_lock.lock().expect("no panic while held");
    let before = keyspace.version.load_full();
    if before.chain.as_ref().is_none_or(|chain| !has_oldest(chain, victim)) {
        return Ok(true);
    }
    // The items that were moved must be as durable as they were.
    if !shared.planted_bugs.has(PlantedRace::DropWithoutSync) {
        shared.log.commit_all()?;
    }
    let mut edits = vec![Edit::DropChained { keyspace: keyspace.id, segment: victim.segment }];
    edits.extend(counts.edits(keyspace.id));
    shared.append_edits(&edits)?;
    keyspace.update_version(|version| {
        let mut next = version.clone();
        if let Some(chain) = &version.chain {
            next.chain = Some(Arc::new(chain.without_oldest()));
            next.blobs = version.blobs.with_counts(&counts);
        }
        next
    });
    shared.blobs.count_losses(&counts);
    clear_chains(shared, keyspace);
    shared.drop_chain_files(&before);
    shared.counters.chained_segments_collected.fetch_add(1, Ordering::Relaxed);
    Ok(true)
}
