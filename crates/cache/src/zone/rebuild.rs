//! Composes blocks anew from the items that stay, and puts them in the place of former ones.

use alluvium_base::KeyHash;

use crate::partition::Common;
use crate::sync::Ordering;

use super::block::{Block, ITEMS_MAX, Record, Records};
use super::codec::DICTIONARY_CHUNK_BYTES;
use super::contents::Contents;
use super::directory::{Handle, Path, STRIPE_BITS};
use super::{BLOCK_BYTES, CHUNKED_BLOCK_BYTES, Writer, Zone, add, fingerprint, is_expired};

/// An item that stays.
#[derive(Clone, Copy, Debug)]
struct Kept {
    path: Path,
    fingerprint: u16,
    /// Its bytes in the pool.
    start: usize,
    end: usize,
    is_accessed: bool,
    /// Its number in the block whose access records stay.
    number_before: Option<usize>,
}

/// A block that was composed: the keys that it has, and where it is; `None` if it has no items.
#[derive(Clone, Copy, Debug)]
struct Placed {
    prefix: u32,
    depth: u32,
    handle: Option<Handle>,
}

/// Items for new blocks, and room to compose them.
#[derive(Debug, Default)]
pub(super) struct Rebuild {
    pool: Vec<u8>,
    kept: Vec<Kept>,
    records: Records,
    raw: Vec<u8>,
    placed: Vec<Placed>,
}

impl Rebuild {
    /// Starts with no items.
    pub fn clear(&mut self) {
        self.pool.clear();
        self.kept.clear();
        self.placed.clear();
        self.records = Records::default();
    }

    /// Bytes of the items that stay.
    pub fn bytes(&self) -> usize {
        self.pool.len()
    }

    /// Number of items that stay.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Adds an item.
    pub fn add(&mut self, hash: KeyHash, item: Record<'_>, is_accessed: bool) {
        let start = self.pool.len();
        item.write(&mut self.pool);
        self.kept.push(Kept {
            path: Path::of(hash),
            fingerprint: fingerprint(hash),
            start,
            end: self.pool.len(),
            is_accessed,
            number_before: None,
        });
    }

    /// Adds the items of a block, which were decompressed, except those in `left_out` and expired ones. Returns how
    /// many have expired that readers could find.
    pub fn add_block(
        &mut self,
        common: &Common,
        block: &Block<'_>,
        contents: &Contents,
        left_out: u32,
        keeps_marks: bool,
    ) -> u64 {
        let mut expired = 0;
        let accessed = if keeps_marks { block.accessed() } else { 0 };
        for (number, item) in contents.items().enumerate() {
            if left_out >> number & 1 == 1 {
                continue;
            }
            if is_expired(item.metadata, common) {
                expired += 1;
                continue;
            }
            self.add(common.hasher.hash(item.key), item, accessed >> number & 1 == 1);
            if keeps_marks && let Some(kept) = self.kept.last_mut() {
                kept.number_before = Some(number);
            }
        }
        if keeps_marks {
            self.records = block.records();
        }
        expired
    }
}

/// Maximum bytes of the items of a block with chunks of `chunk_bytes`.
pub(super) fn block_bytes(chunk_bytes: usize) -> usize {
    if chunk_bytes <= DICTIONARY_CHUNK_BYTES { CHUNKED_BLOCK_BYTES } else { BLOCK_BYTES }
}

