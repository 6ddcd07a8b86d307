//! Creates, seals and removes blob files, each with its record in the manifest.

use std::sync::Arc;

use alluvium_base::BlobId;
use alluvium_io::sync::atomic::Ordering;

use super::shared::Shared;
use crate::blob::{BlobFile, BlobFiles, Blobs};
use crate::error::{IoContext, Result};
use crate::manifest::Edit;
use crate::planted_race::PlantedRace;

/// A file ends with the record that brings it to this share of all live bytes, so that emptying a file takes little
/// space.
const FILE_SHARE: u64 = 64;
/// Minimum size at which a file ends, regardless of the share.
const FILE_BYTES_MIN: u64 = 8 << 20;

impl Blobs {
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
        let id = BlobId(shared.next_file.fetch_add(1, Ordering::Relaxed));
        let file = BlobFile::create(&shared.reclaimer, id)?;
        let named = shared
            .storage
            .sync_directory()
            .context(|| "syncing the database directory".to_owned())
            .and_then(|()| shared.append_edits(&[Edit::AddBlob { file: id }]));
        if let Err(error) = named {
            // After a failed append only an opening can tell whether the manifest names it.
            if !shared.manifest.lock().expect("no panic while held").is_broken() {
                file.set_obsolete();
            }
            return Err(shared.note_failure(error));
        }
        self.unsealed.lock().expect("no panic while held").push(file.clone());
        self.change_files(shared, |files| {
            files.insert(id, file.clone());
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
            let current = held.as_ref().map(|file| file.id);
            let is_ended = |file: &BlobFile| Some(file.id) != current && !has_writers(file);
            self.unsealed().into_iter().filter(|file| is_ended(file)).collect()
        };
        for file in &ended {
            {
                let _turn = self.syncing.lock().expect("no panic while held");
                file.sync()?;
            }
            shared.append_edits(&[Edit::SealBlob { file: file.id, bytes: file.size() }])?;
            file.seal();
            self.unsealed.lock().expect("no panic while held").retain(|kept| kept.id != file.id);
        }
        Ok(!ended.is_empty())
    }

    /// Removes a sealed file to which nothing reachable refers, as soon as no version uses it.
    pub fn drop_file(&self, shared: &Shared, file: &BlobFile) -> Result<()> {
        // The items that replaced those of the file must be as durable as they were.
        shared.log.commit_all()?;
        shared.append_edits(&[Edit::DropBlob { file: file.id }])?;
        self.change_files(shared, |files| {
            files.remove(&file.id);
        });
        self.bytes_written_before.fetch_add(file.bytes_written(), Ordering::Relaxed);
        file.set_obsolete();
        Ok(())
    }
}
