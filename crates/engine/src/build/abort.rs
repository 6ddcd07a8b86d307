//! Aborts a build: removes its shards.

use std::fs;
use std::path::Path;

use super::manifest::BUILD;
use super::mismatch::BuildPart;
use super::shard_manifest::{PARTIAL_SHARD, SHARD};
use super::shards::{directories, open};
use crate::error::{IoContext, Result};

/// Removes the shards of the build in `root`, finished or not, and returns how many directories were removed. Other
/// directories stay.
///
/// # Errors
/// [`crate::Error::Build`] if the build is committed: remove the whole directory instead. [`crate::Error::Locked`] if a
/// task still writes a shard.
pub fn abort_build(root: impl AsRef<Path>) -> Result<usize> {
    let root = root.as_ref();
    let root_storage = open(root)?;
    let _lock = crate::recovery::lock(&*root_storage)?;
    if root.join(BUILD).exists() {
        let file = root.join(BUILD).display().to_string();
        return Err(BuildPart::Manifest.mismatch(file, "a build that is not committed", "that it is"));
    }
    let mut removed = 0;
    for name in directories(root)? {
        let path = root.join(&name);
        if !path.join(SHARD).exists() && !path.join(PARTIAL_SHARD).exists() {
            continue;
        }
        let storage = open(&path)?;
        let _lock = crate::recovery::lock(&*storage)?;
        // Without it, what is left after a failure does not count as a finished shard.
        if path.join(SHARD).exists() {
            storage.remove(SHARD).context(|| format!("removing {name}/{SHARD}"))?;
            storage.sync_directory().context(|| format!("syncing {name}"))?;
        }
        fs::remove_dir_all(&path).context(|| format!("removing {}", path.display()))?;
        removed += 1;
    }
    root_storage.sync_directory().context(|| format!("syncing directory {}", root.display()))?;
    Ok(removed)
}
