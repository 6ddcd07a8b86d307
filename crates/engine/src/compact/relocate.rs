//! Collection of chained logs: what is live in the oldest segment is appended to the log again, and the segment is
//! removed (SkimpyStash, SIGMOD 2011, §4.6).
//!
//! A record is live if no younger one of its key is in the log. That is found out by reading the younger segments from
//! one end to the other, once for the whole segment. The paper walks the chain of each record, which takes a random
//! read for each older record; and since no pointer can be changed in place, it moves whole chains. Here a link into a
//! segment that is gone ends a chain, so that only live records are moved: of a log with a share g of garbage, fewer
//! than 1 − g, because the oldest segment has more garbage than the others.
//!
//! If segments are small in relation to the log, several share a pass over the younger ones: as many as the largest
//! segment has bytes, and at most an eighth of the log.
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
use crate::core::{KeptPieces, KeyspaceShared, Moment, Shared, Witness, write_item_in};
use crate::error::{Error, IoContext, Result};
use crate::item::{Item, ItemKind, Link};
use crate::level::Version;
use crate::log::record::{self, Parsed, Record};
use crate::manifest::Edit;
use crate::planted_race::PlantedRace;

/// Approximate bytes of a record beside its item: checksum, tag and link.
const RECORD_BYTES: usize = 12;
/// A segment is collected only if the log has at least this number beside it.
const YOUNGER_MIN: usize = 1;
/// Segments of the log for each that shares a pass.
const SEGMENTS_PER_VICTIM: usize = 8;

/// A record in one of the segments that are collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// Number of the segment, from the oldest on.
    victim: u32,
    offset: u32,
}

/// The newest records of all keys in the segments that are collected, by the leading halves of their hashes, as far as
/// they may be live.
struct Candidates<'a> {
    bytes: &'a [AlignedBuffer],
    places: HashMap<u64, Place>,
    /// Those whose entry another key has.
    others: Vec<Place>,
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

/// Collects the oldest segments of a keyspace with too much garbage; returns whether there was one.
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

/// Moves what is live in the oldest segments of a keyspace, and removes these.
fn collect_oldest(shared: &Shared, keyspace: &KeyspaceShared) -> Result<bool> {
    let version = keyspace.version.load_full();
    let Some(chain) = version.chain.clone() else { return Ok(false) };
    let victims = victims(&chain, shared.log.active_segment().capacity());
    let Some(oldest) = victims.first() else { return Ok(false) };
    if !chain.directory.passes.covers(oldest.segment) {
        chain.directory.passes.begin(shared.log.active_segment().id);
    }
    let _held = shared.hold_buffers(victims.iter().map(|victim| victim.bytes).sum());
    let bytes = victims.iter().map(|victim| read_whole(victim)).collect::<Result<Vec<_>>>()?;
    let mut candidates = Candidates { bytes: &bytes, places: HashMap::new(), others: Vec::new() };
    let counts = candidates.add_all(victims, keyspace)?;
    // Up to this segment, younger files were searched.
    let mut searched = victims.last().map_or(oldest.segment, |youngest| youngest.segment);
    loop {
        let version = keyspace.version.load_full();
        let still = version.chain.as_ref().filter(|chain| has_oldest(chain, oldest));
        // The keyspace was cleared or dropped meanwhile.
        let Some(chain) = still else { return Ok(true) };
        candidates.drop_overwritten(shared, keyspace, chain, searched)?;
        searched = chain.files.last().map_or(searched, |file| file.segment);
        if candidates.move_all(shared, keyspace, searched)? {
            break;
        }
    }
    for (victim, counts) in victims.iter().zip(counts) {
        // One that became a run meanwhile may have the key of a tombstone that was not moved from the next.
        if !drop_oldest(shared, keyspace, victim, counts)? {
            break;
        }
    }
    Ok(true)
}

