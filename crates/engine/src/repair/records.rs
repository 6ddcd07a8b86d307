//! Records of large items: which of those referred to can be read, and where they are.
//!
//! A record is trusted if all its chunks are sound. The chain of headers from record to record is not needed for
//! reading, but for garbage collection: if it is broken, the sound records that are referred to are copied to a new
//! file.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alluvium_base::{BlobId, HashRange, KeyspaceId};
use alluvium_io::Storage;

use super::Repair;
use super::report::ManifestRepair;
use crate::blob::{BlobFile, GATHER_BYTES, LargeValue, RecordHeader, RecordReader, Reference, walk};
use crate::error::Result;
use crate::file_names::blob_file_name;
use crate::item::{Item, ItemKind};
use crate::level::Reclaimer;
use crate::manifest::DatabaseState;
use crate::merge::YoungItems;

/// The outcome for an item.
pub(super) enum Settled {
    AsItIs,
    /// It is replaced by this encoded item.
    Instead(Vec<u8>),
    /// A record to which it referred is lost.
    Lost,
}

/// The blob files as a repair finds them.
pub(super) struct Records {
    reclaimer: Arc<Reclaimer>,
    dry_run: bool,
    /// By number; `None` for missing files.
    files: BTreeMap<BlobId, Option<RecordFile>>,
    /// Whether a reference to a file that is not in `files` is known to be hidden: the sound manifest has dropped the
    /// file.
    unknown_is_hidden: bool,
    /// Records that were checked: their present location, or `None` for lost ones.
    settled: BTreeMap<(BlobId, u64), Option<Reference>>,
}

struct RecordFile {
    file: Arc<BlobFile>,
    /// The end of the chain of headers. Records before it are not moved.
    chain_end: u64,
    /// Whether the file was finished: all of it was durable before anything referred to it.
    is_sealed: bool,
    /// Whether all of its records are moved.
    is_broken: bool,
    /// The file to which sound records are moved.
    target: Option<Arc<BlobFile>>,
}

impl Records {
    pub fn none(storage: &Arc<dyn Storage>, dry_run: bool) -> Self {
        Self {
            reclaimer: Reclaimer::new(storage.clone(), Vec::new()),
            dry_run,
            files: BTreeMap::new(),
            unknown_is_hidden: true,
            settled: BTreeMap::new(),
        }
    }

    /// The present location of the record, or `None` if it is lost.
    fn settle(
        &mut self,
        keyspace: KeyspaceId,
        reference: Reference,
        take_number: impl FnOnce() -> BlobId,
    ) -> Result<Option<Reference>> {
        let place = (reference.file, reference.body);
        let unsettled = match self.settled.entry(place) {
            Entry::Occupied(known) => return Ok(*known.get()),
            Entry::Vacant(vacant) => vacant,
        };
        let found = match self.files.get_mut(&reference.file) {
            None if self.unknown_is_hidden => Some(reference),
            None | Some(None) => None,
            Some(Some(found)) if !is_sound(&found.file, reference) => None,
            Some(Some(found)) => {
                let stays = !found.is_broken && reference.body_end() <= found.chain_end;
                if stays || self.dry_run {
                    Some(reference)
                } else {
                    let target = match &found.target {
                        Some(target) => target,
                        None => found.target.insert(BlobFile::create(&self.reclaimer, take_number())?),
                    };
                    Some(copy(keyspace, &found.file, reference, target)?)
                }
            }
        };
        unsettled.insert(found);
        Ok(found)
    }
}

impl Repair {
    /// Opens all blob files, including those that `state` does not name: a part of the manifest may be lost. `required`
    /// is how far unfinished files are known to be durable.
    pub fn open_records(
        &mut self,
        state: &DatabaseState,
        required: &BTreeMap<BlobId, u64>,
        manifest: ManifestRepair,
    ) -> Result<()> {
        let present = self.present_blob_files()?;
        let mut numbers: BTreeSet<BlobId> = state.blobs.keys().copied().collect();
        numbers.extend(&present);
        self.records.unknown_is_hidden = manifest != ManifestRepair::Rebuilt;
        for number in numbers {
            let found = if present.contains(&number) {
                let sealed_bytes = state.blobs.get(&number).copied().flatten();
                let required = required.get(&number).copied().unwrap_or(0);
                Some(self.open_record_file(number, sealed_bytes, required, manifest)?)
            } else {
                None
            };
            self.records.files.insert(number, found);
        }
        Ok(())
    }

