//! Blob files that may be damaged, as a repair opens them.

use std::sync::Arc;

use alluvium_base::BlobId;
use alluvium_io::OpenMode;

use super::file::BlobFile;
use super::frame::{FILE_HEADER_BYTES, RECORD_HEADER_BYTES, RecordHeader, is_newer};
use crate::error::{IoContext, Result};
use crate::file_names::blob_file_name;
use crate::level::Reclaimer;

impl BlobFile {
    /// Opens a file for reading, and trusts only checksums, not its header or any length.
    pub fn open_damaged(reclaimer: &Arc<Reclaimer>, id: BlobId) -> Result<Arc<Self>> {
        let name = blob_file_name(id);
        let len = reclaimer.storage().open(&name, OpenMode::Read).and_then(|file| file.len());
        let file = Self::open(reclaimer, id, Some(len.context(|| format!("opening {name}"))?))?;
        let _ = file.header_checked.set(());
        Ok(file)
    }

    /// Whether the file has a sound header of a first record. A device writes it with the file's header in one sector:
    /// if the file's header before it is unsound, it is damaged and not torn.
    pub fn has_first_record(&self) -> Result<bool> {
        let mut bytes = [0; FILE_HEADER_BYTES + RECORD_HEADER_BYTES];
        let read = self.file.read_at(&mut bytes, 0).context(|| format!("reading {}", self.name()))?;
        let first = &bytes[FILE_HEADER_BYTES..];
        Ok(read == bytes.len()
            && RecordHeader::decode(first, self.seed(), FILE_HEADER_BYTES as u64).is_some())
    }

    /// Whether the file was written by a newer major version and is not damaged.
    pub fn is_newer(&self) -> bool {
        let mut header = [0; FILE_HEADER_BYTES];
        let read = self.file.read_at(&mut header, 0);
        read.is_ok_and(|read| read == header.len()) && is_newer(&header)
    }
}
