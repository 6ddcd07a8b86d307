//! [`CopyTarget`]: a directory that is about to become a copy of a database.
//!
//! A marker file says that the copy is not complete. However the copying ends, with a failure, a crash or a kill, the
//! next attempt recognizes the files by it and may remove them.

use std::sync::Arc;

use alluvium_io::{OpenMode, Storage};

use crate::error::{Error, IoContext, Result};
use crate::file_names::{
    COPY_MARKER, LOCK, parse_blob_file_name, parse_directory_file_name, parse_table_file_name,
};
use crate::log::segment;
use crate::manifest::{CURRENT, CURRENT_NEW, is_manifest_file_name};

/// A directory that becomes a database by [`CopyTarget::finish`], and is cleared if that is not called.
#[derive(Debug)]
pub(super) struct CopyTarget {
    storage: Arc<dyn Storage>,
    is_finished: bool,
}

impl CopyTarget {
    /// Takes an empty directory, or one that an unfinished attempt left behind.
    ///
    /// # Errors
    /// [`Error::NotADatabase`] if it contains anything else; `what` says for what it must be empty.
    pub fn take(storage: Arc<dyn Storage>, what: &str) -> Result<Self> {
        let names = list(&*storage)?;
        let is_left =
            names.iter().any(|name| name == COPY_MARKER) && !names.iter().any(|name| name == CURRENT);
        let in_the_way = names.iter().find(|name| !(is_left && is_of_copy(name)));
        if let Some(name) = in_the_way {
            let reason = format!("{what} needs an empty directory, and this one holds {name}");
            return Err(Error::NotADatabase { reason });
        }
        let target = Self { storage, is_finished: false };
        if is_left {
            target.clear()?;
        }
        let context = || format!("creating {COPY_MARKER}");
        target.storage.open(COPY_MARKER, OpenMode::Create).context(context)?.sync().context(context)?;
        target.storage.sync_directory().context(context)?;
        Ok(target)
    }

    /// Declares the copy complete: it has its `CURRENT`, durably.
    pub fn finish(mut self) -> Result<()> {
        self.is_finished = true;
        self.storage.remove(COPY_MARKER).context(|| format!("removing {COPY_MARKER}"))?;
        self.storage.sync_directory().context(|| "syncing the copy's directory".to_owned())
    }

    /// Removes what an attempt wrote, the marker last.
    fn clear(&self) -> Result<()> {
        let mut names = list(&*self.storage)?;
        names.retain(|name| is_of_copy(name) && name != COPY_MARKER);
        // Starts with `CURRENT`: without it, the other files are not a database.
        names.sort_by_key(|name| name != CURRENT);
        for name in names.iter().map(String::as_str).chain([COPY_MARKER]) {
            self.storage.remove(name).context(|| format!("removing {name}"))?;
        }
        self.storage.sync_directory().context(|| "syncing the copy's directory".to_owned())
    }
}

impl Drop for CopyTarget {
    fn drop(&mut self) {
        if !self.is_finished {
            // What cannot be removed now, the next attempt recognizes and removes.
            let _ = self.clear();
        }
    }
}

fn list(storage: &dyn Storage) -> Result<Vec<String>> {
    storage.list().context(|| "listing the copy's directory".to_owned())
}

fn is_of_copy(name: &str) -> bool {
    name == COPY_MARKER
        || name == CURRENT
        || name == CURRENT_NEW
        || name == LOCK
        || parse_table_file_name(name).is_some()
        || parse_blob_file_name(name).is_some()
        || parse_directory_file_name(name).is_some()
        || segment::is_file_name(name)
        || is_manifest_file_name(name)
        || crate::device::is_file_name(name)
}
