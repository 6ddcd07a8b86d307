//! Gives back the segments of chained keyspaces that are not needed any more.

use super::shared::Shared;
use crate::chained::SavedFile;
use crate::file_names::directory_file_name;
use crate::level::Version;

impl Shared {
    /// Removes the files of a version's chains that the manifest does not name any more, as soon as no version uses
    /// them, and the file with their directory.
    pub fn drop_chain_files(&self, version: &Version) {
        let Some(chain) = &version.chain else { return };
        let manifest = self.manifest.lock().expect("no panic while held");
        for file in &chain.files {
            if !manifest.state().names_chained(file.segment, file.seed) {
                file.set_obsolete();
            }
        }
        let saving = &chain.directory.saving;
        let is_named = |file: &SavedFile| manifest.state().names_directory(file.number);
        if let Some(file) = saving.file().filter(|file| !is_named(file)) {
            saving.set(None);
            self.reclaimer.remove(directory_file_name(file.number));
        }
    }
}
