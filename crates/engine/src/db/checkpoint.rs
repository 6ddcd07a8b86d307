//! Checkpoints: a copy of the database that is a database of its own.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use alluvium_base::{BlobId, SegmentId};
use alluvium_io::{AlignedBuffer, FileStorage, IoOptions, OpenMode, Storage};

use super::check_files::{check_files, check_segments};
use super::copy_target::CopyTarget;
use super::database::Db;
use super::snapshot::Snapshot;
use crate::chained::{ChainFile, DirectoryFile};
use crate::compact::convert;
use crate::core::{KeyspaceShared, Shared};
use crate::error::{IoContext, Result};
use crate::file_names::{blob_file_name, directory_file_name, table_file_name};
use crate::level::Version;
use crate::manifest::{ChainedSegment, DatabaseState, KeyspaceState, Manifest, SavedDirectory};
use crate::table::{OutputOptions, TRAILER_BYTES};

/// Number of bytes copied at a time. Pieces of zeros are skipped: they are holes in the source.
const COPY_BYTES: usize = 256 << 10;

/// The outcome of a checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Number of tables and blob files that share their bytes with the database.
    pub linked_tables: u64,
    /// Bytes of these files.
    pub linked_bytes: u64,
    /// Number of tables and blob files that were copied, because the directories are on different file systems.
    pub copied_tables: u64,
    /// Bytes copied.
    pub copied_bytes: u64,
}

/// Options for making a checkpoint.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointOptions {
    /// Whether to read and check all of the checkpoint before it counts as one. Default true. Costs a read of all
    /// tables and of the large items to which they refer, and a second read of tables that refer to some: as much time
    /// as [`Db::verify`] takes. Without it, a checkpoint by links takes milliseconds, and may be damaged.
    pub verify: bool,
}

impl Default for CheckpointOptions {
    fn default() -> Self {
        Self { verify: true }
    }
}

impl Db {
    /// Makes the directory `path`, which must be empty or missing, a database with the same content as this one has
    /// now, and checks it: see [`CheckpointOptions`].
    ///
    /// Files are linked if both directories are on one file system, which takes no space; otherwise they are copied.
    /// Writes continue meanwhile. Links keep the space of merged tables in use until both databases no longer need it.
    ///
    /// # Errors
    /// [`crate::Error::NotADatabase`] if the directory contains anything except the rest of an attempt that failed or
    /// was killed; [`crate::Error::Corruption`] if a file, which it names, is damaged. After an error the directory is
    /// empty, or contains only what the next attempt removes; it is never a database.
    pub fn checkpoint(&self, path: impl AsRef<Path>) -> Result<Checkpoint> {
        self.checkpoint_with(path, CheckpointOptions::default())
    }

    /// Like [`Db::checkpoint`], with options.
    ///
    /// # Errors
    /// As [`Db::checkpoint`].
    pub fn checkpoint_with(&self, path: impl AsRef<Path>, options: CheckpointOptions) -> Result<Checkpoint> {
        let path = path.as_ref();
        let destination = FileStorage::create(path, IoOptions::default())
            .context(|| format!("creating directory {}", path.display()))?;
        self.copy_into(Arc::new(destination), None, None, options)
    }

    /// Like [`Db::checkpoint`], into any storage.
    #[doc(hidden)]
    pub fn checkpoint_into(&self, destination: Arc<dyn Storage>) -> Result<Checkpoint> {
        self.copy_into(destination, None, None, CheckpointOptions::default())
    }

    /// Like [`Db::checkpoint_into`], but tables that cannot be linked are linked from `previous`, an earlier copy of
    /// the same database, if it has them.
    pub(super) fn copy_into(
        &self,
        destination: Arc<dyn Storage>,
        previous: Option<&dyn Storage>,
        origin: Option<Origin>,
        options: CheckpointOptions,
    ) -> Result<Checkpoint> {
        self.shared().check_failure()?;
        let target = CopyTarget::take(destination.clone(), "a checkpoint")?;
        let checkpoint = self.copy_files_into(destination, previous, origin, options)?;
        target.finish()?;
        Ok(checkpoint)
    }

