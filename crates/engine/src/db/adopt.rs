//! Adopts a build: its shards become one database, without being rewritten.

use std::path::Path;
use std::sync::Arc;

use alluvium_base::PrefixFunction;
use alluvium_io::{FileStorage, IoOptions, OpenMode, Storage};
use serde::Serialize;

use super::check_files::check_files;
use super::checkpoint::copy;
use super::copy_target::CopyTarget;
use crate::build::{BuildManifest, Built, built_state, names_of};
use crate::environment::random_seed;
use crate::error::{IoContext, Result};
use crate::manifest::Manifest;

/// Options for adopting a build.
#[derive(Debug, Clone)]
pub struct AdoptOptions {
    /// Whether to read and check all of the database before it counts as one. Default true. Costs a read of all tables
    /// and of the large items to which they refer. Without it, files are checked by their lengths, and manifests by
    /// their checksums.
    pub verify: bool,
    /// Functions that find prefixes, if the order of the items needs one.
    pub prefix_functions: Vec<PrefixFunction>,
}

impl Default for AdoptOptions {
    fn default() -> Self {
        Self { verify: true, prefix_functions: Vec::new() }
    }
}

/// The outcome of adopting a build.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Adopted {
    /// Number of shards.
    pub shards: u64,
    /// Number of tables and blob files that share their bytes with the build.
    pub linked_files: u64,
    /// Bytes of these files.
    pub linked_bytes: u64,
    /// Number of tables and blob files that were copied, because the directories are on different file systems.
    pub copied_files: u64,
    /// Bytes copied.
    pub copied_bytes: u64,
}

/// Makes the committed build in `root` a database in the directory `path`, which must be empty or missing. Its items
/// are those of one keyspace, in the last level of the job's plan; no table is rewritten.
///
/// Files are linked if both directories are on one file system, which takes no space, so `root` may be removed or kept.
/// Otherwise they are copied. The keyspace keeps the plan of the job until it is given another one.
///
/// # Errors
/// [`crate::Error::Build`] if the build is not committed or something in it does not fit,
/// [`crate::Error::NotADatabase`] if the directory contains anything except the rest of an attempt that failed or was
/// killed, [`crate::Error::Corruption`] if a file, which it names, is damaged. After an error or a crash the directory
/// is empty, or contains only what the next attempt removes, or has the whole database.
pub fn adopt(root: impl AsRef<Path>, path: impl AsRef<Path>, options: &AdoptOptions) -> Result<Adopted> {
    let (root, path) = (root.as_ref(), path.as_ref());
    let built = Built::open(root, false)?;
    let destination = FileStorage::create(path, IoOptions::default())
        .context(|| format!("creating directory {}", path.display()))?;
    adopt_built(&built, Arc::new(destination), options)
}

/// Like [`adopt`], in any storage. `open` opens the directory of a shard.
#[doc(hidden)]
pub fn adopt_in(
    root: &dyn Storage,
    open: impl Fn(&str) -> Result<Arc<dyn Storage>>,
    destination: Arc<dyn Storage>,
    options: &AdoptOptions,
) -> Result<Adopted> {
    let manifest = BuildManifest::read(root, "root")?;
    adopt_built(&Built::check("root", manifest, false, open)?, destination, options)
}

fn adopt_built(built: &Built, destination: Arc<dyn Storage>, options: &AdoptOptions) -> Result<Adopted> {
    let target = CopyTarget::take(destination.clone(), "adopting")?;
    let mut adopted = Adopted { shards: built.shards.len() as u64, ..Adopted::default() };
    for shard in &built.shards {
        for name in names_of(&shard.state) {
            let context = || format!("adopting {}/{name}", shard.directory);
            if destination.link_from(&*shard.storage, &name).context(context)? {
                let file = destination.open(&name, OpenMode::Read).context(context)?;
                adopted.linked_files += 1;
                adopted.linked_bytes += file.len().context(context)?;
            } else {
                adopted.copied_files += 1;
                adopted.copied_bytes += copy(&*shard.storage, &*destination, &name).context(context)?;
            }
        }
    }
    destination.sync_directory().context(|| "syncing the database directory".to_owned())?;
    let state = built_state(built, random_seed() | 1);
    if options.verify {
        check_files(&destination, &state, &options.prefix_functions)?;
    }
    Manifest::create(destination, 1, state)?.seal()?;
    target.finish()?;
    Ok(adopted)
}
