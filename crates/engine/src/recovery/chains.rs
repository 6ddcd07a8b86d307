//! The chains of an opened database: their files, and their directories, which are read, or made from the records.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;

use alluvium_base::{Corruption, KeyspaceId, SegmentId};
use alluvium_io::{OpenMode, Storage};
use alluvium_model::{ChainedDirectory, ChainedSpec};

use super::replay::Replayed;
use super::segments::SegmentFile;
use crate::chained::{
    Address, Chain, ChainFile, Directory, DirectoryFile, Linked, Opened, ReplayReason, SavedFile,
    for_each_linked,
};
use crate::core::KeyspaceShared;
use crate::error::{Error, IoContext, Result};
use crate::file_names::directory_file_name;
use crate::level::Reclaimer;
use crate::log::{FileUser, LogStore, Slots};
use crate::manifest::{ChainedSegment, DatabaseState, KeyspaceState, SavedDirectory};

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
            found.users.add(FileUser::Chains);
            let content = (segment.seed, segment.bytes);
            ChainFile::new(id, content, (found.file.clone(), found.users.clone()), reclaimer)
        };
        files.extend(segment.map(|segment| (id, chain_file(segment))));
    }
    match needed.keys().find(|id| !files.contains_key(id)) {
        Some(id) => Err(Error::MissingFile { file: format!("of log segment {id}") }),
        None => check_lengths(&files).map(|()| files),
    }
}

/// What an opening takes from the database, and from its settings.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    pub storage: &'a dyn Storage,
    pub files: &'a ChainFiles,
    pub replayed: &'a Replayed,
    /// The segment to which records are appended next.
    pub newest: SegmentId,
    pub expected_items: u64,
    pub read_bytes: usize,
}

/// The chains of a keyspace, and the number of slots of its regions. `None` if it has none and its plan demands none.
///
/// Reads the directory, and the segments that stay and may have records that it lacks. If no directory is usable, reads
/// all segments that stay: they have everything.
pub(super) fn open(
    id: KeyspaceId,
    state: &KeyspaceState,
    sources: &Sources<'_>,
) -> Result<Option<(Chain, u64)>> {
    let Sources { files, replayed, newest, .. } = *sources;
    let stores = replayed.stores.get(&id).map(Vec::as_slice).unwrap_or_default();
    let linked: Vec<&Arc<LogStore>> = stores.iter().filter(|store| store.linked().is_some()).collect();
    let planned = state.body.plan.plan.log.chained;
    if planned.is_none() && state.chained.is_empty() && linked.is_empty() {
        return Ok(None);
    }
    let before = || state.body.plan.before.as_ref()?.log.chained;
    let spec = planned.or_else(before).unwrap_or_else(|| ChainedSpec::of_length(10.0));
    let own: Vec<_> = state.chained.keys().filter_map(|segment| files.get(segment).cloned()).collect();
    let oldest = own.first().map(|file| file.segment).or(linked.first().map(|store| store.segment.id));
    let oldest = oldest.map_or(Address::NEVER, Address::start_of);
    let mut opened = Opened::default();
    let saved = if own.is_empty() { Ok(None) } else { read_saved(id, state, spec, sources).map(Some) };
    let saved = saved.unwrap_or_else(|reason| {
        opened.reason = Some(reason);
        None
    });
    let from = saved.as_ref().and_then(|directory| directory.saving.file()).map(|file| file.from);
    let mut directory = saved.map(|directory| {
        // Resolved before the log continues: pointers that are too old would lead elsewhere then.
        directory.start_at(oldest);
        directory.clear_before(oldest);
        directory.widen_if_needed(oldest, newest);
        // Regions grow only where they grew before: a chain that was written anew ended one of as many slots.
        (directory, 0)
    });
    let mut replay = |found: Linked<'_>| {
        match found {
            Linked::Slots { keyspace, slots: Slots { number, are_two } } if keyspace == id => {
                let begun = || {
                    let directory = Directory::new(id, of_kind(spec, are_two), number);
                    directory.widen_if_needed(oldest, newest);
                    (directory, number)
                };
                let known = directory.get_or_insert_with(begun);
                known.1 = known.1.max(number);
            }
            Linked::Record(record) if record.keyspace == id => {
                if let Some((directory, slots)) = &directory {
                    let hash = state.hasher.hash(record.item.item.key);
                    let mut region = directory.lock(hash);
                    region.grow_to(*slots);
                    region.replay(hash, &record.link, record.address);
                    let bytes = record.item.bytes.len() + 8;
                    directory.sample.note(hash, &record.item.item, bytes);
                    directory.passes.note_appended(bytes);
                }
            }
            Linked::Slots { .. } | Linked::Record(_) => {}
        }
        Ok(())
    };
    for file in own.iter().filter(|file| from.is_none_or(|from| from <= file.segment)) {
        file.for_each_linked(sources.read_bytes, &mut replay)?;
        opened.segments_replayed += 1;
    }
    for store in linked {
        let segment = &store.segment;
        let bytes = segment.slice(0..segment.published()).unwrap_or_default();
        for_each_linked(segment.id, segment.seed, bytes, &mut replay)?;
    }
    let (mut directory, noted) = directory.unwrap_or_else(|| {
        let slots = Directory::slots_for(&spec, sources.expected_items);
        (Directory::new(id, spec, slots), slots)
    });
    let slots = noted.max(directory.slots_max());
    directory.opened = opened;
    // What is garbage already may be collected.
    let newest = own.last().map_or(SegmentId::default(), |file| file.segment.next());
    directory.passes.begin(newest);
    Ok(Some((Chain { directory: Arc::new(directory), files: own }, slots)))
}

/// The directory in the file that the manifest names, or why there is none that can be used.
fn read_saved(
    id: KeyspaceId,
    state: &KeyspaceState,
    spec: ChainedSpec,
    sources: &Sources<'_>,
) -> std::result::Result<Directory, ReplayReason> {
    let Some(SavedDirectory { file: number, from, .. }) = state.directory else {
        return Err(ReplayReason::NotSaved);
    };
    if !sources.replayed.damage.is_empty() {
        return Err(ReplayReason::DamagedLog);
    }
    let file = sources.storage.open(&directory_file_name(number), OpenMode::Read);
    let file = file.map_err(|error| match error.kind() {
        ErrorKind::NotFound => ReplayReason::Missing,
        _ => ReplayReason::Damaged,
    })?;
    let named = DirectoryFile { number, keyspace: id, from };
    let read = named.read(&*file, |are_two| of_kind(spec, are_two)).map_err(|_| ReplayReason::Damaged)?;
    let directory = read.ok_or(ReplayReason::OtherPlan)?;
    directory.saving.set(Some(SavedFile { number, from, appended: 0 }));
    Ok(directory)
}

/// Declares the files with directories obsolete that the opening did not use; returns the names of those that exist.
pub(super) fn give_up_unused(state: &mut DatabaseState, keyspaces: &[Arc<KeyspaceShared>]) -> Vec<String> {
    let mut names = Vec::new();
    for keyspace in keyspaces {
        let Some(state) = state.keyspaces.get_mut(&keyspace.id) else { continue };
        let version = keyspace.version.load();
        let directory = version.chain.as_ref().map(|chain| &chain.directory);
        if directory.is_some_and(|directory| directory.saving.file().is_some()) {
            continue;
        }
        let is_missing = |directory: &Arc<Directory>| directory.opened.reason == Some(ReplayReason::Missing);
        let unused = state.directory.take().filter(|_| !directory.is_some_and(is_missing));
        names.extend(unused.map(|saved| directory_file_name(saved.file)));
    }
    names
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