impl Zone {
    /// Replaces the blocks of the keys whose paths start with the `depth` bits of `prefix`, all of which are in
    /// `before`, by blocks of the items in `rebuild`. Returns how many items found no room and are dropped.
    pub(super) fn replace(
        &self,
        writer: &mut Writer,
        rebuild: &mut Rebuild,
        before: &[Block<'_>],
        prefix: u32,
        depth: u32,
    ) -> u64 {
        debug_assert!(depth >= STRIPE_BITS);
        let items = 0..rebuild.kept.len();
        let dropped = self.compose(writer, rebuild, items, prefix, depth);
        {
            let _changing = self.directory.begin_change(Path(u64::from(prefix)));
            for placed in &rebuild.placed {
                self.directory.set(placed.prefix, placed.depth, placed.handle);
            }
        }
        for block in before {
            writer.arena.drop_block(block.unit as u32, block.head.words);
            self.count_dictionaries(&mut writer.dictionary_blocks, 0, block.head.dictionaries);
        }
        let blocks = rebuild.placed.iter().filter(|placed| placed.handle.is_some()).count();
        add(&self.counters.blocks, (blocks as u64).wrapping_sub(before.len() as u64));
        dropped
    }

    /// Writes blocks of a range of the items that stay: one, or two if they are too much for one, each of which may
    /// again be two.
    fn compose(
        &self,
        writer: &mut Writer,
        rebuild: &mut Rebuild,
        items: std::ops::Range<usize>,
        prefix: u32,
        depth: u32,
    ) -> u64 {
        let kept = &mut rebuild.kept[items.clone()];
        let bytes: usize = kept.iter().map(|kept| kept.end - kept.start).sum();
        let chunk_bytes = writer.encoder.chunk_bytes();
        let bytes_max = block_bytes(chunk_bytes);
        let is_full = kept.len() > ITEMS_MAX || bytes > bytes_max && kept.len() > 1;
        if is_full && self.directory.deepen(depth + 1) {
            kept.sort_by_key(|kept| kept.path.bit(depth));
            let first = items.start + kept.partition_point(|kept| !kept.path.bit(depth));
            return self.compose(writer, rebuild, items.start..first, prefix, depth + 1)
                + self.compose(writer, rebuild, first..items.end, prefix | 1 << depth, depth + 1);
        }
        let mut dropped = 0;
        let Rebuild { pool, kept, records, raw, placed } = rebuild;
        let Writer { arena, encoder, draft, dictionary_blocks, .. } = writer;
        draft.clear(prefix, depth);
        let mut number_now = [None; ITEMS_MAX + 1];
        let (mut bytes, mut chunk_items) = (0, 0);
        raw.clear();
        for kept in &kept[items] {
            // Blocks that cannot be told apart by another bit take what they can.
            let len = kept.end - kept.start;
            if draft.head.items as usize == ITEMS_MAX || bytes > 0 && bytes + len > bytes_max {
                dropped += 1;
                continue;
            }
            if chunk_items > 0 && raw.len() + len > chunk_bytes {
                draft.add_chunk(encoder, chunk_items, raw);
                chunk_items = 0;
                raw.clear();
            }
            if let Some(before) = kept.number_before {
                number_now[before] = Some(draft.head.items as usize);
            }
            raw.extend_from_slice(&pool[kept.start..kept.end]);
            draft.add(kept.fingerprint, kept.is_accessed);
            (bytes, chunk_items) = (bytes + len, chunk_items + 1);
        }
        let mut handle = None;
        if chunk_items > 0 {
            draft.add_chunk(encoder, chunk_items, raw);
            draft.records = records.renumbered(|item| number_now.get(item).copied().flatten());
            let words = draft.finish();
            if let Some(unit) = arena.reserve(words) {
                draft.write(&self.ring, unit);
                self.count_dictionaries(dictionary_blocks, draft.head.dictionaries, 0);
                handle = Some(Handle::at(unit));
            } else {
                dropped += u64::from(draft.head.items);
            }
        }
        placed.push(Placed { prefix, depth, handle });
        dropped
    }

    /// Writer: the fewest bits that tell apart the keys on a path, which has no block, from those that have blocks.
    pub(super) fn vacant_depth(&self, path: Path) -> u32 {
        let mut depth = self.directory.depth();
        while depth > STRIPE_BITS {
            let sibling = path.prefix(depth) ^ 1 << (depth - 1);
            let slots = 0..1_u32 << (self.directory.depth() - depth);
            let is_vacant = slots
                .into_iter()
                .all(|number| self.directory.get(Path(u64::from(sibling | number << depth))).is_none());
            if !is_vacant {
                break;
            }
            depth -= 1;
        }
        depth
    }

    /// Writer: counts items that were dropped.
    pub(super) fn count_gone(&self, counter: &crate::sync::AtomicU64, items: u64) {
        add(counter, items);
        let left = self.counters.items.load(Ordering::Relaxed).wrapping_sub(items);
        self.counters.items.store(left, Ordering::Relaxed);
    }
}
