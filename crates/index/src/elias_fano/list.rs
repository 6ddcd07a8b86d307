//! [`EliasFano`]: the finished list.

use std::fmt;

use alluvium_base::Corruption;

use super::packed::{LANE_BITS_MAX, LANES, PackedInts, read_before};
use super::select::{SelectSamples, next_one, one_before};
use super::wire::{WireReader, WireWriter};
use crate::processor::{Portable, Processor, Work, specialized};

const NAME: &str = "Elias-Fano list";
const KIND: u64 = 0x3146_4554_5341_494c;

/// A non-decreasing list of 64-bit numbers. Immutable; see the module for the layout.
///
/// Cost: about 2.3 + log2(largest / count) bits a number, samples included; access and predecessor search in constant
/// time (10 to 20 ns in cache) when the numbers are spread evenly, slower when they are not.
#[derive(Clone, PartialEq, Eq)]
pub struct EliasFano {
    lows: PackedInts,
    highs: Vec<u64>,
    highs_length: u64,
    ones: SelectSamples<true>,
    zeros: SelectSamples<false>,
}

impl EliasFano {
    /// The list of `values`, which must not decrease.
    ///
    /// # Panics
    /// When they decrease.
    pub fn new(values: &[u64]) -> Self {
        assert!(values.is_sorted(), "numbers of an Elias-Fano list don't decrease");
        Self::from_sorted(values.iter().copied(), values.len() as u64, values.last().copied().unwrap_or(0))
    }

    /// The list of `count` sorted values; `largest` is the last one.
    pub(crate) fn from_sorted(values: impl Iterator<Item = u64>, count: u64, largest: u64) -> Self {
        // Rounded up near the next power of two, where the shorter bit vector makes up for the longer low part.
        let mean = largest / count.max(1);
        let low_bits = mean.saturating_add(mean / 32).checked_ilog2().unwrap_or(0);
        let highs_length = if count == 0 { 0 } else { count + (largest >> low_bits) + 1 };
        let mut lows = PackedInts::with_capacity(low_bits, count);
        let mut highs = vec![0; highs_length.div_ceil(64) as usize];
        for (index, value) in values.enumerate() {
            lows.push(value);
            let position = (value >> low_bits) + index as u64;
            highs[(position / 64) as usize] |= 1u64 << (position % 64);
        }
        Self::assemble(lows, highs, highs_length)
    }

    fn assemble(lows: PackedInts, highs: Vec<u64>, highs_length: u64) -> Self {
        let ones = SelectSamples::new(&highs, highs_length);
        let zeros = SelectSamples::new(&highs, highs_length);
        Self { lows, highs, highs_length, ones, zeros }
    }

    /// Number of numbers.
    #[inline]
    pub fn len(&self) -> u64 {
        self.lows.len()
    }

    /// Whether the list has no numbers.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number `index`, counted from 0, or `None` beyond the end.
    #[inline]
    pub fn get(&self, index: u64) -> Option<u64> {
        if index >= self.len() {
            return None;
        }
        let position = self.ones.select(Portable, &self.highs, index);
        Some((position - index) << self.lows.width() | self.lows.get(index))
    }

    /// Numbers `index` and `index + 1`, or `None` if the list does not have both. Costs little more than one.
    #[inline]
    pub fn get_pair(&self, index: u64) -> Option<(u64, u64)> {
        if index.saturating_add(1) >= self.len() {
            return None;
        }
        let width = self.lows.width();
        let position = self.ones.select(Portable, &self.highs, index);
        let next = next_one(&self.highs, position + 1);
        let first = (position - index) << width | self.lows.get(index);
        let second = (next - index - 1) << width | self.lows.get(index + 1);
        Some((first, second))
    }

    /// Index of the last number that is at most `value`, or `None` if all are above it.
    #[inline]
    pub fn last_at_most(&self, value: u64) -> Option<u64> {
        self.counts(value).1.checked_sub(1)
    }

