//! The format of a block in a zone: several items in one record, compressed together.
//!
//! ```text
//!  word 0    [ 1 | 0 | 1 | 0:22 | coding:2 | items - 1:5 | bytes of the items:16 | bytes as coded:16 ]
//!  word 1    number of the dictionary                    where the coding is zstd
//!  then      the items, coded; zeros up to a multiple of 16
//!
//!  item      as in the blocks of the compressed zone (`zone/block.rs`)
//! ```
//!
//! Each item has a descriptor of its own, whose place is the block and whose checksum covers it. So all that is said of
//! crashes for items holds for blocks.
//!
//! Architecture invariant: no two items of a block have the same bucket and tag. A descriptor would otherwise let
//! readers of another key see what the block still has of it, though that was replaced or removed.

use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use crate::memory::UNIT_BYTES;
use crate::zone::{Codec, Coder, Learned, Record};

use super::descriptor::UNIT;
use super::packing::Packing;

/// Maximum items of a block.
pub(crate) const ITEMS_MAX: usize = 32;
/// Maximum bytes of the items of a block.
pub(crate) const RAW_BYTES_MAX: usize = 4096;

const IS_ITEM: u64 = 1 << 63;
const IS_BLOCK: u64 = 1 << 61;
const RAW_SHIFT: u32 = 16;
const ITEMS_SHIFT: u32 = 32;
const CODING_SHIFT: u32 = 37;
const RESERVED: u64 = !(IS_ITEM | IS_BLOCK | ((1 << (CODING_SHIFT + 2)) - 1));

/// How the items are coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Plain,
    Lz4,
    /// With a dictionary.
    Zstd,
}

impl Coding {
    const ALL: [Self; 3] = [Self::Plain, Self::Lz4, Self::Zstd];
}

/// The first word of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHead {
    pub coding: Coding,
    pub items: usize,
    pub raw_len: usize,
    pub coded_len: usize,
}

impl BlockHead {
    /// The head that `word` is, if a block can begin with it.
    #[inline]
    pub fn parse(word: u64) -> Option<Self> {
        if word & (IS_ITEM | IS_BLOCK) != IS_ITEM | IS_BLOCK || word & RESERVED != 0 {
            return None;
        }
        let field = |shift: u32, bits: u32| (word >> shift) as usize & ((1 << bits) - 1);
        let head = Self {
            coding: *Coding::ALL.get(field(CODING_SHIFT, 2))?,
            items: field(ITEMS_SHIFT, 5) + 1,
            raw_len: field(RAW_SHIFT, 16),
            coded_len: field(0, 16),
        };
        (head.raw_len <= RAW_BYTES_MAX).then_some(head)
    }

    fn word(self) -> u64 {
        IS_ITEM
            | IS_BLOCK
            | (self.coding as u64) << CODING_SHIFT
            | (self.items as u64 - 1) << ITEMS_SHIFT
            | (self.raw_len as u64) << RAW_SHIFT
            | self.coded_len as u64
    }

    /// Bytes before the coded items.
    fn start(self) -> usize {
        if self.coding == Coding::Zstd { 2 * UNIT_BYTES } else { UNIT_BYTES }
    }

    /// Units of the block.
    pub fn units(self) -> usize {
        (self.start() + self.coded_len).div_ceil(UNIT)
    }

    /// The head of a block's bytes, which are whole units; `None` if they are no block of this size.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let head = Self::parse(u64::from_le_bytes(*bytes.first_chunk()?))?;
        (head.units() * UNIT == bytes.len()).then_some(head)
    }
}

/// The number of the dictionary that a block needs; 0 for none.
pub(crate) fn dictionary_of(bytes: &[u8]) -> u64 {
    match BlockHead::of_bytes(bytes) {
        Some(BlockHead { coding: Coding::Zstd, .. }) => bytes
            .get(UNIT_BYTES..)
            .and_then(|rest| rest.first_chunk())
            .map_or(0, |word| u64::from_le_bytes(*word)),
        _ => 0,
    }
}

/// Makes blocks.
pub(crate) struct Packer {
    table: CompressTable,
    coder: Coder,
}

impl Default for Packer {
    fn default() -> Self {
        Self { table: CompressTable::small(), coder: Coder::default() }
    }
}

impl fmt::Debug for Packer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Packer").finish_non_exhaustive()
    }
}

