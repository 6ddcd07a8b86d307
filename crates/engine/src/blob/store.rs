//! [`Blobs`]: all blob files, and the one being written.

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium_io::sync::ArcSwap;
use alluvium_io::sync::atomic::{AtomicU64, Ordering};
use alluvium_io::sync::{Mutex, MutexGuard};

use super::file::BlobFile;
use super::live::ReferenceCounts;
use super::reference::Reference;
use crate::db::Shared;
use crate::error::{Error, IoContext, Result};
use crate::item::Item;
use crate::manifest::Edit;
use crate::planted_race::PlantedRace;

/// Blob files by number.
pub(crate) type BlobFiles = BTreeMap<u64, Arc<BlobFile>>;

/// A file ends with the record that brings it to this share of all live bytes, so that emptying a file takes little
/// space.
const FILE_SHARE: u64 = 64;
/// Minimum size at which a file ends, regardless of the share.
const FILE_BYTES_MIN: u64 = 8 << 20;

/// All blob files of a database.
///
/// Lock order: `current`, then `changing`, then the locks of a manifest record and a version's replacement; `syncing`
/// is taken alone. No shard of a log store is locked while any of them is taken.
#[derive(Debug, Default)]
pub(crate) struct Blobs {
    files: ArcSwap<BlobFiles>,
    /// The file to which records are appended; `None` until the first large item of this opening.
    current: Mutex<Option<Arc<BlobFile>>>,
    /// Files of this opening that are not sealed, including the current one.
    unsealed: Mutex<Vec<Arc<BlobFile>>>,
    /// Held by the thread that makes files durable, so that no other one mistakes a sync in progress for a finished
    /// one.
    syncing: Mutex<()>,
    /// Held while the set of files changes and until all versions have the change.
    changing: Mutex<()>,
    /// Bytes written to files that no longer exist.
    bytes_written_before: AtomicU64,
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

    pub fn file(&self, number: u64) -> Option<Arc<BlobFile>> {
        self.files.load().get(&number).cloned()
    }

    /// Keeps the set of files unchanged until the guard is dropped.
    pub fn hold_files(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().expect("no panic while held")
    }

    fn unsealed(&self) -> Vec<Arc<BlobFile>> {
        self.unsealed.lock().expect("no panic while held").clone()
    }

    /// Makes all records appended so far survive a power cut.
    pub fn sync(&self) -> Result<()> {
        let _turn = self.syncing.lock().expect("no panic while held");
        self.unsealed().iter().try_for_each(|file| file.sync())
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

    /// The file for the next record, with the caller registered as its writer: [`BlobFile::leave`] unregisters it.
    pub fn enter_current(&self, shared: &Shared) -> Result<Arc<BlobFile>> {
        let mut current = self.current.lock().expect("no panic while held");
        if current.as_ref().is_none_or(|file| file.size() >= self.file_bytes(shared)) {
            *current = Some(self.create(shared).map_err(|error| shared.note_failure(error))?);
        }
        let file = current.as_ref().expect("created above");
        file.enter();
        Ok(file.clone())
    }

    /// Size at which a file ends.
    pub fn file_bytes(&self, shared: &Shared) -> u64 {
        let live: u64 = self.files.load().values().map(|file| file.live_estimate()).sum();
        let max = shared.settings.blob_file_bytes_max;
        (live / FILE_SHARE).clamp(FILE_BYTES_MIN.min(max), max)
    }

    /// Creates a file. Nothing refers to it before its name is durable and the manifest and all versions contain it.
    fn create(&self, shared: &Shared) -> Result<Arc<BlobFile>> {
        let number = shared.next_file.fetch_add(1, Ordering::Relaxed);
        let file = BlobFile::create(&shared.reclaimer, number)?;
        let named = shared
            .storage
            .sync_directory()
            .context(|| "syncing the database directory".to_owned())
            .and_then(|()| shared.append_edits(&[Edit::AddBlob { file: number }]));
        if let Err(error) = named {
            // After a failed append only an opening can tell whether the manifest names it.
            if !shared.manifest.lock().expect("no panic while held").is_broken() {
                file.set_obsolete();
            }
            return Err(shared.note_failure(error));
        }
        self.unsealed.lock().expect("no panic while held").push(file.clone());
        self.change_files(shared, |files| {
            files.insert(number, file.clone());
        });
        Ok(file)
    }

    fn change_files(&self, shared: &Shared, change: impl FnOnce(&mut BlobFiles)) {
        let _only_one =
            (!shared.planted_bugs.has(PlantedRace::BlobFilesWithoutLock)).then(|| self.hold_files());
        let mut files = BlobFiles::clone(&self.files.load());
        change(&mut files);
        let files = Arc::new(files);
        self.files.store(files.clone());
        for keyspace in shared.all_keyspaces() {
            keyspace.update_version(|version| {
                let blobs = version.blobs.with_files(&files);
                crate::level::Version { blobs, ..version.clone() }
            });
        }
    }

    /// Ends the current file, so that it can be sealed and emptied. With `number` only if it is that file.
    pub fn end_current(&self, number: Option<u64>) {
        let mut current = self.current.lock().expect("no panic while held");
        current.take_if(|file| number.is_none_or(|number| file.number == number));
    }

    /// Seals the files to which no more records are appended: from then on replay trusts them. Returns whether there
    /// were any.
    pub fn seal_ended(&self, shared: &Shared) -> Result<bool> {
        let has_writers = |file: &BlobFile| {
            file.has_writers() && !shared.planted_bugs.has(PlantedRace::CollectBesideWriters)
        };
        let ended: Vec<_> = {
            // Held until all files were checked. A file that is being created is not yet the current one and has no
            // writers yet, but will have.
            let held = self.current.lock().expect("no panic while held");
            let current = held.as_ref().map(|file| file.number);
            let is_ended = |file: &BlobFile| Some(file.number) != current && !has_writers(file);
            self.unsealed().into_iter().filter(|file| is_ended(file)).collect()
        };
        for file in &ended {
            {
                let _turn = self.syncing.lock().expect("no panic while held");
                file.sync()?;
            }
            shared.append_edits(&[Edit::SealBlob { file: file.number, bytes: file.size() }])?;
            file.seal();
            self.unsealed.lock().expect("no panic while held").retain(|kept| kept.number != file.number);
        }
        Ok(!ended.is_empty())
    }

    /// Removes a sealed file to which nothing reachable refers, as soon as no version uses it.
    pub fn drop_file(&self, shared: &Shared, file: &BlobFile) -> Result<()> {
        // The items that replaced those of the file must be as durable as they were.
        shared.log.commit_all()?;
        shared.append_edits(&[Edit::DropBlob { file: file.number }])?;
        self.change_files(shared, |files| {
            files.remove(&file.number);
        });
        self.bytes_written_before.fetch_add(file.bytes_written(), Ordering::Relaxed);
        file.set_obsolete();
        Ok(())
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

    /// The error for a missing file of this number.
    pub fn missing(number: u64) -> Error {
        Error::MissingFile { file: super::name::file_name(number) }
    }
}