/// The oldest files, which are collected together: one, or several that have at most this number of bytes.
fn victims(chain: &Chain, bytes_max: u64) -> &[Arc<ChainFile>] {
    let (mut count, mut bytes) = (0, 0);
    for file in &chain.files[..chain.files.len() / SEGMENTS_PER_VICTIM] {
        bytes += file.bytes;
        if bytes > bytes_max {
            break;
        }
        count += 1;
    }
    &chain.files[..count.max(1).min(chain.files.len())]
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

impl Candidates<'_> {
    /// Adds all keys of the keyspace in the victims. Returns what the records of each count as references to blobs.
    fn add_all(
        &mut self,
        victims: &[Arc<ChainFile>],
        keyspace: &KeyspaceShared,
    ) -> Result<Vec<ReferenceCounts>> {
        let mut all_counts = Vec::with_capacity(victims.len());
        for (victim, file) in (0..).zip(victims) {
            file.for_each_linked(1 << 20, |linked| {
                if let Linked::Record(record) = linked
                    && record.keyspace == keyspace.id
                {
                    let key = record.item.item.key;
                    let place = Place { victim, offset: record.address.offset() as u32 };
                    self.add(keyspace.hasher.hash(key).high(), place, key);
                }
                Ok(())
            })?;
            // Younger victims have not replaced any of them yet.
            let mut counts = ReferenceCounts::default();
            for place in self.places().filter(|place| place.victim == victim) {
                if let Some(item) = item_at(self.bytes, place) {
                    counts.remove(&item);
                }
            }
            all_counts.push(counts);
        }
        Ok(all_counts)
    }

    /// In which of the key's two chains a record is.
    fn is_in_second(&self, place: Place) -> Option<bool> {
        let bytes = self.bytes.get(place.victim as usize)?.get(place.offset as usize..)?;
        match record::decode(0, bytes, false) {
            Parsed::Record(Record::Item { item_start, .. }, _) => {
                Link::of(bytes.get(item_start..)?).map(|link| link.is_in_second)
            }
            _ => None,
        }
    }

    fn places(&self) -> impl Iterator<Item = Place> {
        self.places.values().copied().chain(self.others.iter().copied())
    }

    /// Adds the record of a key, which replaces an older one.
    fn add(&mut self, hash: u64, place: Place, key: &[u8]) {
        let bytes = self.bytes;
        let is_key = |place: Place| item_at(bytes, place).is_some_and(|item| item.key == key);
        match self.places.entry(hash) {
            Entry::Vacant(entry) => drop(entry.insert(place)),
            Entry::Occupied(mut entry) if is_key(*entry.get()) => drop(entry.insert(place)),
            Entry::Occupied(_) => {
                self.others.retain(|&other| !is_key(other));
                self.others.push(place);
            }
        }
    }

    /// Removes a key.
    fn remove(&mut self, hash: u64, key: &[u8]) {
        let bytes = self.bytes;
        let is_key = |place: Place| item_at(bytes, place).is_some_and(|item| item.key == key);
        if let Some(&place) = self.places.get(&hash) {
            if is_key(place) {
                self.places.remove(&hash);
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
        // Where chains were written anew, the youngest files have all keys.
        for file in chain.files.iter().rev().take_while(|file| file.segment > searched) {
            if self.places().next().is_none() {
                break;
            }
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
        let mut places: Vec<Place> = self.places().collect();
        places.sort_unstable();
        for place in places {
            shared.check_refusal()?;
            let Some(item) = item_at(self.bytes, place) else { continue };
            let hash = keyspace.hasher.hash(item.key);
            loop {
                // The version of a dormant keyspace does not show its tables.
                let is_dormant = keyspace.is_dormant();
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
                let has_older = is_dormant || version.body.may_have_items();
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
                // It stays in its chain, which need not be looked for.
                let place = (witness, self.is_in_second(place));
                if write_item_in(shared, keyspace, hash, &moved, place)?.is_some() {
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

/// The item of a record in the segments with this content.
fn item_at(bytes: &[AlignedBuffer], place: Place) -> Option<Item<'_>> {
    match record::decode(0, bytes.get(place.victim as usize)?.get(place.offset as usize..)?, false) {
        Parsed::Record(Record::Item { item, .. }, _) => Some(item),
        _ => None,
    }
}

/// Removes the oldest segment of a keyspace, in which nothing is live. Returns whether it still was the oldest.
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
        return Ok(false);
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