    /// How many numbers are below `value`, and how many are at most `value`.
    ///
    /// Has no unpredictable branches for evenly spread numbers, so that a processor works on several searches at a
    /// time.
    #[inline]
    pub fn counts(&self, value: u64) -> (u64, u64) {
        specialized(Counts { list: self, value })
    }

    #[inline(always)]
    fn search(&self, processor: impl Processor, value: u64) -> Found {
        let width = self.lows.width();
        let high = value >> width;
        // The vector has one zero after each high part up to that of the largest number.
        if high >= self.highs_length - self.len() {
            return Found { at_most: self.len(), equal: 0, position: self.highs_length };
        }
        let end = self.zeros.select(processor, &self.highs, high);
        let after = end - high;
        let low = value & !(u64::MAX << width);
        // The ones directly before the zero are the numbers with this high part.
        let group = u64::from((!read_before(&self.highs, end)).leading_zeros());
        let (above, equal) = if group <= LANES && width <= LANE_BITS_MAX {
            self.lows.compare_before(after, group, low)
        } else {
            self.compare_group(high, after, low)
        };
        Found { at_most: after - above, equal, position: end - above }
    }

    /// Among the numbers with high part `high`, which end before number `after`: how many have low parts above `low`,
    /// and how many have that low part. Binary search.
    #[cold]
    #[inline(never)]
    fn compare_group(&self, high: u64, after: u64, low: u64) -> (u64, u64) {
        let start = match high.checked_sub(1) {
            Some(before) => self.zeros.select(Portable, &self.highs, before) - before,
            None => 0,
        };
        let partition = |keeps: &dyn Fn(u64) -> bool| {
            let (mut from, mut to) = (start, after);
            while from < to {
                let middle = from.midpoint(to);
                if keeps(self.lows.get(middle)) {
                    from = middle + 1;
                } else {
                    to = middle;
                }
            }
            from
        };
        let (below, at_most) = (partition(&|found| found < low), partition(&|found| found <= low));
        (after - at_most, at_most - below)
    }

    /// All numbers from number `index` on. Cheaper than repeated [`get`](Self::get).
    pub fn iter_from(&self, index: u64) -> Upwards<'_> {
        let position = if index < self.len() { self.ones.select(Portable, &self.highs, index) } else { 0 };
        Upwards { list: self, index, position }
    }

    /// Index of the last number that is at most `value` (0 if there is none) and the numbers from there upwards.
    #[inline(always)]
    pub(crate) fn upwards_from_last_at_most(
        &self,
        processor: impl Processor,
        value: u64,
    ) -> (u64, Upwards<'_>) {
        let found = self.search(processor, value);
        match found.at_most.checked_sub(1) {
            Some(index) => {
                (index, Upwards { list: self, index, position: one_before(&self.highs, found.position) })
            }
            None => (0, self.iter_from(0)),
        }
    }

    /// Index of the last number that is at most `value` (0 if there is none) and the numbers from there downwards.
    #[inline(always)]
    pub(crate) fn downwards_from_last_at_most(
        &self,
        processor: impl Processor,
        value: u64,
    ) -> (u64, Downwards<'_>) {
        let found = self.search(processor, value);
        let position = one_before(&self.highs, found.position);
        (found.at_most.saturating_sub(1), Downwards { list: self, left: found.at_most, position })
    }

    /// All numbers.
    pub fn iter(&self) -> Upwards<'_> {
        self.iter_from(0)
    }

    /// Bytes of memory that the list owns.
    pub fn memory_bytes(&self) -> u64 {
        let highs = (self.highs.capacity() * size_of::<u64>()) as u64;
        self.lows.memory_bytes() + highs + self.ones.memory_bytes() + self.zeros.memory_bytes()
    }

    /// The list as bytes, in the layout of the module.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = WireWriter::new(KIND, 4 + self.lows.words().len() + self.highs.len());
        writer.word(self.len());
        writer.word(u64::from(self.lows.width()));
        writer.word(self.highs_length);
        writer.words(self.lows.words());
        writer.words(&self.highs);
        writer.finish()
    }

    /// The list that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// When checksum, lengths or the order of the numbers are wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Corruption> {
        let mut reader = WireReader::new(NAME, KIND, bytes)?;
        let count = reader.word()?;
        let width = reader.word_up_to(63, "a width")? as u32;
        let highs_length = reader.word()?;
        let low_words = PackedInts::word_count(width, count).unwrap_or(usize::MAX);
        let lows = PackedInts::from_words(reader.words(low_words)?, width, count);
        let lows = lows.ok_or_else(|| reader.corruption("zeros after the last low part", "other bits"))?;
        let high_words = usize::try_from(highs_length.div_ceil(64)).unwrap_or(usize::MAX);
        let highs = reader.words(high_words)?;
        let ones: u64 = highs.iter().map(|word| u64::from(word.count_ones())).sum();
        if ones != count {
            return Err(reader.corruption(format!("{count} ones"), format!("{ones} ones")));
        }
        // The last one is the largest number's high part; one zero ends it.
        let last_one = highs
            .iter()
            .rposition(|word| *word != 0)
            .map(|index| index as u64 * 64 + u64::from(63 - highs[index].leading_zeros()));
        let sound_length = last_one.map_or(0, |position| position + 2);
        if highs_length != sound_length {
            return Err(reader.corruption(format!("{sound_length} high bits"), highs_length.to_string()));
        }
        if highs_length.saturating_sub(count + 1) > u64::MAX >> width {
            return Err(reader.corruption("numbers of at most 64 bits", "a larger one"));
        }
        reader.finish()?;
        let list = Self::assemble(lows, highs, highs_length);
        if !list.iter().is_sorted() {
            return Err(Corruption::new(
                NAME,
                0,
                "numbers that don't decrease",
                "a smaller one after a larger one",
            ));
        }
        Ok(list)
    }
}

