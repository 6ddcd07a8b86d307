//! [`StaticFilter`]: queried for keys.

use alluvium_base::{Corruption, KeyHash};

use super::builder;
use super::equation::{BAND, Equation};
use crate::elias_fano::wire::{WireReader, WireWriter};
use crate::prefetch::prefetch_element;
use crate::processor::{Processor, Work, specialized};

const NAME: &str = "static filter";
const KIND: u64 = 0x3149_4d49_5441_5453;

/// Maximum width of a filter in bits.
pub const WIDTH_MAX: u32 = 32;

/// Number of slots in a row.
pub(super) const ROW_SLOTS: u64 = 64;

/// Maximum number of slots, so that counts of bits fit in a `u64`.
const SLOTS_MAX: u64 = 1 << 48;

/// A filter of known keys. Immutable. See the module for idea, cost and bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticFilter {
    width: u32,
    keys: u64,
    slots: u64,
    seed: u64,
    rows: Vec<u64>,
}

impl StaticFilter {
    /// The filter of `width` bits for the keys with `hashes`, in any order; equal ones count as one key. The same
    /// hashes in the same order make the same filter.
    ///
    /// # Panics
    /// When `width` is not 1 to 32, or 20 bytes of memory for each key can't be allocated.
    pub fn new(hashes: &[KeyHash], width: u32) -> Self {
        assert!((1..=WIDTH_MAX).contains(&width), "a width of {width} bits: 1 to {WIDTH_MAX} are supported");
        builder::build(hashes, width)
    }

    pub(super) fn from_rows(width: u32, keys: u64, slots: u64, seed: u64, rows: Vec<u64>) -> Self {
        Self { width, keys, slots, seed, rows }
    }

    /// Whether the key with `hash` may be among those that the filter was built from: true for each of them, and for a
    /// fraction of 2^-width of the others.
    #[inline]
    pub fn may_contain(&self, hash: KeyHash) -> bool {
        self.keys > 0 && specialized(Ask { filter: self, hash })
    }

    #[inline(always)]
    fn holds(&self, hash: KeyHash) -> bool {
        let Equation { start, coefficients, fingerprint } = Equation::new(hash, self.seed, self.slots);
        let (row, shift) = ((start / ROW_SLOTS) as usize, (start % ROW_SLOTS) as u32);
        let width = self.width as usize;
        // Three rows hold the 128 slots, wherever in the first row they begin.
        let spread = [
            (coefficients << shift) as u64,
            ((coefficients << shift) >> 64) as u64,
            ((coefficients >> 64) as u64) >> 1 >> (63 - shift),
        ];
        let rows = self.rows.get(row * width..).unwrap_or_default();
        (0..width).all(|bit| {
            let word = |number: usize| rows.get(number * width + bit).copied().unwrap_or(0);
            let sum = word(0) & spread[0] ^ word(1) & spread[1] ^ word(2) & spread[2];
            sum.count_ones() & 1 == fingerprint >> bit & 1
        })
    }

    /// Starts loading what a lookup of the key with `hash` reads first.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        let row = (Equation::new(hash, self.seed, self.slots).start / ROW_SLOTS) as usize;
        for number in 0..3 {
            prefetch_element(&self.rows, (row + number) * self.width as usize);
        }
    }

    /// Number of keys that the filter was built from, equal ones counted.
    pub fn len(&self) -> u64 {
        self.keys
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.keys == 0
    }

    /// Bits of a fingerprint.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Bytes of memory, this value included.
    pub fn memory_bytes(&self) -> u64 {
        (size_of::<Self>() + self.rows.capacity() * size_of::<u64>()) as u64
    }

    /// The filter as bytes, in the layout of the module.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = WireWriter::new(KIND, 5 + self.rows.len());
        writer.word(u64::from(self.width));
        writer.word(self.keys);
        writer.word(self.slots);
        writer.word(self.seed);
        writer.words(&self.rows);
        writer.finish()
    }

    /// The filter that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// When checksum, numbers or length are wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Corruption> {
        let mut reader = WireReader::new(NAME, KIND, bytes)?;
        let width = reader.word_up_to(u64::from(WIDTH_MAX), "a width")? as u32;
        if width == 0 {
            return Err(reader.corruption("a width of at least 1", "0"));
        }
        let keys = reader.word()?;
        let slots = reader.word_up_to(SLOTS_MAX, "a number of slots")?;
        if slots < BAND || !slots.is_multiple_of(ROW_SLOTS) {
            let expected = format!("a multiple of {ROW_SLOTS} slots from {BAND} on");
            return Err(reader.corruption(expected, slots.to_string()));
        }
        let seed = reader.word_up_to(u64::MAX - 1, "a seed")?;
        let words = slots / ROW_SLOTS * u64::from(width);
        let rows = reader.words(usize::try_from(words).unwrap_or(usize::MAX))?;
        reader.finish()?;
        Ok(Self::from_rows(width, keys, slots, seed, rows))
    }
}

/// A lookup as specialized work.
struct Ask<'filter> {
    filter: &'filter StaticFilter,
    hash: KeyHash,
}

impl Work for Ask<'_> {
    type Output = bool;

    #[inline(always)]
    fn run(self, _processor: impl Processor) -> bool {
        self.filter.holds(self.hash)
    }
}
