//! Saves the directories of chained keyspaces, so that an opening reads only the log behind them (SkimpyStash, SIGMOD
//! 2011, §4.7).
//!
//! Order of persistence: the directory is copied, the log is synced as far as the copy names records, the file and its
//! name are synced, then the manifest says so, and the file before is removed. A manifest that names a directory
//! therefore proves how far the log was synced.

use std::sync::Arc;

use alluvium_io::sync::atomic::Ordering;

use crate::chained::{Chain, Directory, DirectoryFile, SavedFile};
use crate::core::{KeyspaceShared, Shared};
use crate::error::{IoContext, Result};
use crate::file_names::directory_file_name;
use crate::log::Position;
use crate::manifest::Edit;

/// A file that no durable record names yet. It is removed if this is dropped before that.
#[derive(Debug)]
struct Unnamed<'s> {
    shared: &'s Shared,
    directory: Arc<Directory>,
    file: SavedFile,
    /// The log is durable up to here.
    synced: Position,
    is_named: bool,
}

impl Drop for Unnamed<'_> {
    fn drop(&mut self) {
        // After a failed append only an opening can tell whether the manifest names it.
        let is_unnamed = || self.shared.manifest.lock().is_ok_and(|manifest| !manifest.is_broken());
        if !self.is_named && is_unnamed() {
            self.shared.reclaimer.remove(directory_file_name(self.file.number));
        }
    }
}

/// Whether [`save_directories`] would find work to do.
pub(crate) fn directories_are_due(shared: &Shared) -> bool {
    may_write(shared) && shared.all_keyspaces().iter().any(|keyspace| is_due(shared, keyspace))
}

/// A directory is due when its keyspace has written some times its bytes, so that saving adds only a small part to what
/// is written.
fn is_due(shared: &Shared, keyspace: &KeyspaceShared) -> bool {
    let version = keyspace.version.load();
    let Some(chain) = version.chain.as_ref().filter(|chain| chain.is_unsaved()) else { return false };
    let directory = &chain.directory;
    let behind = directory.saving.behind(directory.passes.appended());
    behind > directory.memory_bytes().saturating_mul(shared.settings.directory_log_factor)
}

/// Saves a directory that is due; returns whether there was one.
pub(crate) fn save_directories(shared: &Shared) -> Result<bool> {
    save_first(shared, |keyspace| is_due(shared, keyspace))
}

/// Saves a directory without which an opening would read segments that stay; returns whether there was one.
pub(crate) fn save_unsaved_directories(shared: &Shared) -> Result<bool> {
    save_first(shared, is_unsaved)
}

fn is_unsaved(keyspace: &KeyspaceShared) -> bool {
    keyspace.version.load().chain.as_ref().is_some_and(|chain| chain.is_unsaved())
}

/// While the log refuses writes, it cannot be synced either.
fn may_write(shared: &Shared) -> bool {
    !shared.is_read_only() && shared.log.refusal().is_none()
}

fn save_first(shared: &Shared, is_meant: impl Fn(&KeyspaceShared) -> bool) -> Result<bool> {
    if !may_write(shared) {
        return Ok(false);
    }
    // No collection, no close, and one file at a time.
    let _only_one = shared.collect_lock.lock().expect("no panic while held");
    let Some(keyspace) = shared.all_keyspaces().into_iter().find(|keyspace| is_meant(keyspace)) else {
        return Ok(false);
    };
    if let Some(written) = write(shared, &keyspace)? {
        // No clear, and no change of the segments that stay.
        let _no_conversion = shared.convert_lock.lock().expect("no panic while held");
        name(shared, &keyspace, written)?;
    }
    Ok(true)
}

impl Shared {
    /// Saves the directories without which an opening would read segments that stay. The caller holds the locks of
    /// collections and conversions.
    pub fn save_all_directories(&self) -> Result<()> {
        for keyspace in self.all_keyspaces().iter().filter(|keyspace| is_unsaved(keyspace)) {
            if let Some(written) = write(self, keyspace)? {
                name(self, keyspace, written)?;
            }
        }
        Ok(())
    }
}

/// Writes a keyspace's directory to a file, and makes all records durable that it names.
fn write<'s>(shared: &'s Shared, keyspace: &KeyspaceShared) -> Result<Option<Unnamed<'s>>> {
    let version = keyspace.version.load_full();
    let Some(chain) = &version.chain else { return Ok(None) };
    let directory = &chain.directory;
    let number = shared.next_file.fetch_add(1, Ordering::Relaxed);
    // Nothing is appended to older segments any more, so the copy has all their records.
    let from = shared.log.active_segment().id;
    let file = SavedFile { number, from, appended: directory.passes.appended() };
    let synced = Position::default();
    let mut unnamed = Unnamed { shared, directory: directory.clone(), file, synced, is_named: false };
    let options = shared.output_of_merges();
    let _held = shared.hold_buffers(options.write_bytes as u64);
    let named = DirectoryFile { number, keyspace: keyspace.id, from };
    let sources = (&**directory, &directory.sample);
    let bytes = named.write(&*shared.storage, &directory_file_name(number), sources, options)?;
    shared.counters.directory_bytes_written.fetch_add(bytes, Ordering::Relaxed);
    unnamed.synced = shared.log.end();
    if !shared.planted_bugs.save_before_log_sync {
        shared.log.commit_to(unnamed.synced).map_err(|error| shared.note_failure(error))?;
    }
    shared.storage.sync_directory().context(|| "syncing the database directory".to_owned())?;
    Ok(Some(unnamed))
}

/// Names the file in the manifest, unless the chains are not those of the keyspace any more, and removes the file
/// before. The caller holds the lock of conversions.
fn name(shared: &Shared, keyspace: &KeyspaceShared, mut written: Unnamed<'_>) -> Result<()> {
    let is_current =
        |chain: &Arc<Chain>| Arc::ptr_eq(&chain.directory, &written.directory) && !chain.files.is_empty();
    if !keyspace.version.load().chain.as_ref().is_some_and(is_current) {
        return Ok(());
    }
    let SavedFile { number, from, .. } = written.file;
    let Position { segment, offset } = written.synced;
    shared.append_edits(&[Edit::SaveDirectory {
        keyspace: keyspace.id,
        file: number,
        from,
        segment,
        offset,
    }])?;
    written.is_named = true;
    if let Some(before) = written.directory.saving.set(Some(written.file)) {
        shared.reclaimer.remove(directory_file_name(before.number));
    }
    shared.counters.directories_saved.fetch_add(1, Ordering::Relaxed);
    Ok(())
}
