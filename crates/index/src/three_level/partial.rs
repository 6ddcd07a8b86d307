//! [`PartialSuffixes`]: the third level as an array of partial suffixes.
//!
//! One entry for each boundary between pages: its symbol, then the bits of its separator (see `separator`). Symbols are
//! coded by their rank when sorted by frequency: `rank / 2^k` zeros, a one, `k` bits. So tables whose groups all have
//! the same size, tables of tiny groups, most of whose boundaries split none, and any mixture are coded within 0.3 bit
//! of the entropy, and no symbol takes a branch to decode. The position of every eighth entry is stored.

use alluvium_base::Corruption;

use super::cursor::Cursor;
use super::separator::{FinishedSeparators, SYMBOLS, Separator, value_bits};
use crate::elias_fano::NearLinearList;
use crate::elias_fano::wire::{WireReader, WireWriter};
use crate::trie::bits::BitWriter;

/// Log2 of the distance between entries whose position is stored.
const BLOCK_LOG2: u32 = 3;

/// Maximum number of low bits of a rank that are written as they are.
const LOW_BITS_MAX: u32 = 3;

/// Maximum number of zeros in front of a code, so that one word shows all of it.
const ZEROS_MAX: usize = 40;

/// Maximum number of bits of an entry.
const ENTRY_BITS_MAX: u64 = ZEROS_MAX as u64 + 1 + LOW_BITS_MAX as u64 + 63;

/// Partial suffixes of all boundaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartialSuffixes {
    /// Symbols by rank.
    symbols: [u8; SYMBOLS],
    low_bits: u32,
    /// Position of each block's first bit, and the number of bits.
    starts: NearLinearList,
    code: Vec<u64>,
}

impl PartialSuffixes {
    /// Codes `separators`, one for each boundary.
    pub(super) fn new(separators: &FinishedSeparators) -> Self {
        let mut counts = [0u64; SYMBOLS];
        separators.iter().for_each(|separator| counts[usize::from(separator.symbol())] += 1);
        let mut symbols: [u8; SYMBOLS] = std::array::from_fn(|symbol| symbol as u8);
        symbols.sort_by_key(|&symbol| std::cmp::Reverse(counts[usize::from(symbol)]));
        let low_bits = best_low_bits(&symbols.map(|symbol| counts[usize::from(symbol)]));
        let mut ranks = [0usize; SYMBOLS];
        symbols.iter().enumerate().for_each(|(rank, &symbol)| ranks[usize::from(symbol)] = rank);
        let mut out = BitWriter::default();
        let mut starts = Vec::new();
        for (index, separator) in separators.iter().enumerate() {
            if index % (1 << BLOCK_LOG2) == 0 {
                starts.push(out.len());
            }
            let rank = ranks[usize::from(separator.symbol())];
            let (zeros, low) = ((rank >> low_bits) as u32, (rank & ((1 << low_bits) - 1)) as u64);
            out.put(1 << zeros | low << (zeros + 1), zeros + 1 + low_bits);
            out.put(separator.value(), value_bits(separator.symbol()));
        }
        starts.push(out.len());
        let starts = NearLinearList::new(starts.iter().copied(), starts.len() as u64, out.len());
        Self { symbols, low_bits, starts, code: out.finish() }
    }

    /// Counts the boundaries at or before `suffix` among `first..after`, which all split one group.
    #[inline(always)]
    pub(super) fn count_at_most(&self, first: u64, after: u64, suffix: u64) -> u64 {
        let block = self.last_block_at_most(first, after, suffix);
        let mut cursor = self.block(block);
        let mut index = block << BLOCK_LOG2;
        while index < first {
            self.skip(&mut cursor);
            index += 1;
        }
        let end = after.min((block + 1) << BLOCK_LOG2);
        while index < end && self.next(&mut cursor).point() <= suffix {
            index += 1;
        }
        index - first
    }

    /// The last block with boundaries of `first..after` whose first entry is at or before `suffix`; the first of these
    /// blocks if there is none.
    ///
    /// Suffixes of a group are uniform, so the search begins at the expected position of the suffix and takes growing
    /// steps from there: two entries are read however large the group is.
    #[inline(always)]
    fn last_block_at_most(&self, first: u64, after: u64, suffix: u64) -> u64 {
        let (mut low, mut high) = (first >> BLOCK_LOG2, after.saturating_sub(1) >> BLOCK_LOG2);
        if low >= high {
            return low;
        }
        let is_behind = |block| self.next(&mut self.block(block)).point() <= suffix;
        let passed = (u128::from(suffix) * u128::from(after - first)) >> 64;
        let mut probe = ((first + passed as u64) >> BLOCK_LOG2).clamp(low + 1, high);
        let mut step = 1;
        if is_behind(probe) {
            low = probe;
            while low < high {
                probe = high.min(low + step);
                if !is_behind(probe) {
                    high = probe - 1;
                    break;
                }
                low = probe;
                step *= 2;
            }
        } else {
            high = probe - 1;
            while low < high {
                probe = high.saturating_sub(step - 1).max(low + 1);
                if is_behind(probe) {
                    low = probe;
                    break;
                }
                high = probe - 1;
                step *= 2;
            }
        }
        while low < high {
            probe = high - (high - low) / 2;
            if is_behind(probe) {
                low = probe;
            } else {
                high = probe - 1;
            }
        }
        low
    }

