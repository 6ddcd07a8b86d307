//! Gives back the segments of chained keyspaces that are not needed any more.

use super::shared::Shared;
use crate::level::Version;

impl Shared {
    /// Removes the files of a version's chains that the manifest does not name any more, as soon as no version uses
    /// them.
    pub fn drop_chain_files(&self, version: &Version) {
        let manifest = self.manifest.lock().expect("no panic while held");
        for file in version.chain.iter().flat_map(|chain| &chain.files) {
            if !manifest.state().names_chained(file.segment, file.seed) {
                file.set_obsolete();
            }
        }
    }
}
