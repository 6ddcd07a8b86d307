//! Garbage collection: blob files that contain little live data are emptied and removed (WiscKey, Lu et al., FAST 2016,
//! §3.3.3).
//!
//! Counts and estimates determine which file is worth emptying. Which of its records are live is looked up, record by
//! record, so a wrong estimate costs work and never an item. A live record is appended to the current file and its item
//! written again, provided that the key was not written meanwhile. The file is removed when all this is durable. We
//! differ from WiscKey, which collects at the tail of one log: the file with the largest share of garbage is emptied
//! first, regardless of its age.

use std::sync::Arc;

use alluvium_io::sync::TryLockError;
use alluvium_io::sync::atomic::Ordering;

use crate::blob::frame::FILE_HEADER_BYTES;
use crate::blob::{BlobFile, LargeValue, RecordHeader, RecordReader, Reference, StoredKey, walk};
use crate::core::{KeptPieces, Moment, PendingRecord, RecordWriter, Shared, Witness, find, write_item};
use crate::error::{Error, Result};
use crate::item::{Item, ItemKind};
use crate::level::Version;
use crate::metadata::Metadata;
use crate::planted_race::PlantedRace;
use crate::table::SectionScanner;

/// Garbage is collected when it exceeds this share of the live bytes.
const GARBAGE_SHARE: f64 = 0.06;
/// Minimum share of a file that emptying it must free.
const VICTIM_GARBAGE_MIN: f64 = 0.03;
/// Files are joined when their number exceeds twice the number that their bytes require plus this.
const SPARE_FILES: u64 = 16;