    fn open_record_file(
        &mut self,
        number: BlobId,
        sealed_bytes: Option<u64>,
        required: u64,
        manifest: ManifestRepair,
    ) -> Result<RecordFile> {
        let file = BlobFile::open_damaged(&self.records.reclaimer, number)?;
        let mut header = BlobFile::open(&self.records.reclaimer, number, Some(0))?.check_header();
        if file.is_newer() {
            std::mem::replace(&mut header, Ok(()))?;
        }
        let is_sealed = sealed_bytes.is_some();
        let size = sealed_bytes.unwrap_or(file.size());
        if sealed_bytes == Some(0) {
            // It was never written: the disk was full.
            header = Ok(());
        }
        file.limit(size.min(file.size()));
        let chain_end = if header.is_ok() { walk(&file, |_, _| Ok(()))? } else { 0 };
        // The headers of an unfinished file tell where it ends; they may end early if there was a crash. Only a
        // manifest that is sound to its end can show that a file was unfinished; otherwise a file without a header is
        // damaged.
        let is_known_unfinished = !is_sealed && manifest == ManifestRepair::Sound;
        let durable = if is_sealed { size } else { required };
        let is_torn = is_known_unfinished && durable == 0 && !file.has_first_record()?;
        let is_broken = chain_end < durable || header.is_err() && !is_torn;
        if is_broken {
            self.report.blob_files_rewritten += 1;
            self.report.problem(match header {
                Err(error) => error.to_string(),
                Ok(()) => format!("{}: no record at offset {chain_end} of {size}", blob_file_name(number)),
            });
        }
        Ok(RecordFile { file, chain_end, is_sealed, is_broken, target: None })
    }

    /// The outcome for an item of a table or the log. Counts nothing.
    pub fn settle(&mut self, keyspace: KeyspaceId, item: &Item<'_>) -> Result<Settled> {
        let large = if item.is_reference() { LargeValue::decode(item.value) } else { None };
        let Some(mut large) = large else { return Ok(Settled::AsItIs) };
        let mut has_moved = false;
        for piece in &mut large.pieces {
            let next_file = &mut self.next_file;
            let take_number = || {
                *next_file += 1;
                BlobId(*next_file - 1)
            };
            // A value is lost if a part of it is lost.
            let Some(found) = self.records.settle(keyspace, *piece, take_number)? else {
                return Ok(Settled::Lost);
            };
            has_moved |= found != *piece;
            *piece = found;
        }
        if !has_moved {
            return Ok(Settled::AsItIs);
        }
        let mut encoded = Vec::new();
        Item { kind: ItemKind::Reference, value: &large.encode(), ..*item }.encode(&mut encoded);
        Ok(Settled::Instead(encoded))
    }

    /// Whether an item may stay as it is, as far as is known of its records.
    pub fn is_settled(&mut self, keyspace: KeyspaceId, item: &Item<'_>) -> Result<bool> {
        let is_moving = Reference::all_of(item).iter().any(|reference| {
            let file = self.records.files.get(&reference.file);
            matches!(file, Some(Some(RecordFile { is_broken: true, .. })))
        });
        Ok(!is_moving && matches!(self.settle(keyspace, item)?, Settled::AsItIs))
    }

    /// Whether openings check the record: it is in a file that was being written, which may never have been synced.
    pub fn is_judged_by_openings(&self, item: &Item<'_>) -> bool {
        Reference::all_of(item).iter().any(|reference| {
            let file = self.records.files.get(&reference.file);
            matches!(file, Some(Some(RecordFile { is_sealed: false, is_broken: false, .. })))
        })
    }

    /// The items as they are after the repair. If `hides`, an item whose record is lost is replaced by a tombstone, so
    /// that no older version becomes visible.
    pub fn settle_all(&mut self, keyspace: KeyspaceId, items: YoungItems, hides: bool) -> Result<YoungItems> {
        let mut settled = YoungItems::with_capacity(items.len(), items.encoded_bytes() as usize);
        let mut range = items.range(HashRange::ALL);
        let mut lost = 0;
        while let Some((hash, encoded)) = range.peek() {
            match self.settle(keyspace, &encoded.item)? {
                Settled::AsItIs => settled.push(hash, 0, encoded.bytes),
                Settled::Instead(bytes) => settled.push(hash, 0, &bytes),
                Settled::Lost => {
                    lost += 1;
                    let mut tombstone = Vec::new();
                    Item::tombstone(encoded.item.key).encode(&mut tombstone);
                    if hides {
                        settled.push(hash, 0, &tombstone);
                    }
                }
            }
            range.advance();
        }
        self.report.items_lost += lost;
        self.report.large_items_lost += lost;
        settled.finish();
        Ok(settled)
    }

    /// Makes moved records durable, and removes the files from which they were moved from `state`.
    pub fn finish_records(&mut self, state: &mut DatabaseState) -> Result<()> {
        for (&number, found) in &self.records.files {
            let Some(RecordFile { is_broken, target, .. }) = found else { continue };
            if *is_broken {
                state.blobs.remove(&number);
                self.replaced.push(blob_file_name(number));
            }
            if let Some(target) = target {
                target.sync()?;
                state.blobs.insert(target.id, Some(target.size()));
            }
        }
        Ok(())
    }
}

/// Whether every chunk of a record is sound. A chunk that cannot be read is not.
fn is_sound(file: &Arc<BlobFile>, reference: Reference) -> bool {
    let mut reader = RecordReader::new(file.clone(), reference);
    loop {
        match reader.next_chunk() {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

/// Appends a copy of a record to another file.
fn copy(
    keyspace: KeyspaceId,
    from: &Arc<BlobFile>,
    reference: Reference,
    to: &BlobFile,
) -> Result<Reference> {
    let (key, value) = RecordReader::new(from.clone(), reference).read_all()?;
    let (key_len, value_len) = (reference.key_len, reference.value_len);
    to.append(RecordHeader { keyspace, key_len, value_len, is_aligned: false }, [&key, &value], GATHER_BYTES)
}
