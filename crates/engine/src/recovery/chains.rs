//! The chains of an opened database: their files, and their directories, which are made from the records.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_base::{Corruption, KeyspaceId, SegmentId};

use alluvium_model::{ChainedDirectory, ChainedSpec};

use super::replay::Replayed;
use super::segments::SegmentFile;
use crate::chained::{Chain, ChainFile, Directory, Linked, for_each_linked};
use crate::error::{Error, IoContext, Result};
use crate::level::Reclaimer;
use crate::log::{LogStore, Slots};
use crate::manifest::{ChainedSegment, DatabaseState, KeyspaceState};

/// The files of segments that stay, by number.
pub(super) type ChainFiles = BTreeMap<SegmentId, Arc<ChainFile>>;

/// The files of segments that stay, which are among those of `converted` ones.
///
/// # Errors
/// [`Error::MissingFile`] if the manifest names one that does not exist.
pub(super) fn files(
    state: &DatabaseState,
    converted: &[SegmentFile],
    reclaimer: &Arc<Reclaimer>,
) -> Result<ChainFiles> {
    let mut needed = BTreeMap::new();
    for keyspace in state.keyspaces.values() {
        needed.extend(keyspace.chained.iter().map(|(&id, &segment)| (id, segment)));
    }
    let mut files = ChainFiles::new();
    for found in converted {
        let id = found.header.id;
        let segment = needed.get(&id).filter(|segment| segment.seed == found.header.seed);
        let chain_file = |segment: &ChainedSegment| {
            ChainFile::new(id, segment.seed, segment.bytes, found.file.clone(), reclaimer)
        };
        files.extend(segment.map(|segment| (id, chain_file(segment))));
    }
    match needed.keys().find(|id| !files.contains_key(id)) {
        Some(id) => Err(Error::MissingFile { file: format!("of log segment {id}") }),
        None => check_lengths(&files).map(|()| files),
    }
}

/// The chains of a keyspace, and the number of slots of its regions. `None` if it has none and its plan demands none.
///
/// Reads all its segments that stay.
pub(super) fn open(
    id: KeyspaceId,
    state: &KeyspaceState,
    files: &ChainFiles,
    replayed: &Replayed,
    (expected_items, read_bytes): (u64, usize),
) -> Result<Option<(Chain, u64)>> {
    let stores = replayed.stores.get(&id).map(Vec::as_slice).unwrap_or_default();
    let linked: Vec<&Arc<LogStore>> = stores.iter().filter(|store| store.linked().is_some()).collect();
    let planned = state.body.plan.plan.log.chained;
    if planned.is_none() && state.chained.is_empty() && linked.is_empty() {
        return Ok(None);
    }
    let before = || state.body.plan.before.as_ref()?.log.chained;
    let spec = planned.or_else(before).unwrap_or_else(|| ChainedSpec::of_length(10.0));
    let mut directory: Option<(Directory, u64)> = None;
    let mut replay = |found: Linked<'_>| {
        match found {
            Linked::Slots { keyspace, slots: Slots { number, are_two } } if keyspace == id => {
                let begun = || (Directory::new(id, of_kind(spec, are_two), number), number);
                let known = directory.get_or_insert_with(begun);
                known.1 = known.1.max(number);
            }
            Linked::Record(record) if record.keyspace == id => {
                if let Some((directory, slots)) = &directory {
                    let hash = state.hasher.hash(record.item.item.key);
                    let mut region = directory.lock(hash);
                    region.grow_to(*slots);
                    region.replay(hash, &record.link, record.address);
                    directory.sample.note(hash, &record.item.item, record.item.bytes.len() + 8);
                }
            }
            Linked::Slots { .. } | Linked::Record(_) => {}
        }
        Ok(())
    };
    let own: Vec<_> = state.chained.keys().filter_map(|segment| files.get(segment).cloned()).collect();
    for file in &own {
        file.for_each_linked(read_bytes, &mut replay)?;
    }
    for store in linked {
        let segment = &store.segment;
        let bytes = segment.slice(0..segment.published()).unwrap_or_default();
        for_each_linked(segment.id, segment.seed, bytes, &mut replay)?;
    }
    let (directory, slots) = directory.unwrap_or_else(|| {
        let slots = Directory::slots_for(&spec, expected_items);
        (Directory::new(id, spec, slots), slots)
    });
    // What is garbage already may be collected.
    let newest = own.last().map_or(SegmentId::default(), |file| file.segment.next());
    directory.passes.begin(newest);
    Ok(Some((Chain { directory: Arc::new(directory), files: own }, slots)))
}

/// A plan of chains for a directory in which a key has one slot, or two.
fn of_kind(spec: ChainedSpec, are_two: bool) -> ChainedSpec {
    let directory = match (spec.directory, are_two) {
        (_, false) => ChainedDirectory::Base,
        (ChainedDirectory::Base, true) => ChainedDirectory::default(),
        (directory, true) => directory,
    };
    ChainedSpec { directory, ..spec }
}

/// Refuses files that are shorter than the manifest says.
fn check_lengths(files: &ChainFiles) -> Result<()> {
    for file in files.values() {
        let len = file.file.len().context(|| format!("measuring {}", file.name()))?;
        if len < file.bytes {
            let expected = format!("a log segment of {} bytes", file.bytes);
            return Err(Corruption::new(file.name(), len, expected, "its end").into());
        }
    }
    Ok(())
}
