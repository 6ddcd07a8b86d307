//! Visits all items, for dumps.

use std::time::Duration;

use crate::access::Access;
use crate::item::ItemView;

use super::handle::Cache;

/// Where a scan continues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    pub(crate) partition: usize,
    /// The low half of the lowest hash that remains in it.
    pub(crate) hash: u64,
}

/// Low bits of a position in the hashes that [`Cursor::to_bits`] leaves out. No index has enough buckets for one to
/// begin and end between two of the others.
pub(crate) const HASH_SHIFT: u32 = 12;

impl Cursor {
    /// The cursor as a number that is 0 only at the start. A scan that continues with [`Cursor::from_bits`] visits a
    /// few items twice, and must visit at least two buckets at a time to move on.
    pub fn to_bits(self) -> u64 {
        // There are at most 4,096 partitions.
        (self.partition as u64) << (u64::BITS - HASH_SHIFT) | self.hash >> HASH_SHIFT
    }

    /// The cursor of [`Cursor::to_bits`], or one from which a scan visits some part of the items.
    pub fn from_bits(bits: u64) -> Self {
        Self { partition: (bits >> (u64::BITS - HASH_SHIFT)) as usize, hash: bits << HASH_SHIFT }
    }
}

/// An item with its key, copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedItem {
    /// The key.
    pub key: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
    /// The client's flags.
    pub flags: u32,
    /// Remaining time to live; `None` if unlimited.
    pub time_to_live: Option<Duration>,
}

impl<A: Access> Cache<A> {
    /// Visits the items of the next `buckets` buckets of the index, some ten items each (some eighty if they are tiny),
    /// in no particular order. Start with `Cursor::default()`; `None` means that all were visited.
    ///
    /// An item that is present throughout a scan is visited, and only once unless the cache is resized meanwhile.
    /// Visits are not accesses and count neither as hits nor as misses. Any number of scans may run at once.
    pub fn scan(
        &self,
        cursor: Cursor,
        buckets: usize,
        mut visit: impl FnMut(&[u8], ItemView<'_>),
    ) -> Option<Cursor> {
        let Cursor { mut partition, mut hash } = cursor;
        for _ in 0..buckets.max(1) {
            let part = self.partitions.all.get(partition)?;
            (partition, hash) = match part
                .visit_from(hash, &mut |key, value, metadata| visit(key, part.view(value, metadata)))
            {
                Some(next) => (partition, next),
                None => (partition + 1, 0),
            };
        }
        (partition < self.partitions.all.len()).then_some(Cursor { partition, hash })
    }

    /// Copies of all items, fetched bucket by bucket while iterating.
    pub fn iter(&self) -> impl Iterator<Item = OwnedItem> + '_ {
        copies(move |cursor, visit| self.scan(cursor, 1, visit))
    }
}

/// Receives the items of a bucket.
type Visit<'v> = &'v mut dyn FnMut(&[u8], ItemView<'_>);

/// Copies of all items that `scan` visits, which continues from a cursor by one bucket.
pub(crate) fn copies(
    mut scan: impl FnMut(Cursor, Visit<'_>) -> Option<Cursor>,
) -> impl Iterator<Item = OwnedItem> {
    let mut next = Some(Cursor::default());
    let mut waiting: Vec<OwnedItem> = Vec::new();
    std::iter::from_fn(move || {
        while waiting.is_empty() {
            next = scan(next?, &mut |key, item| {
                waiting.push(OwnedItem {
                    key: key.to_vec(),
                    value: item.value.to_vec(),
                    flags: item.flags,
                    time_to_live: item.time_to_live,
                });
            });
        }
        waiting.pop()
    })
}
