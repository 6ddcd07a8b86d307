//! [`Saving`]: which file has the directory of a keyspace's chains, and when it is written anew.

use alluvium_base::SegmentId;
use alluvium_io::sync::Mutex;

/// A file with a directory, which the manifest names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SavedFile {
    pub number: u64,
    /// The oldest segment whose records may be missing in it.
    pub from: SegmentId,
    /// Bytes of records that had been written when it was.
    pub appended: u64,
}

/// The newest file with a directory, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Saving {
    file: Mutex<Option<SavedFile>>,
}

impl Saving {
    pub fn file(&self) -> Option<SavedFile> {
        *self.file.lock().expect("no panic while held")
    }

    /// Notes what the manifest names from now on; returns what it named before.
    pub fn set(&self, file: Option<SavedFile>) -> Option<SavedFile> {
        std::mem::replace(&mut *self.file.lock().expect("no panic while held"), file)
    }

    /// Whether an opening would have to read records of `segment`.
    pub fn lacks(&self, segment: SegmentId) -> bool {
        self.file().is_none_or(|file| file.from <= segment)
    }

    /// Bytes of records since the file was written, if `appended` have been written by now.
    pub fn behind(&self, appended: u64) -> u64 {
        appended.saturating_sub(self.file().map_or(0, |file| file.appended))
    }
}