impl Packer {
    /// Replaces the contents of `out` by a block of `items` items, whose bytes are `raw`: [`ITEMS_MAX`] items and
    /// [`RAW_BYTES_MAX`] bytes at most. Items that do not get smaller stay as they are.
    pub fn pack(
        &mut self,
        codec: Codec,
        dictionary: Option<&(u64, Arc<Learned>)>,
        items: usize,
        raw: &[u8],
        out: &mut Vec<u8>,
    ) {
        let mut head = BlockHead { coding: Coding::Plain, items, raw_len: raw.len(), coded_len: raw.len() };
        out.clear();
        match dictionary {
            _ if codec == Codec::None => {}
            Some((number, learned)) => {
                out.extend_from_slice(&[0; UNIT_BYTES]);
                out.extend_from_slice(&number.to_le_bytes());
                let is_coded = self.coder.encode(learned, raw, out).is_some();
                head.coding = if is_coded { Coding::Zstd } else { Coding::Plain };
            }
            None => {
                out.resize(UNIT_BYTES + get_maximum_output_size(raw.len()), 0);
                if let Ok(len) = compress_into_with_table(raw, &mut out[UNIT_BYTES..], &mut self.table) {
                    out.truncate(UNIT_BYTES + len);
                    head.coding = Coding::Lz4;
                }
            }
        }
        if head.coding == Coding::Plain || out.len() >= UNIT_BYTES + raw.len() {
            head.coding = Coding::Plain;
            out.clear();
            out.extend_from_slice(&[0; UNIT_BYTES]);
            out.extend_from_slice(raw);
        }
        head.coded_len = out.len() - head.start();
        out[..UNIT_BYTES].copy_from_slice(&head.word().to_le_bytes());
        out.resize(head.units() * UNIT, 0);
    }
}

/// The items of a block, decompressed. Its buffers are used again.
#[derive(Debug, Default)]
pub(crate) struct Unpacked {
    coder: Coder,
    raw: Vec<u8>,
    raw_len: usize,
    items: usize,
    /// Dictionaries by their number, the one that was needed last in front.
    held: Vec<(u64, Arc<Learned>)>,
}

/// Dictionaries that a thread keeps.
const HELD_MAX: usize = 4;

thread_local! {
    static KEPT: Cell<Option<Box<Unpacked>>> = const { Cell::new(None) };
}

/// Calls `work` with buffers that belong to the thread. `work` may read another cache, or the same again.
pub(crate) fn with_unpacked<T>(work: impl FnOnce(&mut Unpacked) -> T) -> T {
    let mut unpacked = KEPT.take().unwrap_or_default();
    let outcome = work(&mut unpacked);
    KEPT.set(Some(unpacked));
    outcome
}

impl Unpacked {
    /// Decompresses a block, which is whole units; `None` if it is none, or needs a dictionary that is not there.
    pub fn unpack(&mut self, bytes: &[u8], packing: &Packing) -> Option<()> {
        (self.raw_len, self.items) = (0, 0);
        let head = BlockHead::of_bytes(bytes)?;
        let coded = bytes.get(head.start()..head.start() + head.coded_len)?;
        // What is there is overwritten.
        if self.raw.len() < RAW_BYTES_MAX {
            self.raw.resize(RAW_BYTES_MAX, 0);
        }
        let len = match head.coding {
            Coding::Plain => {
                self.raw.get_mut(..coded.len())?.copy_from_slice(coded);
                coded.len()
            }
            Coding::Lz4 => decompress_into(coded, &mut self.raw[..head.raw_len]).ok()?,
            Coding::Zstd => {
                self.hold(dictionary_of(bytes), packing)?;
                let (_, learned) = self.held.first()?;
                self.coder.decode(learned, coded, head.raw_len, &mut self.raw, 0)?
            }
        };
        if len != head.raw_len {
            return None;
        }
        (self.raw_len, self.items) = (len, head.items);
        Some(())
    }

    /// Puts the dictionary of this number in front.
    fn hold(&mut self, number: u64, packing: &Packing) -> Option<()> {
        if let Some(at) = self.held.iter().position(|(held, _)| *held == number) {
            self.held.swap(0, at);
            return Some(());
        }
        let learned = packing.dictionaries.as_ref()?.find(number)?;
        self.held.truncate(HELD_MAX - 1);
        self.held.insert(0, (number, learned));
        Some(())
    }

    /// All items in order. Ends early if the bytes are not sound.
    pub fn items(&self) -> impl Iterator<Item = Record<'_>> {
        let mut rest = &self.raw[..self.raw_len];
        (0..self.items).map_while(move |_| Record::read(&mut rest))
    }
}
