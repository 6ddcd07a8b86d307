//! [`Piece`]: the items of a stretch of places, gathered for the calls of a scan.

use std::sync::{Arc, Weak};

use crate::item::{EncodedItem, Item};
use crate::level::Version;

/// A keyspace as it was when a piece was gathered. It holds no version: only the room where one was, so that no other
/// gets the same address.
#[derive(Debug)]
pub(super) struct Moment {
    version: Weak<Version>,
    /// How far the log was written.
    logged: u64,
}

impl Moment {
    /// The present, of which `version` is the version. To be asked before anything of it is read: a write that is in
    /// the log by now is in the index once its shard is free, so who takes the shard's lock afterwards sees it.
    pub fn of(version: &Arc<Version>) -> Self {
        let logged = version.log_stores.first().map_or(0, |active| active.segment.published());
        Self { version: Arc::downgrade(version), logged }
    }
}

impl PartialEq for Moment {
    /// Whether nothing was written or moved between them.
    fn eq(&self, other: &Self) -> bool {
        self.version.ptr_eq(&other.version) && self.logged == other.logged
    }
}

/// The newest items of all keys in a stretch of places, tombstones and expired items included, in the order of places.
#[derive(Debug, Default)]
pub(super) struct Piece {
    /// The items, encoded.
    bytes: Vec<u8>,
    /// Place and start of each.
    items: Vec<(u64, usize)>,
    /// The first place behind it; `None` at the end.
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

    /// Memory held.
    pub fn memory_bytes(&self) -> u64 {
        (self.bytes.capacity() + self.items.capacity() * size_of::<(u64, usize)>()) as u64
    }

    /// Leaves the first `len` items, as they were pushed.
    pub fn truncate(&mut self, len: usize) {
        if let Some(&(_, start)) = self.items.get(len) {
            self.bytes.truncate(start);
            self.items.truncate(len);
        }
    }

    /// Puts the items in the order of their places and ends the piece in front of `to`.
    pub fn finish(&mut self, to: Option<u64>) {
        self.items.retain(|&(place, _)| to.is_none_or(|to| place < to));
        // Stable, so that items of a place stay in the order of their hashes.
        self.items.sort_by_key(|&(place, _)| place);
        self.to = to;
    }

    /// Place and item of those from a place on. Only after [`Piece::finish`].
    pub fn items_from(&self, from: u64) -> impl Iterator<Item = (u64, Item<'_>)> {
        let start = self.items.partition_point(|&(place, _)| place < from);
        self.items[start..].iter().map(|&(place, start)| {
            let encoded = EncodedItem::decode(&self.bytes[start..]).expect("an item was pushed here");
            (place, encoded.item)
        })
    }
}
