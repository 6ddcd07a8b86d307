//! [`Built`]: a committed build, and what it is as a database.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use alluvium_base::{BlobId, HashRange, KeyspaceId, SegmentId};
use alluvium_io::{ManyDirectories, ReadOnlyStorage, Storage};

use super::job::StoredJob;
use super::manifest::{BUILD, BuildManifest};
use super::mismatch::BuildPart;
use super::placement::{first_file, shard_range};
use super::shard_manifest::{SHARD, ShardManifest};
use super::shards::{open, open_one_of};
use crate::error::Result;
use crate::file_names::{blob_file_name, table_file_name};
use crate::manifest::{
    CURRENT, DatabaseState, KeyspaceState, LevelsState, Manifest, PlanSource, PlanState, read_current,
};

/// The keyspace of each shard, and of what they make up.
const KEYSPACE: KeyspaceId = KeyspaceId(0);

/// A shard and its files.
pub(crate) struct OpenedShard {
    /// The directory, for errors.
    pub directory: String,
    pub storage: Arc<dyn Storage>,
    /// What its own manifest says.
    pub state: DatabaseState,
}

/// A committed build.
pub(crate) struct Built {
    pub job: StoredJob,
    /// In order.
    pub shards: Vec<OpenedShard>,
}

impl Built {
    /// Opens the build in the directory `root`, and checks that it is complete: manifests by their checksums, other
    /// files by their lengths or, with `checksums`, by theirs, too.
    ///
    /// # Errors
    /// [`crate::Error::Build`] if something does not fit, [`crate::Error::Corruption`] if a manifest is damaged.
    pub fn open(root: &Path, checksums: bool) -> Result<Self> {
        let name = root.display().to_string();
        let manifest = BuildManifest::read(&*open(root)?, &name)?;
        let count = manifest.shards.len();
        Self::check(&name, manifest, checksums, |directory| open_one_of(&root.join(directory), count))
    }

    /// Like [`Built::open`], in any storage.
    pub fn check(
        name: &str,
        manifest: BuildManifest,
        checksums: bool,
        open: impl Fn(&str) -> Result<Arc<dyn Storage>>,
    ) -> Result<Self> {
        let mut shards = Vec::new();
        for (shard, committed) in (0..).zip(&manifest.shards) {
            let storage = open(&committed.directory)?;
            let directory = format!("{name}/{}", committed.directory);
            let (found, checksum) = ShardManifest::read(&*storage, &directory)?;
            let file = format!("{directory}/{SHARD}");
            let hex = |checksum: u64| format!("{checksum:016x}");
            BuildPart::Checksum.check(&file, hex(committed.manifest_checksum), hex(checksum))?;
            manifest.job.check(&file, &found.job)?;
            BuildPart::Shard.check(&file, shard, found.shard)?;
            found.check_files(&*storage, &directory, checksums)?;
            let state = shard_state(&*storage, &directory, &found)?;
            shards.push(OpenedShard { directory, storage, state });
        }
        Ok(Self { job: manifest.job, shards })
    }

    /// The build as files of one database, which change only in memory.
    pub fn as_storage(&self, root: Arc<dyn Storage>, seed: u64) -> Result<Arc<dyn Storage>> {
        let mut places = BTreeMap::new();
        for (place, shard) in self.shards.iter().enumerate() {
            places.extend(names_of(&shard.state).map(|name| (name, place)));
        }
        let directories = self.shards.iter().map(|shard| shard.storage.clone()).collect();
        let storage: Arc<dyn Storage> =
            Arc::new(ReadOnlyStorage::new(Arc::new(ManyDirectories::new(root, directories, places))));
        Manifest::create(storage.clone(), 1, built_state(self, seed))?.seal()?;
        Ok(storage)
    }

    /// Like [`Built::as_storage`], of the build in the directory `root`.
    pub fn open_as_storage(root: &Path, seed: u64) -> Result<Arc<dyn Storage>> {
        Self::open(root, false)?.as_storage(open(root)?, seed)
    }

    /// Whether the directory `path` has a committed build and is not a database itself.
    pub fn is_at(path: &Path) -> bool {
        path.join(BUILD).exists() && !path.join(CURRENT).exists()
    }
}

/// The names of the tables and blob files of a state.
pub(crate) fn names_of(state: &DatabaseState) -> impl Iterator<Item = String> {
    let tables = state.files().into_iter().map(table_file_name);
    tables.chain(state.blobs.keys().copied().map(blob_file_name))
}

