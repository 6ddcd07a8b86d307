//! Appending to values: the cost of writing depends on the appended bytes, not on the length of the value.
//!
//! A large value consists of records in blob files, each at least twice as long as the next, and a tail of a few
//! hundred bytes in the item itself ([`LargeValue`]). An append for which the tail has no room turns it into a record;
//! before that, records that are not twice as long as what follows them are joined with it. So a byte is rewritten only
//! when its record grows by at least half: about as often as the log2 of the value's length over the tail's, as in the
//! logarithmic method of Bentley and Saxe (1980).

use alluvium_base::KeyspaceId;
use alluvium_io::sync::atomic::Ordering;

use super::keyspace::Keyspace;
use super::large::{StoredItem, check_key, count_put, note_hidden};
use super::read::View;
use super::update::witnessed;
use super::write::{check_lengths, check_room};
use crate::blob::{LargeValue, PIECES_MAX, Pieces, Reference, StoredKey, TAIL_BYTES_MAX, is_stand_in};
use crate::core::{KeptPieces, PendingRecord, RecordWriter, Shared, write_item};
use crate::error::{Error, Result};
use crate::item::{Item, ItemKind};
use crate::limits::VALUE_BYTES_MAX;
use crate::metadata::Metadata;

/// A value with the appended bytes.
struct Grown {
    metadata: Metadata,
    /// Bytes of the whole value.
    len: usize,
    /// Records that stay unchanged.
    pieces: Pieces,
    /// The bytes behind them.
    rest: Vec<u8>,
    /// Whether nothing was appended to the existing value.
    is_same: bool,
}

impl Keyspace {
    /// Atomically appends `bytes` to the value under `key` and returns its new length. An absent key counts as an empty
    /// value.
    ///
    /// Flags and expiry stay unchanged. Costs a get of the item without its large value. Over many appends, each byte
    /// of a value of n bytes is written about log2(n / 400) times; an item of up to a kilobyte is written once per
    /// append. A value that was appended to consists of up to 24 records, which a get reads together; storing it anew
    /// makes it one record.
    ///
    /// # Errors
    /// [`Error::ValueTooLarge`] if the value would become longer than the limit. It stays unchanged.
    pub fn append(&self, key: impl AsRef<[u8]>, bytes: impl AsRef<[u8]>) -> Result<usize> {
        let len = self.append_if(key, bytes, |_| true)?;
        Ok(len.expect("every item is accepted"))
    }

    /// Like [`Keyspace::append`], if `accepts` returns `true` for the metadata of the item, the default if there is no
    /// item. Otherwise changes nothing and returns `None`.
    pub fn append_if(
        &self,
        key: impl AsRef<[u8]>,
        bytes: impl AsRef<[u8]>,
        accepts: impl Fn(Metadata) -> bool,
    ) -> Result<Option<usize>> {
        let (key, bytes) = (key.as_ref(), bytes.as_ref());
        let shared = self.database();
        let keyspace = &*self.shared;
        shared.check_failure()?;
        keyspace.check_present()?;
        keyspace.check_key(key)?;
        check_lengths(key.len(), bytes.len())?;
        let stored_key = StoredKey::of(key);
        let hash = keyspace.hasher.hash(&stored_key);
        shared.throttle.pay(1, &*shared.clock);
        shared.counters.gets.fetch_add(1, Ordering::Relaxed);
        let turn = keyspace.update_stripe(hash).lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (len, position) = loop {
            let (witness, grown) = witnessed(shared, keyspace, hash, &stored_key, |view| {
                // A row has the value of a large item, but not the pieces to which it is appended.
                let view = View { era: None, ..*view };
                view.find(hash, &stored_key, |view, item| grow(view, key, item, bytes))
            })?;
            if !accepts(grown.metadata) {
                break (None, None);
            }
            if grown.is_same {
                break (Some(grown.len), None);
            }
            let position = if grown.pieces.is_empty() {
                let item = grown.metadata.item(key, &grown.rest);
                check_room(shared, &item)?;
                let store = || StoredItem::store(shared, keyspace.id, &item);
                let stored = in_a_file_of_its_own(shared, grown.rest.len(), store)?;
                let item = stored.item();
                note_hidden(shared, keyspace, hash, &item)?;
                let position = write_item(shared, keyspace, hash, &item, Some(witness))?;
                if position.is_some() {
                    count_put(shared, &item);
                    stored.commit();
                }
                position
            } else {
                let prepared = Prepared::of(shared, keyspace.id, key, &grown)?;
                let item = prepared.item(&stored_key);
                note_hidden(shared, keyspace, hash, &item)?;
                let position = write_item(shared, keyspace, hash, &item, Some(witness))?;
                if position.is_some() {
                    shared.counters.puts.fetch_add(1, Ordering::Relaxed);
                    shared.counters.bytes_put.fetch_add((key.len() + bytes.len()) as u64, Ordering::Relaxed);
                    prepared.commit();
                }
                position
            };
            if position.is_some() {
                break (Some(grown.len), position);
            }
        };
        drop(turn);
        match position {
            Some(position) => self.acknowledge(position)?,
            None => self.acknowledgement.give_for_seen(shared)?,
        }
        Ok(len)
    }
}

