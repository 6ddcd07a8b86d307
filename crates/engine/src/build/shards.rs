//! The directories of shards below that of a build.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alluvium_io::{FileStorage, IoOptions, Storage};

use crate::error::{IoContext, Result};

/// Maximum files of all shards that are open at a time, unless each shard needs more.
const OPEN_FILES_MAX: usize = 4096;

/// The directory in which a shard of the build in `root` is written, unless the job chooses others: `shard-00042`.
pub fn shard_directory(root: impl AsRef<Path>, shard: u32) -> PathBuf {
    root.as_ref().join(format!("shard-{shard:05}"))
}

/// The names of the directories below `root`, in order.
pub(super) fn directories(root: &Path) -> Result<Vec<String>> {
    let context = || format!("listing directory {}", root.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(root).context(context)? {
        let entry = entry.context(context)?;
        let is_directory = entry.file_type().context(context)?.is_dir();
        names.extend(entry.file_name().to_str().filter(|_| is_directory).map(str::to_owned));
    }
    names.sort_unstable();
    Ok(names)
}

/// Opens the directory `path`.
pub(super) fn open(path: &Path) -> Result<Arc<dyn Storage>> {
    open_one_of(path, 1)
}

/// Opens a directory that is one of `count` of a build.
pub(super) fn open_one_of(path: &Path, count: usize) -> Result<Arc<dyn Storage>> {
    let open_files_max = Some((OPEN_FILES_MAX / count.max(1)).max(8));
    let io = IoOptions { open_files_max, ..IoOptions::default() };
    let storage = FileStorage::open(path, io).context(|| format!("opening directory {}", path.display()))?;
    Ok(Arc::new(storage))
}
