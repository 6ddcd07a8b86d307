//! The directory of a table file: its sections and the positions of their parts.
//!
//! ```text
//! 0  4  number of sections
//! 4  4  bytes of an entry: 560 with sections of semi-sorted keyspaces, else 248, before minor version 1 240; a reader
//!       skips what a later one appended
//! 8     the entries, in the order of their pages
//! ```
//!
//! The checksum of the directory is in the trailer. `docs/format.md` describes each byte.

use alluvium_base::{Corruption, HashRange, KeyHasher, KeyspaceId, SegmentId};

use crate::expiry::{EXPIRY_BYTES, ExpiryMarks};
use crate::frame::{u32_at, u64_at};
use crate::hash_marks::{HashMarks, MARKS_BYTES};
use crate::page::{Layout, PAGE_BYTES};
use crate::rule_bytes::{RULE_BYTES, decode_rule, encode_rule};
use crate::segment_span::SegmentSpan;
use crate::totals::Totals;

/// Bytes in front of the entries.
pub(crate) const DIRECTORY_HEADER_BYTES: usize = 8;
/// Bytes of an entry.
pub(crate) const ENTRY_BYTES: usize = 248;
/// Bytes of an entry before the oldest segment was added to it.
const ENTRY_BYTES_MIN: usize = 240;
/// Position of the times of expiry in an entry.
const EXPIRY_START: usize = 168;

/// Bytes of an entry that also contains the rule of prefixes, the marks of its items, and a range of whole hashes.
const ENTRY_BYTES_LONG: usize = RULE_START + RULE_BYTES + MARKS_BYTES;
/// Position of the low halves of the range's ends in a long entry.
const RANGE_REST_START: usize = ENTRY_BYTES;
/// Position of the rule of prefixes in a long entry.
const RULE_START: usize = RANGE_REST_START + 16;

const _: () = assert!(EXPIRY_START + EXPIRY_BYTES == ENTRY_BYTES_MIN && ENTRY_BYTES_LONG == 560);

/// How pages are found in a section. On disk: do not renumber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    /// The section is empty.
    None = 0,
    /// First slot of every page. Used with a hash filter that names slots.
    SlotFences = 1,
    /// Leading hash bits of every page's first item.
    PageFences = 2,
    /// Entropy-coded trie down to pages.
    Trie = 3,
    /// Prefix trie, groups of pages, suffixes: for semi-sorted keyspaces.
    ThreeLevel = 4,
    /// Groups of buckets, with the migrations of the most overloaded ones and the tables that the filter covers.
    Buckets = 5,
    /// The page of the item in each slot of a filter of tags.
    SlotPages = 6,
    /// Entropy-coded trie down to items, and the rank of each page's first item.
    DenseTrie = 7,
}

impl IndexKind {
    fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::None),
            1 => Some(Self::SlotFences),
            2 => Some(Self::PageFences),
            3 => Some(Self::Trie),
            4 => Some(Self::ThreeLevel),
            5 => Some(Self::Buckets),
            6 => Some(Self::SlotPages),
            7 => Some(Self::DenseTrie),
            _ => None,
        }
    }
}

/// The position of a block of index bytes. A length of zero means that there is no block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockHandle {
    /// Offset in the file.
    pub offset: u64,
    /// Length in bytes.
    pub len: u64,
    /// Checksum of the bytes, seeded with file seed XOR offset.
    pub checksum: u64,
}

/// One entry of the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionEntry {
    pub(crate) keyspace: KeyspaceId,
    /// The order of the items.
    pub layout: Layout,
    pub(crate) hasher: KeyHasher,
    /// The hashes that the section covers.
    pub(crate) range: HashRange,
    /// Number of the section's first page in the file.
    pub(crate) first_page: u64,
    pub(crate) page_count: u32,
    /// Number of the pages after these that contain names of prefixes.
    pub(crate) name_page_count: u32,
    /// Whether an item of the section may continue in the page after it.
    pub(crate) items_go_on: bool,
    /// Whether the filter stays on flash, where lookups read a column of it.
    pub filter_on_flash: bool,
    /// Whether the filter is a multi-level one. The index block then lists the tables it covers.
    pub filter_covers: bool,
    /// Whether the filter is a static one, for the section's items alone.
    pub filter_is_static: bool,
    /// Whether the filter is fragments of the items' hashes in the order of the trie, which is then dense.
    pub filter_is_fragments: bool,
    /// Whether the filter contains the prefixes of the items as well as the items.
    pub(crate) filter_knows_prefixes: bool,
    /// Number of the level in the keyspace's plan for which the section was made, or `None` if the file does not say.
    pub(crate) level: Option<u8>,
    /// Number of plans that the keyspace had before that one.
    pub(crate) plan_number: u16,
    pub(crate) totals: Totals,
    /// How pages are found.
    pub index_kind: IndexKind,
    /// Bits of a tag in the hash filter; 0 without one.
    pub filter_tag_bits: u8,
    /// The filter block.
    pub filter: BlockHandle,
    pub(crate) index: BlockHandle,
    /// Log segments whose items are in the section.
    pub(crate) segments: SegmentSpan,
    /// Times at which the expiring items expire.
    pub(crate) expiry: ExpiryMarks,
    /// Distribution of the items of a semi-sorted keyspace; without meaning for others.
    pub(crate) marks: HashMarks,
}

