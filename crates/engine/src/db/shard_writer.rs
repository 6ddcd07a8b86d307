//! [`ShardWriter`]: writes one shard of a bulk build.

use std::path::Path;
use std::sync::Arc;

use alluvium_base::PrefixRule;
use alluvium_io::{FileStorage, IoOptions, OpenMode, Storage};
use alluvium_model::Plan;

use super::checkpoint::CheckpointOptions;
use super::database::Db;
use super::ingest::Ingest;
use super::shard_target::ShardTarget;
use crate::build::{
    BuildJob, BuildPart, PARTIAL_SHARD, ShardFile, ShardManifest, StoredJob, file_checksum, first_file,
};
use crate::environment::Environment;
use crate::error::{Error, IoContext, Result};
use crate::file_names::LOCK;
use crate::item::Item;
use crate::metadata::Metadata;
use crate::options::Durability;
use crate::order::{KeyspaceOptions, Order};

/// The directory of temporary files, below that of a shard.
const WORK: &str = "work";

/// Options for writing a shard.
#[derive(Debug, Clone, Default)]
pub struct ShardOptions {
    /// Maximum bytes of memory, as in [`crate::Builder::memory_bytes_max`]. Default none: up to 34 MiB while items are
    /// added, and 144 MiB while they are sorted.
    pub memory_bytes_max: Option<u64>,
    /// Whether a finished shard is written anew. Default false: it is refused, so that an attempt of a task that was
    /// started twice does not remove what the other one has finished.
    pub replace: bool,
}

/// The outcome of writing a shard.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WrittenShard {
    /// Number of items added, including those that a later one of the same key replaced.
    pub items: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Number of files, including those of the manifest.
    pub files: u64,
    /// Bytes of these files.
    pub file_bytes: u64,
}

/// Writes one shard of a bulk build, from items in any order: for one task of a job. Items go to temporary files, then
/// to tables of the last level, as in [`crate::Keyspace::ingest`].
///
/// Nothing counts before [`ShardWriter::finish`] has returned. What is left of a task that failed or was killed is
/// removed by the next attempt in the same directory, or by [`crate::abort_build`]. If the writer is dropped, it
/// removes what it wrote.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let root = directory.path();
/// use alluvium::{BuildJob, CommitOptions, Db, HashKey, ShardOptions, ShardWriter, commit_build, shard_directory};
/// let job = BuildJob::new("numbers of tonight", HashKey::from_bytes([7; 16]), 4);
/// for shard in 0..job.shards {
///     let mut writer = ShardWriter::create(shard_directory(root, shard), &job, shard, &ShardOptions::default())?;
///     for number in (0..1000_u32).filter(|number| job.shard_of(&number.to_le_bytes()) == shard) {
///         writer.insert(number.to_le_bytes(), (number * 2).to_le_bytes())?;
///     }
///     writer.finish()?;
/// }
/// commit_build(root, &CommitOptions::default())?;
/// let numbers = Db::open_read_only(root)?.keyspace("default")?;
/// assert_eq!(numbers.get(7_u32.to_le_bytes())?.as_deref(), Some(&14_u32.to_le_bytes()[..]));
/// # Ok(())
/// # }
/// ```
pub struct ShardWriter {
    /// Present until it is finished.
    ingest: Option<Ingest>,
    db: Db,
    job: StoredJob,
    shard: u32,
    target: ShardTarget,
    items: u64,
    bytes: u64,
}

impl ShardWriter {
    /// Starts to write shard `shard` of `job` into the directory `path`, which is created if it is missing and may have
    /// the rest of an attempt that failed.
    ///
    /// # Errors
    /// [`Error::Build`] if `shard` is not one of the job's, or the directory has a finished shard and
    /// [`ShardOptions::replace`] is false; [`Error::NotADatabase`] if it has other files; [`Error::Locked`] if another
    /// attempt writes there.
    pub fn create(
        path: impl AsRef<Path>,
        job: &BuildJob,
        shard: u32,
        options: &ShardOptions,
    ) -> Result<Self> {
        let path = path.as_ref();
        let context = |path: &Path| format!("creating directory {}", path.display());
        let storage: Arc<dyn Storage> =
            Arc::new(FileStorage::create(path, IoOptions::default()).context(|| context(path))?);
        let work = path.join(WORK);
        let target = ShardTarget::take(storage, Some(work.clone()), options.replace)?;
        let storage = FileStorage::create(&work, IoOptions::default()).context(|| context(&work))?;
        Self::start(target, Environment::over(Arc::new(storage)), job, shard, options, true)
    }

