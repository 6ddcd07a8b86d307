//! How the memory of a partition is divided between its index and the space for its items.

use crate::access::Access;
use crate::index::bucket::Bucket;
use crate::index::{ChainedIndex, Index, SPARE_PERCENT, spares_for_chance};
use crate::memory::{PAGE_BYTES, UNIT_BYTES};
use crate::partition::{Partition, Tables};
use crate::region::{BLOCK_WORDS_MIN, Space};

use super::policy::Refusing;

/// Mean entries per bucket for which the sizes are computed; more overflow into spare buckets, of which there are a
/// tenth as many plus [`spares_for_chance`].
const ENTRIES_PER_BUCKET: usize = if cfg!(loom) { 2 } else { 11 };

/// Hundredths of bytes that the index takes per item, without [`bytes_for_chance`].
const INDEX_PER_ITEM_HUNDREDTHS: usize =
    (size_of::<Bucket>() * (100 + SPARE_PERCENT)).div_ceil(ENTRIES_PER_BUCKET);

/// The sizes of a partition's parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub tables: Tables,
    /// Bytes for items.
    pub space: usize,
}

impl Sizes {
    /// The sizes of a partition of `bytes` for items of `payload` bytes of key and value; `None` if that is too little
    /// to be useful.
    pub fn of<A: Access>(bytes: usize, payload: usize) -> Option<Self> {
        let for_items = bytes.saturating_sub(fixed_bytes::<A>());
        let items_max = items_in(for_items, payload);
        let items = items_in(for_items.saturating_sub(bytes_for_chance(items_max)), payload);
        let buckets = buckets_for(items);
        let others = ChainedIndex::mapped_bytes(buckets) + fixed_bytes::<A>();
        let space = bytes.checked_sub(others)? / PAGE_BYTES * PAGE_BYTES;
        let tables = Tables { buckets, payload, inline_buckets: 0, cell_payload: 0 };
        (space >= block_bytes(payload)).then_some(Self { tables, space })
    }
}

/// Bytes of a partition that has room for `items` items of exactly `payload` bytes of key and value.
pub(crate) fn bytes_for<A: Access>(items: usize, payload: usize) -> usize {
    // Three pages, since sizes are rounded up or down to whole pages.
    (items * (block_bytes(payload) * 100 + INDEX_PER_ITEM_HUNDREDTHS)).div_ceil(100)
        + bytes_for_chance(items)
        + fixed_bytes::<A>()
        + 3 * PAGE_BYTES
}

/// Number of items of `payload` bytes that fit in `bytes`.
fn items_in(bytes: usize, payload: usize) -> usize {
    bytes * 100 / (block_bytes(payload) * 100 + INDEX_PER_ITEM_HUNDREDTHS)
}

/// First buckets for `items` items.
fn buckets_for(items: usize) -> usize {
    items.div_ceil(ENTRIES_PER_BUCKET).max(1)
}

/// Bytes of the spare buckets for random variation.
fn bytes_for_chance(items: usize) -> usize {
    spares_for_chance(buckets_for(items)) * size_of::<Bucket>()
}

/// Bytes of the smallest block that holds an item of `payload` bytes.
fn block_bytes(payload: usize) -> usize {
    (payload.next_multiple_of(UNIT_BYTES) + UNIT_BYTES).max(BLOCK_WORDS_MIN as usize * UNIT_BYTES)
}

/// Bytes of a partition besides space and index.
fn fixed_bytes<A: Access>() -> usize {
    Space::mapped_bytes(0) + size_of::<Partition<Refusing, A>>()
}
