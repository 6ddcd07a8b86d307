//! [`ShardTarget`]: the directory of a shard while it is written.
//!
//! A marker file says that the directory is that of a shard. Until it also has a file `SHARD`, nothing in it counts,
//! and the next attempt may remove the files.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use alluvium_io::{DirectoryLock, OpenMode, Storage};

use crate::build::{BuildPart, PARTIAL_SHARD, SHARD, SHARD_NEW, ShardManifest};
use crate::error::{Error, IoContext, Result};
use crate::file_names::{LOCK, parse_blob_file_name, parse_table_file_name};
use crate::manifest::{CURRENT, is_manifest_file_name};

/// A directory that becomes a shard by [`ShardTarget::finish`], and is cleared if that is not called.
pub(super) struct ShardTarget {
    storage: Arc<dyn Storage>,
    /// The directory of temporary files, if it is one.
    work: Option<PathBuf>,
    is_finished: bool,
    /// Keeps other attempts out.
    _lock: Box<dyn DirectoryLock>,
}

impl ShardTarget {
    /// Takes an empty directory, or one that an unfinished attempt left behind; with `replaces`, also one with a
    /// finished shard. Removes the directory `work`.
    ///
    /// # Errors
    /// [`Error::Build`] if there is a finished shard, [`Error::NotADatabase`] if there are other files,
    /// [`Error::Locked`] if another attempt has it.
    pub fn take(storage: Arc<dyn Storage>, work: Option<PathBuf>, replaces: bool) -> Result<Self> {
        let lock = crate::recovery::lock(&*storage)?;
        let names = list(&*storage)?;
        let has = |name: &str| names.iter().any(|found| found == name);
        if has(SHARD) && !replaces {
            let (found, _) = ShardManifest::read(&*storage, "the directory")?;
            let found = format!("shard {} of job {:?}", found.shard, found.job.id);
            return Err(BuildPart::Manifest.mismatch(SHARD, "no finished shard", found));
        }
        let is_left = has(SHARD) || has(PARTIAL_SHARD);
        if let Some(name) = names.iter().find(|name| !is_own(name) || !is_left && *name != LOCK) {
            let reason = format!("a shard needs an empty directory, and this one holds {name}");
            return Err(Error::NotADatabase { reason });
        }
        let target = Self { storage, work, is_finished: false, _lock: lock };
        if !has(PARTIAL_SHARD) {
            let context = || format!("creating {PARTIAL_SHARD}");
            target.storage.open(PARTIAL_SHARD, OpenMode::Create).context(context)?.sync().context(context)?;
            target.storage.sync_directory().context(context)?;
        }
        target.clear(true)?;
        Ok(target)
    }

    /// The directory.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// Writes the manifest of the shard: it is finished.
    pub fn finish(mut self, manifest: &ShardManifest) -> Result<()> {
        manifest.write(&*self.storage)?;
        self.is_finished = true;
        self.storage.remove(PARTIAL_SHARD).context(|| format!("removing {PARTIAL_SHARD}"))?;
        self.remove_work()?;
        self.storage.sync_directory().context(|| "syncing the shard's directory".to_owned())
    }

    /// Removes what attempts wrote, the marker last unless it stays.
    fn clear(&self, keeps_marker: bool) -> Result<()> {
        let mut names = list(&*self.storage)?;
        names.retain(|name| is_own(name) && name != LOCK && name != PARTIAL_SHARD);
        // What says that the others count is removed first.
        names.sort_by_key(|name| (name != SHARD, name != CURRENT));
        for (number, name) in names.iter().enumerate() {
            self.storage.remove(name).context(|| format!("removing {name}"))?;
            if number == 0 && name == SHARD {
                self.storage.sync_directory().context(|| "syncing the shard's directory".to_owned())?;
            }
        }
        self.remove_work()?;
        self.storage.sync_directory().context(|| "syncing the shard's directory".to_owned())?;
        if !keeps_marker {
            self.storage.remove(PARTIAL_SHARD).context(|| format!("removing {PARTIAL_SHARD}"))?;
        }
        Ok(())
    }

    fn remove_work(&self) -> Result<()> {
        match &self.work {
            Some(work) if work.exists() => {
                fs::remove_dir_all(work).context(|| format!("removing {}", work.display()))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for ShardTarget {
    fn drop(&mut self) {
        if !self.is_finished {
            // What cannot be removed now, the next attempt recognizes and removes.
            let _ = self.clear(false);
        }
    }
}

fn list(storage: &dyn Storage) -> Result<Vec<String>> {
    storage.list().context(|| "listing the shard's directory".to_owned())
}

fn is_own(name: &str) -> bool {
    [LOCK, SHARD, SHARD_NEW, PARTIAL_SHARD].contains(&name)
        || parse_table_file_name(name).is_some()
        || parse_blob_file_name(name).is_some()
        || is_manifest_file_name(name)
}
