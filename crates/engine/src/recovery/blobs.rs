//! Blob files when the database is opened: those that were being written end with their last record.

use std::sync::Arc;

use alluvium_base::Corruption;
use alluvium_io::AlignedBuffer;

use super::segments::damaged;
use crate::blob::frame::BLOCK_BYTES;
use crate::blob::{BlobFile, BlobFiles, RecordReader, Reference, ReferenceCounts, walk};
use crate::error::{Error, IoContext, Result};
use crate::level::Reclaimer;
use crate::manifest::DatabaseState;

/// Bytes written at a time.
const WRITE_BYTES: usize = 1 << 20;

/// Opens the files that the manifest names. A file that was being written ends where its chain of record headers ends:
/// everything that was synced is in front of that. Changes nothing; unless `read_only`, what is behind the last known
/// sync is written again.
///
/// # Errors
/// [`Error::Damaged`] if the headers end before the offset up to which the manifest knows the file to be durable.
pub(super) fn open(reclaimer: &Arc<Reclaimer>, state: &DatabaseState, read_only: bool) -> Result<BlobFiles> {
    let mut files = BlobFiles::new();
    for (&number, &sealed_bytes) in &state.blobs {
        let file = BlobFile::open(reclaimer, number, sealed_bytes)?;
        if sealed_bytes.is_none() {
            if !read_only {
                make_durable(&file, durable_bytes(&file, state))?;
            }
            let (end, corruption) = end_of(&file, state)?;
            if let Some(corruption) = corruption {
                return Err(damaged(corruption));
            }
            file.limit(end);
        }
        files.insert(number, file);
    }
    Ok(files)
}

/// Like [`open`], for readers: in a file that was being written, every record to which a reference leads is used. Notes
/// the damage.
pub(super) fn open_damaged(
    reclaimer: &Arc<Reclaimer>,
    state: &DatabaseState,
    damage: &mut Vec<Corruption>,
) -> Result<BlobFiles> {
    let mut files = BlobFiles::new();
    for (&number, &sealed_bytes) in &state.blobs {
        let file = BlobFile::open(reclaimer, number, sealed_bytes)?;
        if sealed_bytes.is_none() {
            damage.extend(end_of(&file, state)?.1);
        }
        files.insert(number, file);
    }
    Ok(files)
}

/// Makes everything from `start` on survive a power cut. Like the log, it is written again: the sync that was to make
/// it durable may have failed.
fn make_durable(file: &BlobFile, start: u64) -> Result<()> {
    let mut offset = start / BLOCK_BYTES * BLOCK_BYTES;
    let mut piece = AlignedBuffer::zeroed(WRITE_BYTES);
    loop {
        let read = file.file.read_at(&mut piece, offset).context(|| format!("reading {}", file.name()))?;
        if read == 0 {
            return file.sync();
        }
        file.write_body(&piece[..read], offset)?;
        offset += read as u64;
    }
}

/// The offset up to which the manifest knows a file to be durable.
fn durable_bytes(file: &BlobFile, state: &DatabaseState) -> u64 {
    state.durable_blobs.get(&file.id).copied().unwrap_or(0)
}

/// Where the chain of headers of a file that was being written ends, and the damage there if it should not end yet.
fn end_of(file: &BlobFile, state: &DatabaseState) -> Result<(u64, Option<Corruption>)> {
    let (end, found) = match file.check_header() {
        Ok(()) => (walk(file, |_, _| Ok(()))?, None),
        Err(Error::Corruption(corruption)) if file.has_first_record()? => return Ok((0, Some(corruption))),
        Err(Error::Corruption(corruption)) => (0, Some(corruption)),
        Err(error) => return Err(error),
    };
    let durable = durable_bytes(file, state);
    if end >= durable {
        return Ok((end, None));
    }
    let expected = format!("a record's header: the file was synced up to offset {durable}");
    let no_header = || Corruption::new(file.name(), end, expected, "none");
    Ok((end, Some(found.unwrap_or_else(no_header))))
}

/// The damage to the record to which `reference` leads. Checked only in files that were being written: records of
/// finished files were durable before anything referred to them, and a reference to a file that is gone is in an
/// obsolete version.
pub(super) fn unsound(files: &BlobFiles, reference: &Reference) -> Result<Option<Corruption>> {
    let Some(file) = files.get(&reference.file).filter(|file| !file.is_sealed()) else { return Ok(None) };
    // Versions of a value that was appended to refer to the same records again and again.
    if file.is_known_sound(reference.body) {
        return Ok(None);
    }
    let mut reader = RecordReader::new(file.clone(), *reference);
    loop {
        match reader.next_chunk() {
            Ok(Some(_)) => {}
            Ok(None) => {
                file.note_sound(reference.body);
                return Ok(None);
            }
            Err(Error::Corruption(corruption)) => return Ok(Some(corruption)),
            Err(error) => return Err(error),
        }
    }
}

/// Finishes the files that were being written, and counts the references of the tables and the log. If `read_only`,
/// their ends are known in memory only.
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
        state.blobs.insert(file.id, Some(file.size()));
    }
    state.durable_blobs.clear();
    let in_tables = state.keyspaces.values().flat_map(|keyspace| &keyspace.blob_references);
    let in_tables = in_tables.map(|(&file, &bytes)| (file, i64::try_from(bytes).unwrap_or(i64::MAX)));
    for (number, bytes) in in_tables.chain(log.iter()) {
        if let Some(file) = files.get(&number) {
            file.add_live(bytes);
        }
    }
    Ok(())
}
