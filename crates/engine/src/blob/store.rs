//! [`Blobs`]: all blob files, and the one being written.

use std::sync::Arc;

use alluvium_base::BlobId;
use alluvium_io::sync::ArcSwap;
use alluvium_io::sync::atomic::{AtomicU64, Ordering};
use alluvium_io::sync::{Mutex, MutexGuard};

use super::file::{BlobFile, BlobFiles};
use super::live::ReferenceCounts;
use super::reference::Reference;
use crate::error::{Error, Result};
use crate::item::Item;
use crate::manifest::Edit;

/// All blob files of a database.
///
/// Lock order: `current`, then `changing`, then the locks of a manifest record and a version's replacement; `syncing`
/// is taken alone. No shard of a log store is locked while any of them is taken.
#[derive(Debug, Default)]
pub(crate) struct Blobs {
    pub(crate) files: ArcSwap<BlobFiles>,
    /// The file to which records are appended; `None` until the first large item of this opening.
    pub(crate) current: Mutex<Option<Arc<BlobFile>>>,
    /// Files of this opening that are not sealed, including the current one.
    pub(crate) unsealed: Mutex<Vec<Arc<BlobFile>>>,
    /// Held by the thread that makes files durable, so that no other one mistakes a sync in progress for a finished
    /// one.
    pub(crate) syncing: Mutex<()>,
    /// Held while the set of files changes and until all versions have the change.
    changing: Mutex<()>,
    /// Bytes written to files that no longer exist.
    pub(crate) bytes_written_before: AtomicU64,
    /// Reads on behalf of users.
    pub reads: AtomicU64,
    /// Bytes of records that were copied so that their files could be emptied.
    pub bytes_relocated: AtomicU64,
}

impl Blobs {
    /// The store with the files that the manifest names.
    pub fn new(files: BlobFiles) -> Self {
        Self { files: ArcSwap::from_pointee(files), ..Self::default() }
    }

    /// All files.
    pub fn files(&self) -> Arc<BlobFiles> {
        self.files.load_full()
    }

    pub fn file(&self, id: BlobId) -> Option<Arc<BlobFile>> {
        self.files.load().get(&id).cloned()
    }

    /// Keeps the set of files unchanged until the guard is dropped.
    pub fn hold_files(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().expect("no panic while held")
    }

    pub(crate) fn unsealed(&self) -> Vec<Arc<BlobFile>> {
        self.unsealed.lock().expect("no panic while held").clone()
    }

    /// Makes all records appended so far survive a power cut.
    pub fn sync(&self) -> Result<()> {
        let _turn = self.syncing.lock().expect("no panic while held");
        self.unsealed().iter().try_for_each(|file| file.sync())
    }

    /// Writes all records appended so far, so that they survive the death of the process.
    pub fn write_out(&self) -> Result<()> {
        self.unsealed().iter().try_for_each(|file| file.write_out(&mut file.tail(), true))
    }

    /// The edits. Those that refer to a file being written also say how much of it is durable: a recovery must find at
    /// least this much.
    pub fn with_durable_ends(&self, edits: &[Edit]) -> Vec<Edit> {
        let mut edits = edits.to_vec();
        for edit in &mut edits {
            if let Edit::BlobReferences { file, delta: 1.., durable, .. } = edit
                && let Some(found) = self.files.load().get(file).filter(|found| !found.is_sealed())
            {
                *durable = found.synced();
            }
        }
        edits
    }

    /// Adds a reference to a record.
    pub fn remember(&self, reference: &Reference) {
        if let Some(file) = self.files.load().get(&reference.file) {
            file.add_live(reference.stored_bytes() as i64);
        }
    }

    /// Removes the reference of an index entry to a record.
    pub fn forget(&self, reference: &Reference) {
        if let Some(file) = self.files.load().get(&reference.file) {
            file.add_live(-(reference.stored_bytes() as i64));
        }
    }

    /// Removes the references of an item to which an index entry no longer leads.
    pub fn forget_all(&self, item: &Item<'_>) {
        Reference::all_of(item).iter().for_each(|reference| self.forget(reference));
    }

    /// Remembers that a younger item hides a reference.
    pub fn hide(&self, reference: &Reference) {
        if let Some(file) = self.files.load().get(&reference.file) {
            file.hide(reference.stored_bytes());
        }
    }

    /// Counts the added references, before the version with them is published.
    pub fn count_gains(&self, counts: &ReferenceCounts) {
        self.count(counts, |delta| delta > 0);
    }

    /// Counts the removed references, after their version was published: a file to which nothing refers is removed at
    /// once, and readers of the previous version would miss it.
    pub fn count_losses(&self, counts: &ReferenceCounts) {
        self.count(counts, |delta| delta < 0);
    }

    fn count(&self, counts: &ReferenceCounts, is_meant: impl Fn(i64) -> bool) {
        let files = self.files.load();
        for (number, delta) in counts.iter().filter(|&(_, delta)| is_meant(delta)) {
            if let Some(file) = files.get(&number) {
                file.add_live(delta);
            }
        }
    }

    /// Subtracts everything that a merge dropped from what was known to be hidden.
    pub fn unhide(&self, counts: &ReferenceCounts) {
        let files = self.files.load();
        for (number, delta) in counts.iter().filter(|&(_, delta)| delta < 0) {
            if let Some(file) = files.get(&number) {
                file.unhide(delta.unsigned_abs());
            }
        }
    }

    /// Ends the current file, so that it can be sealed and emptied. With `id` only if it is that file.
    pub fn end_current(&self, id: Option<BlobId>) {
        let mut current = self.current.lock().expect("no panic while held");
        current.take_if(|file| id.is_none_or(|id| file.id == id));
    }

    /// Bytes of memory of records that are not written yet.
    pub fn memory_bytes(&self) -> u64 {
        self.unsealed().iter().map(|file| file.memory_bytes()).sum()
    }

    /// Bytes written to blob files since the database was opened.
    pub fn bytes_written(&self) -> u64 {
        let files = self.files.load();
        let present: u64 = files.values().map(|file| file.bytes_written()).sum();
        present + self.bytes_written_before.load(Ordering::Relaxed)
    }

    /// The error for a missing file of this id.
    pub fn missing(id: BlobId) -> Error {
        Error::MissingFile { file: crate::file_names::blob_file_name(id) }
    }
}