    /// Like [`ShardWriter::create`], in any storage, without threads; temporary files in `work`.
    #[doc(hidden)]
    pub fn create_in(
        storage: Arc<dyn Storage>,
        work: Environment,
        job: &BuildJob,
        shard: u32,
        options: &ShardOptions,
    ) -> Result<Self> {
        Self::start(ShardTarget::take(storage, None, options.replace)?, work, job, shard, options, false)
    }

    fn start(
        target: ShardTarget,
        work: Environment,
        job: &BuildJob,
        shard: u32,
        options: &ShardOptions,
        has_threads: bool,
    ) -> Result<Self> {
        let stored = job.stored()?;
        if shard >= job.shards {
            return Err(BuildPart::Shard.mismatch("job", format!("0 to {}", job.shards - 1), shard));
        }
        let mut builder = Db::builder(WORK).environment(work).durability(Durability::Buffered);
        builder = builder.background(has_threads).plan(Plan::from(stored.plan.clone()));
        if let Some(bytes) = options.memory_bytes_max {
            builder = builder.memory_bytes_max(bytes);
        }
        if let Order::SemiSorted { prefix: PrefixRule::Function(function), .. } = job.order {
            builder = builder.prefix_function(function);
        }
        builder.settings.first_file = first_file(shard);
        let db = builder.open()?;
        let (order, plan) = (job.order, Some(stored.plan.clone().into()));
        let keyspace_options = KeyspaceOptions { order, plan, hash_key: Some(job.hash_key) };
        let keyspace = db.keyspace_with(&job.keyspace, &keyspace_options)?;
        let ingest = Some(keyspace.ingest_shard(shard, job.shards)?);
        Ok(Self { ingest, db, job: stored, shard, target, items: 0, bytes: 0 })
    }

    /// Adds an item. It replaces an item added under `key` before.
    ///
    /// # Errors
    /// [`Error::Build`] if `key` belongs to another shard ([`BuildJob::shard_of`]); those of [`Ingest::insert`].
    pub fn insert(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.push(&Item::value(key.as_ref(), value.as_ref()))
    }

    /// Like [`ShardWriter::insert`], with flags or an expiry.
    pub fn insert_with(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        metadata: Metadata,
    ) -> Result<()> {
        self.push(&metadata.item(key.as_ref(), value.as_ref()))
    }

    fn push(&mut self, item: &Item<'_>) -> Result<()> {
        self.ingest.as_mut().ok_or(Error::Closed)?.push(item)?;
        self.items += 1;
        self.bytes += (item.key.len() + item.value.len()) as u64;
        Ok(())
    }

    /// Writes the tables and then, as the last file, `SHARD`, durably and atomically.
    ///
    /// # Errors
    /// Those of files. The directory is then without a finished shard.
    pub fn finish(mut self) -> Result<WrittenShard> {
        let Some(ingest) = self.ingest.take() else { return Err(Error::Closed) };
        ingest.finish()?;
        // Files of the copy are read for their checksums below, so it need not be read twice.
        let options = CheckpointOptions { verify: false };
        let storage = self.target.storage().clone();
        self.db.copy_files_into(storage.clone(), None, None, options)?;
        self.db.close()?;
        let mut files = Vec::new();
        let mut names = storage.list().context(|| "listing the shard's directory".to_owned())?;
        names.retain(|name| name != LOCK && name != PARTIAL_SHARD);
        for name in names {
            let checksum = file_checksum(&*storage, &name)?;
            let file = storage.open(&name, OpenMode::Read).context(|| format!("opening {name}"))?;
            let bytes = file.len().context(|| format!("measuring {name}"))?;
            files.push(ShardFile { name, bytes, checksum });
        }
        let written = WrittenShard {
            items: self.items,
            bytes: self.bytes,
            files: files.len() as u64,
            file_bytes: files.iter().map(|file| file.bytes).sum(),
        };
        let (job, shard) = (self.job.clone(), self.shard);
        let manifest = ShardManifest { job, shard, items: self.items, bytes: self.bytes, files };
        self.target.finish(&manifest)?;
        Ok(written)
    }
}

impl std::fmt::Debug for ShardWriter {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ShardWriter")
            .field("shard", &self.shard)
            .field("items", &self.items)
            .finish_non_exhaustive()
    }
}
