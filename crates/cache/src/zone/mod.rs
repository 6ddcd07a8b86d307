//! The compressed zone of a partition: items that its logs evicted, in compressed blocks (zExpander: Wu's thesis,
//! chapter 3; EuroSys 2016).
//!
//! ```text
//!  hash ──► directory [ block's place ] ──► block [ head | marks | fingerprints | items, compressed ]
//! ```
//!
//! A block holds the items of a range of hashes. A key's fingerprint answers most questions for absent keys without
//! decompression. A full block splits in two; when the arena is full, a sweep over all blocks drops items that were not
//! used since its last visit, and joins blocks that became small.
//!
//! The partition's logs are the hot zone. A key has at most one item that readers see: a write to the hot zone hides
//! the key's item here in the same change ([`Zone::hide`]), and an item that comes here is stored before it leaves the
//! log. Readers look in the hot zone first.
//!
//! Only the partition's writer changes the zone, behind the partition's gate. Readers copy a block, check that its
//! version is unchanged, and decompress the copy.

mod arena;
mod block;
mod chunk;
mod codec;
mod contents;
mod dictionary;
mod directory;
mod draft;
mod learned;
mod put;
mod read;
mod rebuild;
mod reclaim;
mod stats;

use std::io;

use alluvium_base::KeyHash;

use crate::item::Metadata;
use crate::memory::{PAGE_BYTES, Pages, Ring, UNIT_BYTES};
use crate::partition::Common;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

use arena::Arena;
use block::Block;
use chunk::DICTIONARIES;
use codec::Encoder;
use contents::Contents;
use directory::{Directory, Path};
use draft::Draft;
use rebuild::Rebuild;

pub(crate) use block::Record;
pub use codec::Codec;
pub(crate) use codec::Compression;
pub(crate) use dictionary::Dictionaries;
pub(crate) use learned::{Coder, Learned};
pub(crate) use read::{Lookup, Seen};
pub use stats::ZoneStats;

/// Maximum bytes of the items of a block before compression, if they are compressed together. The thesis (§3.2.2) has
/// 2 KiB; a split leaves two halves, so that blocks have three quarters of this on average.
const BLOCK_BYTES: usize = if cfg!(loom) { 128 } else { 3072 };

/// Maximum bytes of the items of a block before compression, if chunks of it have a dictionary.
const CHUNKED_BLOCK_BYTES: usize = if cfg!(loom) { 128 } else { 6144 };

/// Maximum bytes of a block's tail: items that wait to be compressed together with the others. A block is compressed
/// again for every second item; with 384 bytes a tenth less often, in 3 % more memory.
const TAIL_BYTES_MAX: usize = if cfg!(loom) { 64 } else { 256 };

/// Maximum bytes of an item that the zone takes.
const ITEM_BYTES_MAX: usize = 8 << 10;

/// Segments of an arena, unless they would be too small or too large.
const SEGMENTS: usize = 64;
const SEGMENT_BYTES_MIN: usize = if cfg!(loom) { 256 } else { 16 << 10 };
const SEGMENT_BYTES_MAX: usize = 256 << 10;

/// Maximum bytes of an arena: handles have 32 bits and count words.
pub(crate) const ARENA_BYTES_MAX: usize = (u32::MAX as usize - 1) * UNIT_BYTES;

/// Sizes of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ZoneShape {
    /// Bytes of the address range for blocks; a multiple of a segment.
    arena_bytes: usize,
    segment_bytes: usize,
    depth_max: u32,
}

impl ZoneShape {
    /// The sizes of a zone whose blocks may take `bytes` at most.
    pub fn for_bytes(bytes: usize) -> Self {
        let bytes = bytes.min(ARENA_BYTES_MAX);
        let segment_bytes =
            (bytes / SEGMENTS).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES_MAX) / PAGE_BYTES * PAGE_BYTES;
        let segment_bytes = segment_bytes.max(PAGE_BYTES);
        // Blocks may become small: by good compression, and by chance.
        let blocks = (bytes / 128).next_power_of_two();
        Self {
            arena_bytes: bytes / segment_bytes * segment_bytes,
            segment_bytes,
            depth_max: blocks.trailing_zeros(),
        }
    }

    /// Bytes of the smallest arena that is of use.
    pub fn arena_bytes_min() -> usize {
        8 * SEGMENT_BYTES_MIN.max(PAGE_BYTES)
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Zone {
    ring: Ring,
    /// Words of the ring.
    words: usize,
    /// Maximum bytes of a block's items before compression.
    raw_bytes_max: usize,
    /// Maximum bytes of an item here.
    item_bytes_max: usize,
    directory: Directory,
    compression: Compression,
    /// A lock only because the compiler does not know the partition's gate; its holder never waits.
    writer: Mutex<Writer>,
    pub counters: Counters,
}

/// What only the writer uses.
#[derive(Debug)]
struct Writer {
    arena: Arena,
    encoder: Encoder,
    contents: Contents,
    draft: Draft,
    rebuild: Rebuild,
    raw: Vec<u8>,
    /// Key and value of an item that comes from a log.
    item: Vec<u8>,
    /// The lowest hash that the sweep has not reached in this round.
    sweep_low: u64,
    /// The state of a generator of random numbers.
    random: u64,
    /// Blocks that need the dictionary in each place.
    dictionary_blocks: [u64; DICTIONARIES],
}

/// Counters of a zone, which the writer keeps behind the partition's gate.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Items that readers can find.
    pub items: AtomicU64,
    /// Items that came from the hot zone.
    pub came: AtomicU64,
    /// Items that were dropped for others.
    pub evicted: AtomicU64,
    pub expired: AtomicU64,
    /// Items that a write to the hot zone hid.
    pub hidden: AtomicU64,
    /// Of these, those that moved to the hot zone.
    pub promoted: AtomicU64,
    pub removed: AtomicU64,
    /// Blocks, and those that were moved to gather free space.
    pub blocks: AtomicU64,
    pub moved: AtomicU64,
    /// Resident bytes of the arena.
    pub arena_bytes: AtomicU64,
    /// Bytes of blocks.
    pub block_bytes: AtomicU64,
}

