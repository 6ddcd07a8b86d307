//! Stores and reads large items, whole or as streams.

use std::borrow::Cow;
use std::io::{self, Read};
use std::sync::Arc;

use alluvium_base::{Corruption, KeyHash, KeyspaceId};
use alluvium_io::sync::atomic::Ordering;

use super::keyspace::Keyspace;
use super::pieces::PieceReader;
use super::read::{View, retry_when_moved};
use super::write::check_lengths;
use crate::blob::{Blobs, INLINE_KEY_BYTES_MAX, LargeValue, RecordReader, Reference, StoredKey, is_stand_in};
use crate::core::{KeyspaceShared, LOOKUP_BYTES_MIN, PendingRecord, RecordWriter, Shared, find, write_item};
use crate::error::{Error, Result};
use crate::item::{Item, ItemKind};
use crate::limits::{KEY_BYTES_MAX, VALUE_BYTES_MAX};
use crate::metadata::{Metadata, ValueWithMetadata};
use crate::table::HeldRoom;

/// Number of bytes of a stream that are moved at a time.
const PIECE_BYTES: usize = 64 << 10;
/// Number of chunks in the buffer of a [`ValueReader`].
const READER_CHUNKS: u64 = 4;

/// An item in the form stored in the log and tables. A large one is stored in a blob file; its record is garbage unless
/// [`StoredItem::commit`] is called after the log refers to it.
#[derive(Debug)]
pub(super) struct StoredItem<'a> {
    kind: ItemKind,
    metadata: Metadata,
    key: StoredKey<'a>,
    value: &'a [u8],
    record: Option<PendingRecord>,
}

/// Whether an item is stored inline. All special handling of large items begins where this is false.
#[inline]
pub(super) fn is_inline(shared: &Shared, item: &Item<'_>) -> bool {
    item.key.len() <= INLINE_KEY_BYTES_MAX
        && !is_stand_in(item.key)
        && item.encoded_len() <= shared.settings.inline_bytes_max
}

impl<'a> StoredItem<'a> {
    /// Writes `item`, whose lengths are within the limits, to a blob file if it is large.
    pub fn store(shared: &Shared, keyspace: KeyspaceId, item: &Item<'a>) -> Result<Self> {
        let metadata = Metadata::of(item);
        let key = StoredKey::of(item.key);
        let mut stored = Self { kind: item.kind, metadata, key, value: item.value, record: None };
        if !is_inline(shared, item) && !item.is_tombstone() {
            stored.kind = ItemKind::Reference;
            let len = item.value.len();
            (0..len.div_ceil(PIECE_BYTES)).for_each(|piece| {
                let bytes = PIECE_BYTES.min(len - piece * PIECE_BYTES);
                shared.throttle.pay_large(bytes as u64, &*shared.clock);
            });
            stored.record = Some(RecordWriter::write_record(shared, keyspace, item.key, item.value)?);
        }
        Ok(stored)
    }

    /// The item to append to the log.
    pub fn item(&self) -> Item<'_> {
        let Metadata { flags, expires_at_ms } = self.metadata;
        let value = self.record.as_ref().map_or(self.value, PendingRecord::reference_bytes);
        Item { kind: self.kind, flags, expires_at_ms, key: &self.key, value }
    }

    /// The record that was written to a blob file, if any.
    pub fn into_record(self) -> Option<PendingRecord> {
        self.record
    }

    /// Declares that the log refers to the record.
    pub fn commit(self) {
        if let Some(record) = self.record {
            record.commit();
        }
    }
}