const HASHER_SIPHASH13: u8 = 1;
const HASHER_XXH3: u8 = 2;
const HASHER_SEMI_SORTED: u8 = 3;

// Flags on disk: do not renumber.
const ITEMS_GO_ON: u8 = 1;
const FILTER_ON_FLASH: u8 = 2;
const FILTER_COVERS: u8 = 4;
const FILTER_KNOWS_PREFIXES: u8 = 8;
const FILTER_IS_STATIC: u8 = 16;
const FILTER_IS_FRAGMENTS: u8 = 32;

impl SectionEntry {
    /// Whether it needs a long entry.
    fn is_long(&self) -> bool {
        let rests = (self.range.low as u64, self.range.high as u64);
        self.hasher.is_semi_sorted() || rests != (0, u64::MAX)
    }

    fn encode(&self, is_long: bool, out: &mut Vec<u8>) {
        let start = out.len();
        let (hasher_kind, seed0, seed1) = match self.hasher {
            KeyHasher::SipHash13 { key0, key1 } => (HASHER_SIPHASH13, key0, key1),
            KeyHasher::Xxh3 { seed } => (HASHER_XXH3, seed, 0),
            KeyHasher::SemiSorted { key0, key1, .. } => (HASHER_SEMI_SORTED, key0, key1),
        };
        let (range_low, range_high) = self.range.high_halves();
        out.extend_from_slice(&self.keyspace.0.to_le_bytes());
        out.extend_from_slice(&[self.layout as u8, hasher_kind, self.index_kind as u8, self.filter_tag_bits]);
        for number in [seed0, seed1, range_low, range_high, self.first_page] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.page_count.to_le_bytes());
        let level = self.level.map_or(0, |level| level.saturating_add(1));
        out.extend_from_slice(&[self.flags(), level]);
        out.extend_from_slice(&self.plan_number.to_le_bytes());
        let totals = self.totals;
        for number in [
            totals.item_count,
            totals.tombstone_count,
            totals.expiring_count,
            totals.key_bytes,
            totals.value_bytes,
            totals.live_bytes,
            totals.used_bytes,
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for block in [self.filter, self.index] {
            for number in [block.offset, block.len, block.checksum] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        out.extend_from_slice(&self.segments.newest.0.to_le_bytes());
        self.expiry.encode(out);
        out.extend_from_slice(&self.segments.oldest.0.to_le_bytes());
        debug_assert_eq!(out.len() - start, ENTRY_BYTES);
        if is_long {
            out.extend_from_slice(&(self.range.low as u64).to_le_bytes());
            out.extend_from_slice(&(self.range.high as u64).to_le_bytes());
            let name_pages = self.hasher.lists_prefixes().then_some(self.name_page_count);
            encode_rule(self.hasher.prefix_rule(), name_pages, out);
            self.marks.encode(out);
            debug_assert_eq!(out.len() - start, ENTRY_BYTES_LONG);
        }
    }

    fn flags(&self) -> u8 {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        flag(self.items_go_on, ITEMS_GO_ON)
            | flag(self.filter_on_flash, FILTER_ON_FLASH)
            | flag(self.filter_covers, FILTER_COVERS)
            | flag(self.filter_knows_prefixes, FILTER_KNOWS_PREFIXES)
            | flag(self.filter_is_static, FILTER_IS_STATIC)
            | flag(self.filter_is_fragments, FILTER_IS_FRAGMENTS)
    }

    /// Decodes an entry. `bytes` has at least [`ENTRY_BYTES_MIN`] bytes. The offset of a corruption is relative to
    /// them.
    fn decode(bytes: &[u8]) -> Result<Self, Corruption> {
        let bad = |at: u64, expected: &str, found: u64| {
            Err(Corruption::new("directory", at, expected, found.to_string()))
        };
        let Some(layout) = Layout::from_byte(bytes[4]) else {
            return bad(4, "a known layout", bytes[4].into());
        };
        let (seed0, seed1) = (u64_at(bytes, 8), u64_at(bytes, 16));
        let mut name_page_count = 0;
        let hasher = match bytes[5] {
            HASHER_SIPHASH13 => KeyHasher::SipHash13 { key0: seed0, key1: seed1 },
            HASHER_XXH3 => KeyHasher::Xxh3 { seed: seed0 },
            HASHER_SEMI_SORTED => {
                let Some((prefix, name_pages)) =
                    bytes.get(RULE_START..RULE_START + RULE_BYTES).and_then(decode_rule)
                else {
                    return bad(RULE_START as u64, "a rule of prefixes", bytes.len() as u64);
                };
                name_page_count = name_pages.unwrap_or_default();
                let lists_prefixes = name_pages.is_some();
                KeyHasher::SemiSorted { key0: seed0, key1: seed1, prefix, lists_prefixes }
            }
            kind => return bad(5, "a known key hash", kind.into()),
        };
        let Some(index_kind) = IndexKind::from_byte(bytes[6]) else {
            return bad(6, "a known index", bytes[6].into());
        };
        let (mut low_rest, mut high_rest, mut marks) = (0, u64::MAX, HashMarks::NONE);
        if bytes.len() >= ENTRY_BYTES_LONG {
            low_rest = u64_at(bytes, RANGE_REST_START);
            high_rest = u64_at(bytes, RANGE_REST_START + 8);
            let stored = bytes[RULE_START + RULE_BYTES..].first_chunk().and_then(HashMarks::decode);
            let Some(stored) = stored else {
                return bad((RULE_START + RULE_BYTES) as u64, "ascending marks of hashes", 0);
            };
            marks = stored;
        }
        let whole = |at: usize, rest: u64| u128::from(u64_at(bytes, at)) << 64 | u128::from(rest);
        let block = |at: usize| BlockHandle {
            offset: u64_at(bytes, at),
            len: u64_at(bytes, at + 8),
            checksum: u64_at(bytes, at + 16),
        };
        let entry = Self {
            keyspace: KeyspaceId(u32_at(bytes, 0)),
            layout,
            hasher,
            range: HashRange::new(whole(24, low_rest), whole(32, high_rest)),
            first_page: u64_at(bytes, 40),
            page_count: u32_at(bytes, 48),
            name_page_count,
            items_go_on: bytes[52] & ITEMS_GO_ON != 0,
            filter_on_flash: bytes[52] & FILTER_ON_FLASH != 0,
            filter_covers: bytes[52] & FILTER_COVERS != 0,
            filter_knows_prefixes: bytes[52] & FILTER_KNOWS_PREFIXES != 0,
            filter_is_static: bytes[52] & FILTER_IS_STATIC != 0,
            filter_is_fragments: bytes[52] & FILTER_IS_FRAGMENTS != 0,
            level: bytes[53].checked_sub(1),
            plan_number: u16::from_le_bytes([bytes[54], bytes[55]]),
            totals: Totals {
                item_count: u64_at(bytes, 56),
                tombstone_count: u64_at(bytes, 64),
                expiring_count: u64_at(bytes, 72),
                key_bytes: u64_at(bytes, 80),
                value_bytes: u64_at(bytes, 88),
                live_bytes: u64_at(bytes, 96),
                used_bytes: u64_at(bytes, 104),
            },
            index_kind,
            filter_tag_bits: bytes[7],
            filter: block(112),
            index: block(136),
            segments: SegmentSpan {
                oldest: SegmentId(if bytes.len() < ENTRY_BYTES { 0 } else { u64_at(bytes, ENTRY_BYTES_MIN) }),
                newest: SegmentId(u64_at(bytes, 160)),
            },
            expiry: ExpiryMarks::decode(
                bytes[EXPIRY_START..].first_chunk().expect("the entry's length was checked"),
            )
            .map_err(|corruption| corruption.within("directory", EXPIRY_START as u64))?,
            marks,
        };
        if entry.range.low > entry.range.high {
            return bad(32, "a range that is not empty", (entry.range.high >> 64) as u64);
        }
        let index_fits = match index_kind {
            IndexKind::None => entry.page_count == 0 && entry.filter.len == 0 && entry.index.len == 0,
            IndexKind::SlotFences => layout == Layout::Hash && entry.filter.len > 0 && entry.index.len > 0,
            IndexKind::PageFences | IndexKind::Trie | IndexKind::ThreeLevel | IndexKind::DenseTrie => {
                layout == Layout::Sorted && entry.index.len > 0
            }
            IndexKind::SlotPages => {
                let has_tags = entry.filter.len > 0 && !entry.filter_covers && !entry.filter_is_static;
                layout == Layout::Sorted && entry.index.len > 0 && has_tags
            }
            IndexKind::Buckets => layout == Layout::Bucketed && entry.index.len > 0 && entry.filter.len > 0,
        };
        if !index_fits || (entry.page_count == 0) != (index_kind == IndexKind::None) {
            return bad(6, "an index that fits layout and pages", bytes[6].into());
        }
        if entry.filter_covers && (layout != Layout::Sorted || entry.filter.len == 0) {
            return bad(52, "a covering filter of a section of sorted layout", bytes[52].into());
        }
        let is_other = entry.filter_covers || entry.filter_on_flash || layout == Layout::Hash;
        if entry.filter_is_static && (is_other || entry.filter.len == 0) {
            return bad(52, "a static filter of a section not of hash layout", bytes[52].into());
        }
        let is_other = entry.filter_is_static || entry.filter_covers || index_kind != IndexKind::DenseTrie;
        if entry.filter_is_fragments && (is_other || entry.filter.len == 0) {
            return bad(52, "fragments of a section with a dense trie", bytes[52].into());
        }
        if (entry.filter.len == 0) != (entry.filter_tag_bits == 0) || entry.filter_tag_bits > 32 {
            return bad(7, "tag bits of the filter", bytes[7].into());
        }
        if (entry.totals.item_count == 0) != (entry.page_count == 0)
            || entry.totals.tombstone_count > entry.totals.item_count
        {
            return bad(56, "counts of items that agree", entry.totals.item_count);
        }
        Ok(entry)
    }

    /// Whether pages and blocks are between the header page and `limit`, the offset of the directory.
    fn lies_below(&self, limit: u64) -> bool {
        let pages_end = self
            .first_page
            .checked_add(u64::from(self.page_count) + u64::from(self.name_page_count))
            .and_then(|end| end.checked_mul(PAGE_BYTES as u64));
        let block_end = |block: BlockHandle| block.offset.checked_add(block.len);
        self.first_page >= 1
            && [pages_end, block_end(self.filter), block_end(self.index)]
                .into_iter()
                .all(|end| end.is_some_and(|end| end <= limit))
    }
}

/// Encodes the directory.
pub(crate) fn encode(entries: &[SectionEntry]) -> Vec<u8> {
    let is_long = entries.iter().any(SectionEntry::is_long);
    let entry_bytes = if is_long { ENTRY_BYTES_LONG } else { ENTRY_BYTES };
    let mut bytes = Vec::with_capacity(DIRECTORY_HEADER_BYTES + entries.len() * entry_bytes);
    bytes.extend_from_slice(&(entries.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&(entry_bytes as u32).to_le_bytes());
    for entry in entries {
        entry.encode(is_long, &mut bytes);
    }
    bytes
}

/// Checks that `bytes` is a directory of the length that its header gives. Returns the bytes of an entry.
///
/// Offsets of corruptions are relative to the directory.
pub(super) fn check_shape(bytes: &[u8]) -> Result<usize, Corruption> {
    if bytes.len() < DIRECTORY_HEADER_BYTES {
        let found = format!("{} bytes", bytes.len());
        return Err(Corruption::new("directory", 0, "a directory", found));
    }
    let count = u32_at(bytes, 0) as usize;
    let entry_bytes = u32_at(bytes, 4) as usize;
    let entries = &bytes[DIRECTORY_HEADER_BYTES..];
    if entry_bytes < ENTRY_BYTES_MIN || count.checked_mul(entry_bytes) != Some(entries.len()) {
        return Err(Corruption::new(
            "directory",
            0,
            format!("entries of at least {ENTRY_BYTES_MIN} bytes, {} in all", entries.len()),
            format!("{count} of {entry_bytes} bytes"),
        ));
    }
    Ok(entry_bytes)
}

/// Decodes the entry at `base` of the directory at `offset` of its file. Checks that every part it names ends before
/// the directory.
pub(super) fn decode_entry(bytes: &[u8], base: u64, offset: u64) -> Result<SectionEntry, Corruption> {
    let entry = SectionEntry::decode(bytes).map_err(|corruption| corruption.within("directory", base))?;
    if !entry.lies_below(offset) {
        let expected = format!("pages and blocks below offset {offset}");
        return Err(Corruption::new("directory", base, expected, "a section beyond"));
    }
    Ok(entry)
}