/// Seals, removes or empties one file. Returns `false` if there is nothing to do.
pub(crate) fn collect(shared: &Shared) -> Result<bool> {
    let _only_one = shared.collect_lock.lock().expect("no panic while held");
    if shared.blobs.files().is_empty() {
        return Ok(false);
    }
    let sealed = shared.blobs.seal_ended(shared)?;
    if let Some(file) = unreferenced(shared) {
        shared.blobs.drop_file(shared, &file)?;
        return Ok(true);
    }
    let Some(victim) = victim(shared) else { return Ok(sealed) };
    if !victim.is_sealed() {
        // The current file: the next call finds it sealed, or waits for its writers.
        shared.blobs.end_current(Some(victim.id));
        return shared.blobs.seal_ended(shared).map(|ended| ended || sealed);
    }
    if victim.live_estimate() > 0 {
        // What is live is copied. It leaves space to the log, and waits until there is some.
        check_room(shared, &victim, 0)?;
    }
    match empty(shared, &victim) {
        // Records that cannot be read are not thrown away.
        Err(Error::Corruption(_)) => victim.set_damaged(),
        Ok(Relocation::Postponed) => return Ok(sealed),
        outcome => {
            outcome?;
            shared.counters.blob_files_emptied.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(true)
}

/// Whether [`collect`] would find work to do.
pub(crate) fn collect_is_due(shared: &Shared) -> bool {
    unreferenced(shared).is_some() || victim(shared).is_some()
}

/// Garbage in relation to the target of collection: above 1, files are emptied.
pub(crate) fn garbage_pressure(shared: &Shared) -> f64 {
    let (garbage, live) = garbage_and_live(shared);
    if garbage <= shared.settings.blob_garbage_bytes_min {
        return 0.0;
    }
    garbage as f64 / (GARBAGE_SHARE * live.max(1) as f64)
}

fn garbage_and_live(shared: &Shared) -> (u64, u64) {
    let files = shared.blobs.files();
    let live = files.values().map(|file| file.live_estimate()).sum();
    (files.values().map(|file| garbage(file)).sum(), live)
}

fn garbage(file: &BlobFile) -> u64 {
    file.size().saturating_sub(FILE_HEADER_BYTES as u64 + file.live_estimate())
}

/// A sealed file to which nothing refers.
fn unreferenced(shared: &Shared) -> Option<Arc<BlobFile>> {
    shared.blobs.files().values().find(|file| file.is_sealed() && file.live() == 0).cloned()
}

/// The file to be emptied next: the one with the largest share of garbage if there is too much in total, the smallest
/// one if there are too many files.
fn victim(shared: &Shared) -> Option<Arc<BlobFile>> {
    let files = shared.blobs.files();
    let has_writers =
        |file: &BlobFile| file.has_writers() && !shared.planted_bugs.has(PlantedRace::CollectBesideWriters);
    let candidates = || files.values().filter(|file| !file.is_damaged() && !has_writers(file));
    let share = |file: &BlobFile| garbage(file) as f64 / file.size().max(1) as f64;
    if garbage_pressure(shared) > 1.0 {
        let most = candidates().max_by(|a, b| share(a).total_cmp(&share(b)));
        if let Some(most) = most.filter(|file| share(file) >= VICTIM_GARBAGE_MIN) {
            return Some(most.clone());
        }
    }
    let bytes: u64 = files.values().map(|file| file.size()).sum();
    let enough = SPARE_FILES + 2 * bytes / shared.blobs.file_bytes(shared);
    if files.len() as u64 <= enough {
        return None;
    }
    candidates().filter(|file| file.is_sealed()).min_by_key(|file| file.size()).cloned()
}

/// The result for a record, or for all records of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relocation {
    /// Nothing refers to the old record any more.
    Done,
    /// A barrier holds updates back, or another thread updates the key. The file keeps all its records, and a later
    /// [`collect`] empties it.
    Postponed,
}

/// Copies the live records of a sealed file to the current one and removes the file.
fn empty(shared: &Shared, file: &Arc<BlobFile>) -> Result<Relocation> {
    let mut outcome = Relocation::Done;
    let end = walk(file, |header, reference| {
        if outcome == Relocation::Done {
            outcome = relocate(shared, file, header, reference)?;
        }
        Ok(())
    })?;
    if outcome == Relocation::Postponed {
        return Ok(outcome);
    }
    if end != file.size() {
        let expected = format!("a record of a file of {} bytes", file.size());
        return Err(alluvium_base::Corruption::new(file.name(), end, expected, "no record's header").into());
    }
    shared.blobs.drop_file(shared, file)?;
    Ok(outcome)
}

/// Copies a record to the current file if it is the newest of its key.
fn relocate(
    shared: &Shared,
    file: &Arc<BlobFile>,
    header: &RecordHeader,
    reference: Reference,
) -> Result<Relocation> {
    shared.check_refusal()?;
    let keyspaces = shared.all_keyspaces();
    let Some(keyspace) = keyspaces.into_iter().find(|keyspace| keyspace.id == header.keyspace) else {
        return Ok(Relocation::Done);
    };
    shared.open_tables_of(&keyspace)?;
    let key = match RecordReader::new(file.clone(), reference).in_pieces(1).read_key() {
        Ok(key) => key,
        // Usually a record that its writer abandoned: its body was never written.
        Err(Error::Corruption(corruption)) => {
            let read_bytes = shared.memory.budget().read_bytes;
            let is_needed = refers_to(&keyspace.version.load(), &reference, read_bytes)?;
            return if is_needed { Err(corruption.into()) } else { Ok(Relocation::Done) };
        }
        Err(error) => return Err(error),
    };
    let stored = StoredKey::of(&key);
    let hash = keyspace.hasher.hash(&stored);
    // An append that joins long records must not find them moved each time it has finished. The append may wait for a
    // thread that this one blocks, so this one does not wait for the append.
    let _turn = match keyspace.update_stripe(hash).try_lock() {
        Ok(turn) => turn,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => return Ok(Relocation::Postponed),
    };
    let mut copy: Option<PendingRecord> = None;
    loop {
        let version = keyspace.version.load_full();
        let witness = Witness::of(&version, hash, &stored)?;
        if keyspace.update_barriers.hold_back(hash) {
            // Items change here without the log: what is read now must not be written. It is postponed.
            return Ok(Relocation::Postponed);
        }
        let reads = &shared.counters.lookup_page_reads;
        let found = find(&version, reads, hash, &stored, |item| {
            let item = item.filter(|item| Reference::all_of(item).contains(&reference))?;
            let LargeValue { pieces, tail } = LargeValue::decode(item.value)?;
            Some((Metadata::of(item), Moment::Now(shared).is_live(item), pieces, tail.to_vec()))
        });
        let found = match found {
            // It is in a younger version.
            Err(Error::MissingFile { .. }) if !Arc::ptr_eq(&version, &keyspace.version.load()) => continue,
            found => found?,
        };
        let Some((metadata, is_live, mut pieces, tail)) = found else { return Ok(Relocation::Done) };
        let Metadata { flags, expires_at_ms } = metadata;
        // The other records of the value are not moved.
        let mut kept = None;
        let value;
        let item = if is_live {
            let record = match copy.take() {
                Some(record) => record,
                None => copy_record(shared, file, header, reference)?,
            };
            let moved = copy.insert(record).reference();
            let others = pieces.iter().copied().filter(|piece| *piece != reference).collect();
            kept = Some(KeptPieces::remember(shared, others));
            pieces.iter_mut().filter(|piece| **piece == reference).for_each(|piece| *piece = moved);
            value = LargeValue { pieces, tail: &tail }.encode();
            Item { kind: ItemKind::Reference, flags, expires_at_ms, key: &stored, value: &value }
        } else {
            // The references would outlive the record, and a clock set back would make them visible again.
            Item::tombstone(&stored)
        };
        let witness = Some(witness).filter(|_| !shared.planted_bugs.has(PlantedRace::RelocateWithoutWitness));
        match write_item(shared, &keyspace, hash, &item, witness) {
            Ok(None) => {}
            Ok(Some(_)) => {
                kept.into_iter().for_each(KeptPieces::commit);
                if let Some(record) = copy.filter(|_| is_live) {
                    record.commit();
                }
                return Ok(Relocation::Done);
            }
            // The record is no longer needed.
            Err(Error::KeyspaceDropped { .. }) => return Ok(Relocation::Done),
            Err(error) => return Err(error),
        }
    }
}

fn copy_record(
    shared: &Shared,
    file: &Arc<BlobFile>,
    header: &RecordHeader,
    reference: Reference,
) -> Result<PendingRecord> {
    let (key_len, value_len) = (header.key_len as usize, header.value_len as usize);
    check_room(shared, file, (key_len + value_len) as u64)?;
    let mut writer = RecordWriter::begin(shared, header.keyspace, key_len, value_len)?;
    let chunks = shared.memory.budget().blob_piece_chunks();
    let mut reader = RecordReader::new(file.clone(), reference).in_pieces(chunks);
    while let Some(content) = reader.next_chunk()? {
        writer.write(content)?;
    }
    let record = writer.finish()?;
    record.count_as_relocated(shared);
    Ok(record)
}

/// Fails, as what can be done later, unless there is room for the copy of a record beside what is left to the log.
fn check_room(shared: &Shared, file: &BlobFile, bytes: u64) -> Result<()> {
    shared.check_failure()?;
    let has_room = file.file.check_available(file.size(), shared.reserve.bytes() + bytes);
    has_room.map_err(|error| Error::DiskFull { reason: error.to_string() })
}

/// Whether some table or log store refers to a record whose key can't be read. Reads all tables of the keyspace.
fn refers_to(version: &Version, reference: &Reference, read_bytes: usize) -> Result<bool> {
    for store in &version.log_stores {
        for (_, _, offset) in
            store.shards().iter().flat_map(|shard| shard.index().entries().collect::<Vec<_>>())
        {
            if Reference::all_of(&store.segment.item_at(offset)?).contains(reference) {
                return Ok(true);
            }
        }
    }
    for section in version.body.sections() {
        let mut scanner = SectionScanner::with_read_bytes(section.clone(), 0, read_bytes);
        while scanner.advance()? {
            let item = scanner.current_encoded();
            if item.is_some_and(|(_, item)| Reference::all_of(&item.item).contains(reference)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