/// Maximum bytes of a value's tail, which is stored in the item.
fn tail_bytes_max(shared: &Shared) -> usize {
    shared.settings.inline_bytes_max.min(TAIL_BYTES_MAX)
}

/// Appends to the value of `item` under `key`. Reads only those records that must be rewritten.
fn grow(view: &View<'_>, key: &[u8], item: Option<&Item<'_>>, bytes: &[u8]) -> Result<Grown> {
    let Some(item) = item else {
        let (metadata, pieces) = (Metadata::default(), Pieces::new());
        return Ok(Grown { metadata, len: bytes.len(), pieces, rest: bytes.to_vec(), is_same: false });
    };
    let metadata = Metadata::of(item);
    let mut pieces = Pieces::new();
    let mut tail = item.value;
    if item.is_reference() {
        let large = LargeValue::required(item)?;
        if is_stand_in(item.key) {
            let found = view.record_of(large.pieces[0], 1)?.read_key()?;
            check_key(&large.pieces[0], &found, key)?;
        }
        (pieces, tail) = (large.pieces, large.tail);
    }
    let before: usize = pieces.iter().map(value_len).sum();
    let len = before + tail.len() + bytes.len();
    if len > VALUE_BYTES_MAX {
        return Err(Error::ValueTooLarge { len, max: VALUE_BYTES_MAX });
    }
    let mut rest_len = tail.len() + bytes.len();
    let mut kept = pieces.len();
    if rest_len > tail_bytes_max(view.shared) {
        while kept > 0 && (value_len(&pieces[kept - 1]) < 2 * rest_len || kept >= PIECES_MAX) {
            kept -= 1;
            rest_len += value_len(&pieces[kept]);
        }
    }
    let (_, mut rest) = view.read_pieces(&pieces[kept..], tail.len() + bytes.len())?;
    rest.extend_from_slice(tail);
    rest.extend_from_slice(bytes);
    pieces.truncate(kept);
    Ok(Grown { metadata, len, pieces, rest, is_same: bytes.is_empty() })
}

/// Calls `write`, which writes a record of `len` bytes. A long one gets a blob file of its own: joins leave much
/// garbage, and files of short records can be emptied of it without moving the long ones.
fn in_a_file_of_its_own<R>(shared: &Shared, len: usize, write: impl FnOnce() -> Result<R>) -> Result<R> {
    let is_long = len as u64 >= shared.blobs.file_bytes(shared) / 2;
    if is_long {
        shared.blobs.end_current(None);
    }
    let written = write();
    if is_long {
        shared.blobs.end_current(None);
    }
    written
}

fn value_len(piece: &Reference) -> usize {
    piece.value_len as usize
}

/// An item of several records that is about to be written.
struct Prepared<'a> {
    metadata: Metadata,
    value: Vec<u8>,
    kept: KeptPieces<'a>,
    record: Option<PendingRecord>,
}

impl<'a> Prepared<'a> {
    fn of(shared: &'a Shared, keyspace: KeyspaceId, key: &[u8], grown: &Grown) -> Result<Self> {
        let rest = &grown.rest[..];
        let record = if rest.len() <= tail_bytes_max(shared) {
            shared.check_room()?;
            None
        } else {
            shared.check_room_for((key.len() + rest.len()) as u64)?;
            for piece in rest.chunks(64 << 10) {
                shared.throttle.pay_large(piece.len() as u64, &*shared.clock);
            }
            let write = || RecordWriter::write_record(shared, keyspace, key, rest);
            Some(in_a_file_of_its_own(shared, rest.len(), write)?)
        };
        let mut pieces = grown.pieces.clone();
        pieces.extend(record.as_ref().map(PendingRecord::reference));
        let tail = if record.is_some() { &[] } else { rest };
        let value = LargeValue { pieces, tail }.encode();
        let kept = KeptPieces::remember(shared, grown.pieces.clone());
        Ok(Self { metadata: grown.metadata, value, kept, record })
    }

    fn item<'i>(&'i self, key: &'i [u8]) -> Item<'i> {
        let Metadata { flags, expires_at_ms } = self.metadata;
        Item { kind: ItemKind::Reference, flags, expires_at_ms, key, value: &self.value }
    }

    /// Declares that the log refers to all of the records.
    fn commit(self) {
        self.kept.commit();
        self.record.into_iter().for_each(PendingRecord::commit);
    }
}