    /// Like [`Db::copy_into`], into a directory that the caller has taken, and clears after an error.
    pub(super) fn copy_files_into(
        &self,
        destination: Arc<dyn Storage>,
        previous: Option<&dyn Storage>,
        origin: Option<Origin>,
        options: CheckpointOptions,
    ) -> Result<Checkpoint> {
        let shared = self.shared();
        let (snapshot, blob_sizes) = self.snapshot_in_tables()?;
        let versions: Vec<(&KeyspaceShared, Arc<Version>)> =
            snapshot.keyspaces.iter().map(|pinned| (&*pinned.keyspace, pinned.version.load())).collect();
        let mut state = checkpoint_state(shared, &versions, &blob_sizes);
        state.origin = origin.map(|origin| (origin.database, origin.taken_at_ms));
        let mut checkpoint = Checkpoint::default();
        let names = state.files().into_iter().map(table_file_name);
        let segments: BTreeMap<&str, &ChainFile> = versions
            .iter()
            .flat_map(|(_, version)| version.chain.iter().flat_map(|chain| &chain.files))
            .map(|file| (file.name(), &**file))
            .collect();
        let segment_names = segments.keys().map(|&name| name.to_owned());
        for name in names.chain(state.blobs.keys().copied().map(blob_file_name)).chain(segment_names) {
            // The database may be closed by now, and the files may belong to another opening.
            shared.check_open()?;
            let context = || format!("adding {name} to a checkpoint");
            let source = &**shared.directory_of(&name);
            let linked = destination.link_from(source, &name).context(context)?
                || match previous {
                    Some(previous) if is_same(source, previous, &name).context(context)? => {
                        destination.link_from(previous, &name).context(context)?
                    }
                    _ => false,
                };
            if linked {
                checkpoint.linked_tables += 1;
                let file = destination.open(&name, OpenMode::Read).context(context)?;
                checkpoint.linked_bytes += file.len().context(context)?;
            } else {
                checkpoint.copied_bytes += copy(source, &*destination, &name).context(context)?;
                checkpoint.copied_tables += 1;
            }
        }
        for (keyspace, version) in &versions {
            checkpoint.copied_bytes += copy_directory(shared, &*destination, keyspace, version, &mut state)?;
        }
        destination.sync_directory().context(|| "syncing the checkpoint's directory".to_owned())?;
        if options.verify {
            check_files(&destination, &state, &shared.settings.prefix_functions)?;
            check_segments(&destination, segments.into_values())?;
        }
        shared.check_open()?;
        Manifest::create(destination, 1, state)?.seal()?;
        Ok(checkpoint)
    }
}

impl Db {
    /// A snapshot without log, since a checkpoint has none, and the length of each blob file in it.
    fn snapshot_in_tables(&self) -> Result<(Snapshot, BTreeMap<BlobId, u64>)> {
        let shared = self.shared();
        loop {
            let snapshot = self.snapshot()?;
            // The checkpoint's blob files are finished: none grows through its link.
            shared.blobs.end_current(None);
            let versions = snapshot.keyspaces.iter().map(|pinned| pinned.version.load());
            let blob_sizes: BTreeMap<BlobId, u64> = versions
                .flat_map(|version| version.blobs.files.values().cloned().collect::<Vec<_>>())
                .map(|file| (file.id, file.size()))
                .collect();
            shared.blobs.sync().map_err(|error| shared.note_failure(error))?;
            let has_log =
                || snapshot.keyspaces.iter().any(|pinned| !pinned.version.load().log_stores.is_empty());
            while has_log() {
                if !convert(shared).map_err(|error| shared.note_failure(error))? {
                    break;
                }
            }
            if !has_log() {
                return Ok((snapshot, blob_sizes));
            }
            // If a keyspace was cleared or dropped meanwhile, its part of the snapshot is never converted. The next
            // snapshot is without it.
        }
    }
}

/// Which database a backup is of, and when it was taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    pub database: u64,
    pub taken_at_ms: u64,
}

