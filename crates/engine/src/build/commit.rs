//! Commits a build: checks that all shards are there and writes `BUILD`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium_io::Storage;
use serde::Serialize;

use super::built::{Built, shard_state};
use super::job::{BuildJob, fingerprint};
use super::manifest::{BUILD, BuildManifest, CommittedShard};
use super::mismatch::BuildPart;
use super::shard_manifest::{SHARD, ShardManifest};
use super::shards::{directories, open};
use crate::error::{IoContext, Result};

/// Options for committing a build.
#[derive(Debug, Clone, Default)]
pub struct CommitOptions {
    /// The job: shards of others are refused. Default that of the first shard.
    pub job: Option<BuildJob>,
    /// The names of the directories of the shards, below that of the build: for jobs whose attempts write to
    /// directories of their own. Default all that have a finished shard.
    pub directories: Option<Vec<String>>,
    /// Whether to read all files and check them by their checksums. Default false: files are checked by their lengths,
    /// and manifests by their checksums.
    pub checksums: bool,
}

/// Describes a committed build.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Build {
    /// The identifier of the job.
    pub job: String,
    /// The name of the keyspace.
    pub keyspace: String,
    /// Says whether two hash keys are the same, without showing them.
    pub hash_key_fingerprint: String,
    /// Number of shards.
    pub shards: u32,
    /// Items that were added to all shards, including those that a later one of the same key replaced.
    pub items: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

/// A directory that may have a shard.
#[doc(hidden)]
pub struct CandidateShard {
    /// The directory's name.
    pub name: String,
    /// Its files.
    pub storage: Arc<dyn Storage>,
}

impl std::fmt::Debug for CandidateShard {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("CandidateShard").field(&self.name).finish()
    }
}

impl Build {
    pub(super) fn of(manifest: &BuildManifest) -> Self {
        let BuildManifest { job, shards } = manifest;
        Self {
            job: job.id.clone(),
            keyspace: job.keyspace.clone(),
            hash_key_fingerprint: fingerprint(&job.hasher),
            shards: job.shards,
            items: shards.iter().map(|shard| shard.items).sum(),
            bytes: shards.iter().map(|shard| shard.bytes).sum(),
        }
    }
}

/// Commits the build whose shards are in directories below `root`: checks that there is one of each, all of one job,
/// and that their files are complete; then writes the file `BUILD`, durably and atomically. Before that, nothing of the
/// build counts. A build that is committed already is checked again, and stays as it is.
///
/// Takes a read of each shard's manifests, or of everything with [`CommitOptions::checksums`].
///
/// # Errors
/// [`crate::Error::Build`] names the first file that does not fit, what was expected and what was found.
/// [`crate::Error::Locked`] if another process commits or aborts the build.
pub fn commit_build(root: impl AsRef<Path>, options: &CommitOptions) -> Result<Build> {
    let root = root.as_ref();
    let root_storage = open(root)?;
    let names = match &options.directories {
        Some(names) => names.clone(),
        None => directories(root)?,
    };
    let mut shards = Vec::new();
    for name in names {
        shards.push(CandidateShard { storage: open(&root.join(&name))?, name });
    }
    commit_build_in(&*root_storage, &root.display().to_string(), shards, options)
}

/// Checks that the build in `root` is committed and complete: manifests by their checksums, other files by their
/// lengths; with `checksums`, reads all files and checks them by their checksums.
///
/// # Errors
/// [`crate::Error::Build`] names the first file that does not fit, [`crate::Error::Corruption`] a damaged manifest.
pub fn check_build(root: impl AsRef<Path>, checksums: bool) -> Result<Build> {
    let root = root.as_ref();
    Built::open(root, checksums)?;
    BuildManifest::read(&*open(root)?, &root.display().to_string()).map(|manifest| Build::of(&manifest))
}

/// The directories of the shards of the committed build in `root`, in order. Each is a database of its own, which
/// [`crate::Db::open_read_only`] opens. Reads the manifest of the build alone.
///
/// # Errors
/// [`crate::Error::Build`] if the build is not committed, [`crate::Error::Corruption`] if its manifest is damaged.
pub fn build_shards(root: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
    let root = root.as_ref();
    let manifest = BuildManifest::read(&*open(root)?, &root.display().to_string())?;
    Ok(manifest.shards.iter().map(|shard| root.join(&shard.directory)).collect())
}

/// Like [`commit_build`], in any storage. `name` is the directory's for errors.
#[doc(hidden)]
pub fn commit_build_in(
    root: &dyn Storage,
    name: &str,
    candidates: Vec<CandidateShard>,
    options: &CommitOptions,
) -> Result<Build> {
    let _lock = crate::recovery::lock(root)?;
    let mut job = options.job.as_ref().map(BuildJob::stored).transpose()?;
    let mut shards: Vec<Option<CommittedShard>> = Vec::new();
    for CandidateShard { name: directory, storage } in &candidates {
        let path = format!("{name}/{directory}");
        let names = storage.list().context(|| format!("listing {path}"))?;
        if options.directories.is_none() && !names.iter().any(|name| name == SHARD) {
            continue;
        }
        let (found, manifest_checksum) = ShardManifest::read(&**storage, &path)?;
        let job = job.get_or_insert_with(|| found.job.clone());
        job.check(&format!("{path}/{SHARD}"), &found.job)?;
        found.check_files(&**storage, &path, options.checksums)?;
        shard_state(&**storage, &path, &found)?;
        shards.resize(job.shards as usize, None);
        let (directory, items, bytes) = (directory.clone(), found.items, found.bytes);
        let committed = CommittedShard { directory, manifest_checksum, items, bytes };
        if let Some(other) = shards[found.shard as usize].replace(committed) {
            let expected = format!("shard {} in {} alone", found.shard, other.directory);
            return Err(BuildPart::Shard.mismatch(path, expected, "it here, too"));
        }
    }
    let Some(job) = job else {
        return Err(BuildPart::ShardCount.mismatch(name, "a finished shard", "none"));
    };
    let complete: Vec<CommittedShard> = shards.iter().flatten().cloned().collect();
    if let Some(missing) =
        (0..job.shards as usize).find(|&shard| shards.get(shard).is_none_or(Option::is_none))
    {
        let found = format!("{} shards, without shard {missing}", complete.len());
        return Err(BuildPart::ShardCount.mismatch(name, format!("{} finished shards", job.shards), found));
    }
    let manifest = BuildManifest { job, shards: complete };
    let names = root.list().context(|| format!("listing {name}"))?;
    if names.iter().any(|name| name == BUILD) {
        let committed = BuildManifest::read(root, name)?;
        manifest.job.check(&format!("{name}/{BUILD}"), &committed.job)?;
        if committed != manifest {
            return Err(BuildPart::Manifest.mismatch(
                format!("{name}/{BUILD}"),
                "the shards that are there",
                "other shards, which were committed",
            ));
        }
        return Ok(Build::of(&committed));
    }
    manifest.write(root)?;
    Ok(Build::of(&manifest))
}