impl Keyspace {
    /// Stores the next `value_len` bytes of `value` under `key`, with at most one mebibyte of them in memory at a time.
    /// Otherwise like [`Keyspace::insert_with`].
    ///
    /// # Errors
    /// [`Error::Io`] of kind `UnexpectedEof` if `value` ends early; then the key keeps its previous value.
    pub fn insert_reader(
        &self,
        key: impl AsRef<[u8]>,
        value_len: usize,
        mut value: impl Read,
        metadata: Metadata,
    ) -> Result<()> {
        let key = key.as_ref();
        let shared = self.database();
        shared.check_failure()?;
        check_lengths(key.len(), value_len)?;
        self.shared.check_key(key)?;
        let reading = |source| Error::Io { context: "reading the value to store".to_owned(), source };
        let whole_bytes = shared.memory.budget().blob_whole_bytes.min(1 << 20) as usize;
        if key.len() + value_len <= shared.settings.blob_aligned_bytes_min.min(whole_bytes) {
            let mut bytes = vec![0; value_len];
            value.read_exact(&mut bytes).map_err(reading)?;
            return self.insert_with(key, bytes, metadata);
        }
        shared.check_room_for((key.len() + value_len) as u64)?;
        let mut record = RecordWriter::begin(shared, self.shared.id, key.len(), value_len)?;
        record.write(key)?;
        let mut left = value_len;
        let mut piece = vec![0; PIECE_BYTES];
        while left > 0 {
            let piece = &mut piece[..left.min(PIECE_BYTES)];
            value.read_exact(piece).map_err(reading)?;
            record.write(piece)?;
            shared.throttle.pay_large(piece.len() as u64, &*shared.clock);
            left -= piece.len();
        }
        let record = record.finish()?;
        let key = StoredKey::of(key);
        let stored =
            StoredItem { kind: ItemKind::Reference, metadata, key, value: &[], record: Some(record) };
        self.write_stored(stored)
    }

    /// Appends an item whose large value has been stored already.
    pub(super) fn write_stored(&self, stored: StoredItem<'_>) -> Result<()> {
        let shared = self.database();
        let item = stored.item();
        let hash = self.shared.hasher.hash(item.key);
        note_hidden(shared, &self.shared, hash, &item)?;
        shared.throttle.pay(1, &*shared.clock);
        let position = write_item(shared, &self.shared, hash, &item, None)?.expect("an unconditional write");
        count_put(shared, &item);
        stored.commit();
        self.acknowledge(position)
    }

    /// The value of `key` as a stream; `None` if the key is absent. Costs as much as [`Keyspace::get`], but has only
    /// 256 KiB of a large value in memory at a time.
    ///
    /// The stream keeps returning that value even if the key is overwritten or removed meanwhile.
    pub fn get_reader(&self, key: impl AsRef<[u8]>) -> Result<Option<ValueReader>> {
        let key = key.as_ref();
        let shared = &self.handle.shared;
        self.read(key, |view, item| item.map(|item| view.value_reader(shared, key, item)).transpose())
    }

    /// The value of `key` with its metadata, as a stream if it has more than `value_bytes_max` bytes and is stored in a
    /// blob file; `None` if the key is absent. Costs as much as [`Keyspace::get`].
    pub fn get_or_reader(
        &self,
        key: impl AsRef<[u8]>,
        value_bytes_max: usize,
    ) -> Result<Option<ValueOrReader>> {
        let key = key.as_ref();
        let shared = &self.handle.shared;
        self.read(key, |view, item| {
            let Some(item) = item else { return Ok(None) };
            if large_content_len(item).is_some_and(|len| len > (key.len() + value_bytes_max) as u64) {
                return view
                    .value_reader(shared, key, item)
                    .map(|reader| Some(ValueOrReader::Reader(reader)));
            }
            Ok(view.with_metadata(key, Some(item))?.map(ValueOrReader::Value))
        })
    }
}

/// Counts a write by a user.
pub(super) fn count_put(shared: &Shared, item: &Item<'_>) {
    shared.counters.puts.fetch_add(1, Ordering::Relaxed);
    let bytes = large_content_len(item).unwrap_or((item.key.len() + item.value.len()) as u64);
    shared.counters.bytes_put.fetch_add(bytes, Ordering::Relaxed);
}

/// Notes the large item that a write is about to replace, if looking for it is worth a page read.
#[inline]
pub(super) fn note_hidden(
    shared: &Shared,
    keyspace: &KeyspaceShared,
    hash: KeyHash,
    item: &Item<'_>,
) -> Result<()> {
    if keyspace.hides_large.load(Ordering::Relaxed) || item.is_reference() {
        return look_up_hidden(shared, keyspace, hash, item);
    }
    Ok(())
}

