//! Replaying the log: segments become frozen log stores again, to be converted like any others.
//!
//! The log is one sequence of records over the segments. It ends at the first record that is not sound: what follows
//! was never acknowledged as durable, since a sync of anything is a sync of everything before. Where an earlier
//! recovery found such an end, the manifest says so, and the sequence goes on in the next segment.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_base::Corruption;
use alluvium_io::{AlignedBuffer, File, OpenMode, Storage};

use crate::blob::{BlobFiles, Reference, ReferenceCounts};
use crate::db::new_log_store;
use crate::error::{IoContext, Result};
use crate::item::Item;
use crate::log::record::{self, Parsed, Record};
use crate::log::segment::{self, BLOCK, Recycler};
use crate::log::{LogStore, Segment};
use crate::manifest::DatabaseState;
use crate::options::PlantedBugs;

/// Bytes read at a time.
const READ_BYTES: usize = 1 << 20;

/// What the log held.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    /// Old to young.
    pub segments: Vec<Arc<Segment>>,
    /// By keyspace, old to young.
    pub stores: BTreeMap<u32, Vec<Arc<LogStore>>>,
    /// What the log stores refer to in blob files.
    pub references: ReferenceCounts,
}

struct Found {
    file: Arc<dyn File>,
    seed: u64,
}

/// Replays the log after its last converted position; records in `state` where it ends. Files that hold nothing of
/// it go to the recycler.
pub(super) fn replay(
    storage: &dyn Storage,
    recycler: &Arc<Recycler>,
    state: &mut DatabaseState,
    blobs: &BlobFiles,
    planted_bugs: PlantedBugs,
) -> Result<Replayed> {
    let check = !planted_bugs.ignore_record_checksum;
    let mut found = find_segments(storage, recycler, state)?;
    let mut replayed = Replayed::default();
    let mut id = state.log_start;
    loop {
        let known_end = state.log_ends.get(&id).copied();
        let segment = found.remove(&id);
        match (segment, known_end) {
            // An earlier recovery passed this number over; a file that still bears it is stale.
            (stale, Some(0)) => stale.into_iter().for_each(|stale| recycler.add(stale.file)),
            (Some(Found { file, seed }), known_end) => {
                let content = read_content(&*file, seed, known_end, check, blobs)?;
                let end = content.bytes.len() as u64;
                if let Some(known_end) = known_end.filter(|&known_end| known_end != end) {
                    let expected = format!("sound records up to offset {known_end}");
                    return Err(Corruption::new(file.name(), end, expected, "an unsound one").into());
                }
                let segment = Segment::recovered(file, id, seed, &content.bytes, recycler)?;
                index(&segment, state, &mut replayed, check)?;
                replayed.segments.push(segment);
                if !content.sealed && known_end.is_none() {
                    state.log_ends.insert(id, end);
                    id += 1;
                    break;
                }
            }
            (None, Some(known_end)) => {
                let expected = format!("a file that holds segment {id} up to offset {known_end}");
                return Err(Corruption::new("the log", 0, expected, "none").into());
            }
            (None, None) => break,
        }
        id += 1;
    }
    // The log has ended: segments with higher numbers hold nothing that was acknowledged as durable. The next segment
    // gets a number above theirs, and the numbers in between are passed over from now on.
    let above = found.keys().next_back().map_or(0, |last| last + 1);
    found.into_values().for_each(|stale| recycler.add(stale.file));
    state.next_segment = state.next_segment.max(id).max(above);
    for passed in id..state.next_segment {
        state.log_ends.insert(passed, 0);
    }
    Ok(replayed)
}

/// Opens all log files; those that belong to segments before the log's start, or to none, go to the recycler.
fn find_segments(
    storage: &dyn Storage,
    recycler: &Arc<Recycler>,
    state: &DatabaseState,
) -> Result<BTreeMap<u64, Found>> {
    let mut found = BTreeMap::new();
    for name in storage.list().context(|| "listing the database directory".to_owned())? {
        if !segment::is_file_name(&name) {
            continue;
        }
        recycler.note_name(&name);
        let file = storage.open(&name, OpenMode::Write).context(|| format!("opening {name}"))?;
        let mut block = AlignedBuffer::zeroed(BLOCK as usize);
        let read = file.read_at(&mut block, 0).context(|| format!("reading {name}"))?;
        match segment::parse_header(&name, &block[..read])? {
            Some((id, seed)) if id >= state.log_start => {
                found.insert(id, Found { file, seed });
            }
            _ => recycler.add(file),
        }
    }
    Ok(found)
}