/// What a shard's own manifest says, after it was checked that it is what [`crate::ShardWriter`] leaves: one keyspace,
/// that of the job, with tables of the last level within the shard's range, and files with the shard's numbers.
pub(super) fn shard_state(
    storage: &dyn Storage,
    directory: &str,
    manifest: &ShardManifest,
) -> Result<DatabaseState> {
    let file = format!("{directory}/{CURRENT}");
    let Some((_, state)) = read_current(storage)? else {
        return Err(BuildPart::Files.mismatch(file, "a file that names a manifest", "none"));
    };
    let ShardManifest { job, shard, .. } = manifest;
    let keyspace = match state.keyspaces.get(&KEYSPACE) {
        Some(keyspace) if state.keyspaces.len() == 1 => keyspace,
        _ => return Err(BuildPart::Keyspace.mismatch(file, "one keyspace", state.keyspaces.len())),
    };
    let plan = keyspace.body.plan.plan.clone();
    let (name, hasher, shards) = (keyspace.name.clone(), keyspace.hasher, job.shards);
    job.check(&file, &StoredJob { id: job.id.clone(), keyspace: name, hasher, shards, plan })?;
    let range = shard_range(*shard, job.shards);
    let numbers = first_file(*shard)..first_file(shard + 1);
    if let Some(other) = other_level(keyspace) {
        return Err(BuildPart::Files.mismatch(file, "tables of the last level alone", other));
    }
    let mut next = Some(range.low);
    for container in keyspace.body.levels.last().into_iter().flatten() {
        let is_next = next.is_some_and(|next| next <= container.range.low);
        if !range.covers(container.range) || !is_next || container.tables.len() != 1 {
            return Err(BuildPart::Range.mismatch(file, range, container.range));
        }
        next = container.range.high.checked_add(1);
    }
    let tables = state.files().into_iter().map(|table| table.0);
    let mut all_numbers = tables.chain(state.blobs.keys().map(|blob| blob.0));
    if let Some(number) = all_numbers.find(|number| !numbers.contains(number)) {
        let expected = format!("numbers from {} to {}", numbers.start, numbers.end - 1);
        return Err(BuildPart::Files.mismatch(file, expected, number));
    }
    if let Some(name) = names_of(&state).find(|name| !manifest.files.iter().any(|file| file.name == *name)) {
        let path = format!("{directory}/{SHARD}");
        return Err(BuildPart::Files.mismatch(
            path,
            format!("{name}, which its manifest names"),
            "no such file",
        ));
    }
    Ok(state)
}

/// What a keyspace has outside its last level.
fn other_level(keyspace: &KeyspaceState) -> Option<&'static str> {
    let body = &keyspace.body;
    let (_, young) = body.levels.split_last()?;
    if !body.runs.is_empty() {
        Some("runs")
    } else if young.iter().any(|level| !level.is_empty()) {
        Some("tables of other levels")
    } else if !keyspace.chained.is_empty() {
        Some("segments of a log")
    } else {
        None
    }
}

/// What the shards make up: one keyspace, which has the tables of all of them in its last level.
pub(crate) fn built_state(built: &Built, seed: u64) -> DatabaseState {
    let mut plan = PlanState::first(built.job.plan.clone(), PlanSource::Own);
    plan.items_planned = 0;
    let mut keyspace = KeyspaceState {
        name: built.job.keyspace.clone(),
        hasher: built.job.hasher,
        log_start: SegmentId(0),
        body: LevelsState::new(plan),
        chained: BTreeMap::new(),
        directory: None,
        blob_references: BTreeMap::<BlobId, u64>::new(),
    };
    let mut whole =
        DatabaseState { seed, next_keyspace: KEYSPACE.next(), next_file: 1, ..DatabaseState::default() };
    for OpenedShard { state, .. } in &built.shards {
        whole.next_file = whole.next_file.max(state.next_file);
        whole.next_segment = whole.next_segment.max(state.next_segment);
        whole.blobs.extend(&state.blobs);
        whole.table_items.extend(&state.table_items);
        for shard in state.keyspaces.values() {
            keyspace.blob_references.extend(&shard.blob_references);
            if let (Some(last), Some(tables)) = (keyspace.body.levels.last_mut(), shard.body.levels.last()) {
                last.extend(tables.iter().cloned());
            }
        }
    }
    whole.log_start = whole.next_segment;
    whole.keyspaces.insert(KEYSPACE, keyspace);
    debug_assert!(is_ascending(&whole));
    whole
}

/// Whether the containers of the last level follow each other.
fn is_ascending(state: &DatabaseState) -> bool {
    let ranges = state.keyspaces.values().flat_map(|keyspace| keyspace.body.levels.last());
    let ranges: Vec<HashRange> = ranges.flatten().map(|container| container.range).collect();
    ranges.windows(2).all(|pair| pair[0].high < pair[1].low)
}