/// Result of a search.
struct Found {
    /// How many numbers are at most the value.
    at_most: u64,
    /// How many of them equal it.
    equal: u64,
    /// A position in the high bits after the one of the last of these numbers, with only zeros between.
    position: u64,
}

/// [`EliasFano::counts`] as specialized work.
struct Counts<'list> {
    list: &'list EliasFano,
    value: u64,
}

impl Work for Counts<'_> {
    type Output = (u64, u64);

    #[inline(always)]
    fn run(self, processor: impl Processor) -> (u64, u64) {
        let found = self.list.search(processor, self.value);
        (found.at_most - found.equal, found.at_most)
    }
}

/// Numbers of a list, upwards.
pub struct Upwards<'list> {
    list: &'list EliasFano,
    index: u64,
    position: u64,
}

impl Iterator for Upwards<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.index >= self.list.len() {
            return None;
        }
        let value = (self.position - self.index) << self.list.lows.width() | self.list.lows.get(self.index);
        self.index += 1;
        self.position = next_one(&self.list.highs, self.position + 1);
        Some(value)
    }
}

/// Numbers of a list, downwards.
pub(crate) struct Downwards<'list> {
    list: &'list EliasFano,
    left: u64,
    position: u64,
}

impl Iterator for Downwards<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        let index = self.left.checked_sub(1)?;
        let value = (self.position - index) << self.list.lows.width() | self.list.lows.get(index);
        self.left = index;
        self.position = one_before(&self.list.highs, self.position);
        Some(value)
    }
}

impl fmt::Debug for EliasFano {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "EliasFano({} numbers, {} bytes)", self.len(), self.memory_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_processor_counts_the_same(mut values in prop::collection::vec(0u64..5000, 0..300), probes: [u16; 8]) {
            values.sort_unstable();
            let list = EliasFano::new(&values);
            for value in probes.map(|probe| u64::from(probe % 6000)) {
                let work = || Counts { list: &list, value };
                prop_assert_eq!(work().run(Portable), specialized(work()));
            }
        }
    }
}