struct Content {
    /// Header and sound records.
    bytes: Vec<u8>,
    sealed: bool,
}

/// Reads a segment's sound content, up to `known_end` if that is given.
///
/// A record counts only with the large items that it refers to. They were synced before it, so one that isn't sound in
/// a file that was still being written was never acknowledged as durable, no more than a torn record.
fn read_content(
    file: &dyn File,
    seed: u64,
    known_end: Option<u64>,
    check: bool,
    blobs: &BlobFiles,
) -> Result<Content> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut buffer = AlignedBuffer::zeroed(READ_BYTES);
    let mut at = BLOCK as usize;
    let mut ended = false;
    loop {
        let read = if ended {
            0
        } else {
            file.read_at(&mut buffer, bytes.len() as u64).context(|| format!("reading {}", file.name()))?
        };
        bytes.extend_from_slice(&buffer[..read]);
        ended |= read < READ_BYTES;
        if let Some(end) = known_end
            && bytes.len() as u64 >= end
        {
            bytes.truncate(end as usize);
            ended = true;
        }
        while at < bytes.len() {
            match record::decode(seed, &bytes[at..], check) {
                Parsed::Record(Record::Seal { .. }, len) => {
                    bytes.truncate(at + len);
                    return Ok(Content { bytes, sealed: true });
                }
                Parsed::Record(record, len) => {
                    if known_end.is_none() && !has_its_blobs(&record, blobs)? {
                        bytes.truncate(at);
                        return Ok(Content { bytes, sealed: false });
                    }
                    at += len;
                }
                Parsed::Incomplete if !ended => break,
                Parsed::Incomplete | Parsed::Invalid => {
                    bytes.truncate(at);
                    return Ok(Content { bytes, sealed: false });
                }
            }
        }
        if ended {
            bytes.truncate(at);
            return Ok(Content { bytes, sealed: false });
        }
    }
}

/// Whether the large items that a record refers to in files that were being written are sound.
fn has_its_blobs(record: &Record<'_>, blobs: &BlobFiles) -> Result<bool> {
    let is_sound = |item: &Item<'_>| {
        let mut references = Reference::all_of(item).into_iter();
        references.try_fold(true, |all, reference| Ok(all && super::blobs::is_sound(blobs, &reference)?))
    };
    match record {
        Record::Item { item, .. } => is_sound(item),
        Record::Batch(items) => {
            items.clone().map(|(_, item, _)| is_sound(&item)).try_fold(true, |all, next| Ok(all && next?))
        }
        Record::Seal { .. } => Ok(true),
    }
}

/// Indexes a segment's items for all keyspaces that count them.
fn index(segment: &Arc<Segment>, state: &DatabaseState, replayed: &mut Replayed, check: bool) -> Result<()> {
    let mut stores: BTreeMap<u32, LogStore> = BTreeMap::new();
    let mut apply = |keyspace: u32, item: &Item<'_>, offset: usize| -> Result<()> {
        // Records of keyspaces that were dropped or cleared since don't count.
        let Some(owner) = state.keyspaces.get(&keyspace).filter(|owner| owner.log_start <= segment.id) else {
            return Ok(());
        };
        let store = stores.entry(keyspace).or_insert_with(|| {
            // The number of shards is that of the newest run: the best guess at the size of the keyspace.
            let bits = owner.runs.last().map_or(0, |run| run.shard_bits);
            let items = crate::db::items_for_shard_bits(&owner.plan.plan, bits);
            new_log_store(&owner.plan.plan, owner.hasher, segment.clone(), items, 0, u64::MAX)
        });
        let hash = owner.hasher.hash(item.key);
        replayed.references.add(item);
        if let Some(replaced) = store.index_unbounded(hash, item.key, offset as u32)? {
            replayed.references.remove(&replaced);
        }
        Ok(())
    };
    let bytes = segment.slice(0..segment.published()).expect("published");
    let mut at = BLOCK as usize;
    while let Parsed::Record(record, len) = record::decode(segment.seed, &bytes[at.min(bytes.len())..], check)
    {
        match record {
            Record::Item { keyspace, item, item_start } => apply(keyspace, &item, at + item_start)?,
            Record::Batch(items) => {
                for (keyspace, item, item_start) in items {
                    apply(keyspace, &item, at + item_start)?;
                }
            }
            Record::Seal { .. } => break,
        }
        at += len;
    }
    for (keyspace, store) in stores {
        store.close();
        replayed.stores.entry(keyspace).or_default().push(Arc::new(store));
    }
    Ok(())
}