#[cold]
fn look_up_hidden(shared: &Shared, keyspace: &KeyspaceShared, hash: KeyHash, item: &Item<'_>) -> Result<()> {
    let is_large = large_content_len(item).is_some_and(|len| len >= LOOKUP_BYTES_MIN);
    if !is_large && !keyspace.hides_large.load(Ordering::Relaxed) {
        return Ok(());
    }
    let hidden = retry_when_moved(keyspace, |version| {
        let store = version.active();
        if store.find(store.shard(hash), hash, item.key)?.is_some() {
            // It is counted exactly when the index changes.
            return Ok(None);
        }
        let reads = &shared.counters.lookup_page_reads;
        find(version, reads, hash, item.key, |item| item.map(Reference::all_of))
    })?;
    hidden.into_iter().flatten().for_each(|reference| shared.blobs.hide(&reference));
    Ok(())
}

/// Bytes of key and value of a large item.
fn large_content_len(item: &Item<'_>) -> Option<u64> {
    let large = if item.is_reference() { LargeValue::decode(item.value) } else { None };
    large.map(|large| large.content_len())
}

impl View<'_> {
    /// The value of an item of `key`, wherever it is stored.
    #[inline]
    pub fn value(&self, key: &[u8], item: &Item<'_>) -> Result<Vec<u8>> {
        self.value_of(key, item).map(Cow::into_owned)
    }

    /// Like [`View::value`], without a copy where possible.
    pub fn value_of<'i>(&self, key: &[u8], item: &Item<'i>) -> Result<Cow<'i, [u8]>> {
        if item.is_reference() {
            self.large_value(key, item).map(Cow::Owned)
        } else {
            Ok(Cow::Borrowed(item.value))
        }
    }

    #[cold]
    fn large_value(&self, key: &[u8], item: &Item<'_>) -> Result<Vec<u8>> {
        let large = LargeValue::required(item)?;
        let (stored, value) = self.read_large(&large)?;
        check_key(&large.pieces[0], &stored, key)?;
        // A value has no place for the key of which the digest is stored.
        if !is_stand_in(item.key) && self.shared.rows.admits_value(value.len()) {
            self.fill_row(item.key, Some(&Item { kind: ItemKind::Value, value: &value, ..*item }), false);
        }
        Ok(value)
    }

    /// The values of several items of one record each, with their keys. Their first mebibytes are in flight together.
    pub fn large_values(&self, items: &[(&[u8], Reference)]) -> Result<Vec<Vec<u8>>> {
        let piece = self.shared.memory.budget().blob_piece_bytes as u64;
        let pieces = items.iter().map(|(_, reference)| piece.min(reference.stored_bytes()));
        let _room = self.shared.memory.operations.buffers.hold(pieces.sum());
        let mut readers = Vec::with_capacity(items.len());
        for (_, reference) in items {
            readers.push(self.record_of(*reference, u64::MAX)?);
        }
        RecordReader::read_first_pieces(&*self.shared.storage, &mut readers);
        let read = readers.into_iter().zip(items).map(|(reader, (key, reference))| {
            let (stored, value) = reader.read_all()?;
            check_key(reference, &stored, key)?;
            Ok(value)
        });
        read.collect()
    }

    fn value_reader(&self, shared: &Arc<Shared>, key: &[u8], item: &Item<'_>) -> Result<ValueReader> {
        let (shared, metadata) = (shared.clone(), Metadata::of(item));
        if !item.is_reference() {
            let left = Left::Inline(io::Cursor::new(item.value.to_vec()));
            return Ok(ValueReader { shared, metadata, len: item.value.len() as u64, left });
        }
        let reader = self.piece_reader(key, item, READER_CHUNKS)?;
        let len = reader.len();
        Ok(ValueReader { shared, metadata, len, left: Left::Pieces(Box::new(reader)) })
    }

    /// Key and value of an item of kind reference.
    pub fn large_item(&self, item: &Item<'_>) -> Result<(Vec<u8>, Vec<u8>)> {
        let large = LargeValue::required(item)?;
        let (key, value) = self.read_large(&large)?;
        check_key(&large.pieces[0], &StoredKey::of(&key), item.key)?;
        Ok((key, value))
    }

    /// Key and value of an item, wherever they are stored.
    pub fn any_item(&self, item: &Item<'_>) -> Result<(Vec<u8>, Vec<u8>)> {
        if item.is_reference() { self.large_item(item) } else { Ok((item.key.to_vec(), item.value.to_vec())) }
    }

    /// Whether an item under the stand-in of `key` belongs to that key, and not to another one with the same digest.
    pub fn is_of_key(&self, key: &[u8], item: &Item<'_>) -> Result<bool> {
        if !is_stand_in(item.key) {
            return Ok(true);
        }
        Ok(self.record_of(LargeValue::required(item)?.pieces[0], 2)?.read_key()? == key)
    }

    /// Room for the buffers through which records are read together.
    pub fn piece_room(&self, pieces: &[Reference]) -> Option<HeldRoom<'_>> {
        let piece = self.shared.memory.budget().blob_piece_bytes as u64;
        let bytes = pieces.iter().map(|reference| piece.min(reference.stored_bytes())).sum();
        self.shared.memory.operations.buffers.hold(bytes)
    }

    /// A reader of the record to which `reference` leads, which reads this many chunks at a time.
    pub fn record_of(&self, reference: Reference, chunks: u64) -> Result<RecordReader> {
        let held = self.version.blobs.files.get(&reference.file).cloned();
        // A file that is younger than the version: the version's active log store may refer to it.
        let file = held.or_else(|| self.shared.blobs.file(reference.file));
        let Some(file) = file else {
            // The last version of a dropped keyspace has a log store, but no files.
            self.keyspace.check_present()?;
            return Err(Blobs::missing(reference.file));
        };
        self.shared.blobs.reads.fetch_add(1, Ordering::Relaxed);
        let chunks = chunks.min(self.shared.memory.budget().blob_piece_chunks());
        Ok(RecordReader::new(file, reference).in_pieces(chunks))
    }
}