impl Zone {
    /// An empty zone.
    ///
    /// # Errors
    /// The system's error if it refuses the memory.
    pub fn new(shape: ZoneShape, compression: Compression) -> io::Result<Self> {
        let words = shape.arena_bytes / UNIT_BYTES;
        let item_bytes_max = ITEM_BYTES_MAX.min(shape.segment_bytes / 4);
        Ok(Self {
            ring: Ring::new(shape.arena_bytes, 0, Pages::AsUsed)?,
            words,
            raw_bytes_max: BLOCK_BYTES.max(item_bytes_max) + TAIL_BYTES_MAX,
            item_bytes_max,
            directory: Directory::new(shape.depth_max)?,
            writer: Mutex::new(Writer {
                arena: Arena::new(words as u64, (shape.segment_bytes / UNIT_BYTES) as u32),
                encoder: Encoder::new(compression.clone()),
                contents: Contents::default(),
                draft: Draft::default(),
                rebuild: Rebuild::default(),
                raw: Vec::new(),
                item: Vec::new(),
                sweep_low: 0,
                random: 0x9e37_79b9_7f4a_7c15,
                dictionary_blocks: [0; DICTIONARIES],
            }),
            compression,
            counters: Counters::default(),
        })
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The block on a path. Beside a writer it may be anything sound.
    fn block(&self, path: Path) -> Option<Block<'_>> {
        Block::at(&self.ring, self.words, self.directory.get(path)?.unit())
    }

    /// Writer: sets the maximum resident bytes of blocks. If there are more, the next writes drop some.
    pub fn set_limit(&self, bytes: usize) {
        let mut writer = self.writer();
        writer.arena.set_limit(bytes);
        writer.arena.shrink(&self.ring);
        self.note_sizes(&writer);
    }

    /// Resident bytes of everything but the arena.
    pub fn fixed_bytes(&self) -> usize {
        self.directory.bytes()
    }

    /// Writer: drops all items and returns the memory.
    pub fn clear(&self) {
        let mut writer = self.writer();
        self.directory.clear();
        writer.arena.clear(&self.ring);
        let blocks = std::mem::take(&mut writer.dictionary_blocks);
        if let Some(dictionaries) = &self.compression.dictionaries {
            dictionaries.count_dropped(blocks);
        }
        let items = self.counters.items.swap(0, Ordering::Relaxed);
        add(&self.counters.removed, items);
        self.counters.blocks.store(0, Ordering::Relaxed);
        self.note_sizes(&writer);
    }

    /// Writer: a block that needs the dictionaries `after`, one bit each, replaces one that needs those of `before`.
    fn count_dictionaries(&self, blocks: &mut [u64; DICTIONARIES], after: u32, before: u32) {
        let Some(dictionaries) = self.compression.dictionaries.as_ref().filter(|_| after != before) else {
            return;
        };
        dictionaries.count_users(after, before);
        for (place, blocks) in blocks.iter_mut().enumerate() {
            let bit = |all: u32| u64::from(all >> place & 1);
            *blocks = *blocks + bit(after) - bit(before);
        }
    }

    fn note_sizes(&self, writer: &Writer) {
        let counters = &self.counters;
        counters.arena_bytes.store(writer.arena.resident_bytes() as u64, Ordering::Relaxed);
        counters.block_bytes.store(writer.arena.live_words() * UNIT_BYTES as u64, Ordering::Relaxed);
    }
}

/// The fingerprint of a key. The directory uses other bits of the hash.
fn fingerprint(hash: KeyHash) -> u16 {
    hash.low() as u16
}

fn is_expired(metadata: Metadata, common: &Common) -> bool {
    metadata.expires_at_ms != 0 && metadata.expires_at_ms <= common.now_ms()
}

/// Adds to a counter, as the only writer.
fn add(counter: &AtomicU64, by: u64) {
    crate::sync::add_alone(counter, by);
}
