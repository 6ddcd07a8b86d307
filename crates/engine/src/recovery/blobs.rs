//! Blob files at the opening: those that were being written end where their last record does.

use std::sync::Arc;

use crate::blob::{BlobFile, BlobFiles, RecordReader, Reference, ReferenceCounts, walk};
use crate::error::{Error, Result};
use crate::level::Reclaimer;
use crate::manifest::DatabaseState;

/// Opens the files that the manifest names. One that was being written ends where its headers lead to: everything that
/// was synced lies in front of that.
pub(super) fn open(reclaimer: &Arc<Reclaimer>, state: &DatabaseState) -> Result<BlobFiles> {
    let mut files = BlobFiles::new();
    for (&number, &sealed_bytes) in &state.blobs {
        let file = BlobFile::open(reclaimer, number, sealed_bytes)?;
        if sealed_bytes.is_none() {
            let end = match file.check_header() {
                Ok(()) => walk(&file, |_, _| Ok(()))?,
                // Nothing of it was ever synced, or the replay will miss what was.
                Err(Error::Corruption(_)) => 0,
                Err(error) => return Err(error),
            };
            file.limit(end);
        }
        files.insert(number, file);
    }
    Ok(files)
}

/// Whether the record that is referred to is sound, as far as that may be in doubt: records of finished files were
/// durable before anything referred to them, and what refers to a file that is gone is hidden by something younger.
pub(super) fn is_sound(files: &BlobFiles, reference: &Reference) -> Result<bool> {
    let Some(file) = files.get(&reference.file).filter(|file| !file.is_sealed()) else { return Ok(true) };
    // Values that were appended to refer to the same records again and again.
    if file.is_known_sound(reference.body) {
        return Ok(true);
    }
    let mut reader = RecordReader::new(file.clone(), *reference);
    loop {
        match reader.next_chunk() {
            Ok(Some(_)) => {}
            Ok(None) => {
                file.note_sound(reference.body);
                return Ok(true);
            }
            Err(Error::Corruption(_)) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
}

/// Finishes the files that were being written, and counts what the tables and the log refer to. With `read_only` their
/// ends are known in memory alone.
pub(super) fn finish(
    files: &BlobFiles,
    state: &mut DatabaseState,
    log: &ReferenceCounts,
    read_only: bool,
) -> Result<()> {
    for file in files.values().filter(|file| !file.is_sealed()) {
        if !read_only {
            file.cut(file.size())?;
        }
        file.seal();
        state.blobs.insert(file.number, Some(file.size()));
    }
    let in_tables = state.keyspaces.values().flat_map(|keyspace| &keyspace.blob_references);
    let in_tables = in_tables.map(|(&file, &bytes)| (file, i64::try_from(bytes).unwrap_or(i64::MAX)));
    for (number, bytes) in in_tables.chain(log.iter()) {
        if let Some(file) = files.get(&number) {
            file.add_live(bytes);
        }
    }
    Ok(())
}