/// Checks that a record belongs to the key under which it was found.
pub(super) fn check_key(reference: &Reference, found: &[u8], key: &[u8]) -> Result<()> {
    if found == key {
        return Ok(());
    }
    let file = crate::file_names::blob_file_name(reference.file);
    let expected = format!("the key of {} bytes that the item is stored under", key.len());
    let found = format!("another one of {} bytes", found.len());
    Err(Corruption::new(file, reference.body, expected, found).into())
}

/// A value, or a stream of a long one, from [`Keyspace::get_or_reader`].
#[derive(Debug)]
pub enum ValueOrReader {
    /// The value, and what is stored with it.
    Value(ValueWithMetadata),
    /// A stream of the value.
    Reader(ValueReader),
}

/// The value of an item as a stream, from [`Keyspace::get_reader`].
///
/// Each chunk of 64 KiB is checked before a byte of it is returned. A damaged one ends the stream with an [`io::Error`]
/// of kind `InvalidData`, whose inner error is an [`Error`] that names the file and the offset.
#[derive(Debug)]
pub struct ValueReader {
    shared: Arc<Shared>,
    metadata: Metadata,
    len: u64,
    left: Left,
}

#[derive(Debug)]
enum Left {
    Inline(io::Cursor<Vec<u8>>),
    Pieces(Box<PieceReader>),
}

impl ValueReader {
    /// Length of the whole value in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// What is stored with the value.
    pub fn metadata(&self) -> Metadata {
        self.metadata
    }

    /// Whether the whole value has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Read for ValueReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.shared.check_open().map_err(io::Error::other)?;
        match &mut self.left {
            Left::Inline(bytes) => bytes.read(out),
            Left::Pieces(reader) => reader.fill(out).map_err(|error| match error {
                Error::Io { source, .. } => source,
                other => io::Error::new(io::ErrorKind::InvalidData, other),
            }),
        }
    }
}

const _: () = assert!(KEY_BYTES_MAX + VALUE_BYTES_MAX < u32::MAX as usize);
