//! [`Piece`]: the items of a range of places, collected for the calls of a scan.

use std::sync::{Arc, Weak};

use crate::item::{EncodedItem, Item};
use crate::level::Version;

/// Identifies the state of a keyspace when a piece was collected. It keeps no version, only the memory in which one
/// was, so that no other version gets the same address.
#[derive(Debug)]
pub(crate) struct KeyspaceState {
    version: Weak<Version>,
    /// How far the log was written.
    logged: u64,
}

impl KeyspaceState {
    /// The present moment, at which `version` is current. Must be taken before anything is read from `version`: a write
    /// that is in the log by now is in the index once its shard's lock is released, so a reader that takes the lock
    /// later sees it.
    pub fn of(version: &Arc<Version>) -> Self {
        let logged = version.log_stores.first().map_or(0, |active| active.segment.published());
        Self { version: Arc::downgrade(version), logged }
    }
}

impl PartialEq for KeyspaceState {
    /// Whether nothing was written or moved between the two moments.
    fn eq(&self, other: &Self) -> bool {
        self.version.ptr_eq(&other.version) && self.logged == other.logged
    }
}

/// The newest items of all keys in a range of places, in the order of places. Includes tombstones and expired items.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    /// The items, encoded.
    bytes: Vec<u8>,
    /// Place and start of each item.
    items: Vec<(u64, usize)>,
    /// The first place behind the piece; `None` at the end.
    pub to: Option<u64>,
}

impl Piece {
    pub fn push(&mut self, place: u64, item: &Item<'_>) {
        self.items.push((place, self.bytes.len()));
        item.encode(&mut self.bytes);
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Bytes of the items, encoded.
    pub fn encoded_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Memory in bytes.
    pub fn memory_bytes(&self) -> u64 {
        (self.bytes.capacity() + self.items.capacity() * size_of::<(u64, usize)>()) as u64
    }

    /// Keeps only the first `len` items, in the order in which they were pushed.
    pub fn truncate(&mut self, len: usize) {
        if let Some(&(_, start)) = self.items.get(len) {
            self.bytes.truncate(start);
            self.items.truncate(len);
        }
    }

    /// Sorts the items by place, and ends the piece in front of `to`.
    pub fn finish(&mut self, to: Option<u64>) {
        self.items.retain(|&(place, _)| to.is_none_or(|to| place < to));
        // Stable, so that items of a place stay in the order of their hashes.
        self.items.sort_by_key(|&(place, _)| place);
        self.to = to;
    }

    /// The items from a place on, with their places. Only after [`Piece::finish`].
    pub fn items_from(&self, from: u64) -> impl Iterator<Item = (u64, Item<'_>)> {
        let start = self.items.partition_point(|&(place, _)| place < from);
        self.items[start..].iter().map(|&(place, start)| {
            let encoded = EncodedItem::decode(&self.bytes[start..]).expect("an item was pushed here");
            (place, encoded.item)
        })
    }
}