/// Whether both storages have the same table or blob file under this name: the same length and the same last bytes. The
/// last bytes of a table include its number, its seed and a checksum of its whole directory.
fn is_same(one: &dyn Storage, other: &dyn Storage, name: &str) -> std::io::Result<bool> {
    let end = |storage: &dyn Storage| -> std::io::Result<(u64, Vec<u8>)> {
        let file = storage.open(name, OpenMode::Read)?;
        let len = file.len()?;
        let mut bytes = vec![0; TRAILER_BYTES];
        let read = file.read_at(&mut bytes, len.saturating_sub(TRAILER_BYTES as u64))?;
        bytes.truncate(read);
        Ok((len, bytes))
    };
    match end(other) {
        Ok(found) => Ok(found == end(one)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn checkpoint_state(
    shared: &Shared,
    versions: &[(&KeyspaceShared, Arc<Version>)],
    blob_sizes: &BTreeMap<BlobId, u64>,
) -> DatabaseState {
    // A seed of its own: the two databases diverge, and neither may take the other's log for its own.
    let seed = shared.next_random() | 1;
    // Segment numbers continue, so that the numbers in the existing tables order them before future ones.
    let next_segment = shared.log.active_segment().id;
    let mut state = DatabaseState { seed, next_segment, log_start: next_segment, ..DatabaseState::default() };
    for (keyspace, version) in versions {
        for number in version.blobs.live.keys() {
            state.blobs.insert(*number, blob_sizes.get(number).copied());
        }
        let keyspace_state = KeyspaceState {
            name: keyspace.name.clone(),
            hasher: keyspace.hasher,
            log_start: SegmentId(0),
            body: version.body.state(),
            chained: chained_segments(version),
            directory: None,
            blob_references: version.blobs.live.clone(),
        };
        state.next_keyspace = state.next_keyspace.max(keyspace.id.next());
        for file in version.body.files() {
            let items = file.table.sections().iter().map(|section| section.item_count()).sum();
            state.note_items(file.id, items);
        }
        state.keyspaces.insert(keyspace.id, keyspace_state);
    }
    let last =
        state.files().last().map(|table| table.0).max(state.blobs.keys().next_back().map(|blob| blob.0));
    state.next_file = last.map_or(1, |last| last + 1);
    state
}

/// The segments of a version's chains.
fn chained_segments(version: &Version) -> BTreeMap<SegmentId, ChainedSegment> {
    let files = version.chain.iter().flat_map(|chain| &chain.files);
    files.map(|file| (file.segment, ChainedSegment { seed: file.seed, bytes: file.bytes })).collect()
}

/// Writes the directory of a version's chains to the checkpoint; returns the bytes written. The file of the database
/// cannot be linked, since it may be younger than the version.
fn copy_directory(
    shared: &Shared,
    destination: &dyn Storage,
    keyspace: &KeyspaceShared,
    version: &Version,
    state: &mut DatabaseState,
) -> Result<u64> {
    let Some(chain) = version.chain.as_ref().filter(|chain| !chain.files.is_empty()) else { return Ok(0) };
    let (file, from) = (state.next_file, state.next_segment);
    state.next_file += 1;
    let current = keyspace.version.load_full();
    // What is live has hardly changed since the snapshot, which has no sample.
    let sampled = current.chain.as_ref().unwrap_or(chain);
    let sources = (&*chain.directory, &sampled.directory.sample);
    let options = OutputOptions { write_bytes: shared.memory.budget().write_bytes, leave_bytes: 0 };
    let named = DirectoryFile { number: file, keyspace: keyspace.id, from };
    let written = named.write(destination, &directory_file_name(file), sources, options)?;
    if let Some(state) = state.keyspaces.get_mut(&keyspace.id) {
        state.directory = Some(SavedDirectory { file, from, synced: Default::default() });
    }
    Ok(written)
}

/// Copies a file and makes its content survive a power cut; returns the bytes written.
pub(super) fn copy(source: &dyn Storage, destination: &dyn Storage, name: &str) -> std::io::Result<u64> {
    let source = source.open(name, OpenMode::Read)?;
    let target = destination.open(name, OpenMode::Create)?;
    let len = source.len()?;
    let mut buffer = AlignedBuffer::with_len(COPY_BYTES);
    let (mut offset, mut written) = (0, 0);
    while offset < len {
        let read = source.read_at(&mut buffer, offset)?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let bytes = &buffer[..read];
        if bytes.iter().any(|&byte| byte != 0) {
            target.write_at(bytes, offset)?;
            written += read as u64;
        }
        offset += read as u64;
    }
    target.set_len(len)?;
    target.sync()?;
    Ok(written)
}