    #[inline(always)]
    fn block(&self, block: u64) -> Cursor<'_> {
        Cursor::new(&self.code, self.starts.get(block))
    }

    /// The symbol in front of `bits`, and the length of its code.
    #[inline(always)]
    fn symbol(&self, bits: u64) -> (u8, u32) {
        let zeros = bits.trailing_zeros().min(ZEROS_MAX as u32);
        let low = bits >> (zeros + 1) & ((1 << self.low_bits) - 1);
        let rank = (zeros as usize) << self.low_bits | low as usize;
        // Only wrong bits give ranks beyond the last.
        (self.symbols.get(rank).copied().unwrap_or(0), zeros + 1 + self.low_bits)
    }

    #[inline(always)]
    fn skip(&self, cursor: &mut Cursor<'_>) {
        let (symbol, length) = self.symbol(cursor.peek());
        cursor.skip(u64::from(length + value_bits(symbol)));
    }

    #[inline(always)]
    fn next(&self, cursor: &mut Cursor<'_>) -> Separator {
        let bits = cursor.peek();
        let (symbol, length) = self.symbol(bits);
        let value_bits = value_bits(symbol);
        if length + value_bits < 64 {
            cursor.skip(u64::from(length + value_bits));
            return Separator::from_parts(symbol, bits >> length & !(u64::MAX << value_bits));
        }
        cursor.skip(u64::from(length));
        Separator::from_parts(symbol, cursor.take(value_bits))
    }

    /// Bytes of memory that the array owns.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.code.capacity() * size_of::<u64>()) as u64 + self.starts.memory_bytes()
    }

    /// Appends the low bits of ranks, the symbols by rank in nine words, the positions and the code.
    pub(super) fn write(&self, writer: &mut WireWriter) {
        writer.word(u64::from(self.low_bits));
        for symbols in self.symbols.chunks(size_of::<u64>()) {
            let mut word = [0; size_of::<u64>()];
            word[..symbols.len()].copy_from_slice(symbols);
            writer.word(u64::from_le_bytes(word));
        }
        self.starts.write(writer);
        writer.words(&self.code);
    }

    /// Reads the array for `boundaries` boundaries.
    pub(super) fn read(boundaries: u64, reader: &mut WireReader<'_>) -> Result<Self, Corruption> {
        let low_bits = reader.word_up_to(u64::from(LOW_BITS_MAX), "low bits of a rank")? as u32;
        let words = reader.words(SYMBOLS.div_ceil(size_of::<u64>()))?;
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut sorted = bytes[..SYMBOLS].to_vec();
        sorted.sort_unstable();
        let is_permutation = sorted.iter().enumerate().all(|(place, &symbol)| place == usize::from(symbol));
        if !is_permutation || bytes[SYMBOLS..].iter().any(|byte| *byte != 0) {
            return Err(reader.corruption(format!("{SYMBOLS} different symbols"), format!("{bytes:?}")));
        }
        let step_max = ENTRY_BITS_MAX << BLOCK_LOG2;
        let starts = NearLinearList::read(boundaries.div_ceil(1 << BLOCK_LOG2), step_max, reader)?;
        let code = reader.words(usize::try_from(starts.last().div_ceil(64)).unwrap_or(usize::MAX))?;
        let symbols = std::array::from_fn(|rank| bytes[rank]);
        Ok(Self { symbols, low_bits, starts, code })
    }
}

/// The number of low bits that gives the shortest code for ranks that occur `counts` times.
fn best_low_bits(counts: &[u64; SYMBOLS]) -> u32 {
    let last = counts.iter().rposition(|count| *count > 0).unwrap_or(0);
    let cost = |low_bits: u32| -> u64 {
        let bits =
            |(rank, count): (usize, &u64)| ((rank >> low_bits) as u64 + 1 + u64::from(low_bits)) * count;
        counts.iter().enumerate().map(bits).sum()
    };
    let fits = |low_bits: &u32| last >> low_bits <= ZEROS_MAX;
    (0..=LOW_BITS_MAX).filter(fits).min_by_key(|low_bits| cost(*low_bits)).unwrap_or(LOW_BITS_MAX)
}
