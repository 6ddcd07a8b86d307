//! [`NearLinearList`]: numbers that grow almost evenly, for directories and samples.

use alluvium_base::Corruption;

use super::packed::PackedInts;
use super::wire::{WireReader, WireWriter};

/// Fractional bits of the slope.
const SLOPE_LOG2: u32 = 32;

/// Log2 of the number of numbers that share a frame.
const FRAME_LOG2: u32 = 5;

/// A non-decreasing list from 0 on, each number stored as its distance from a straight line.
///
/// The distances of uniform keys are those of a random walk: small compared with the numbers, but growing with the
/// length of the list. So every 32 numbers share a *frame*, the minimum of their distances, and each stores its
/// excess over the frame: for the first ranks of buckets of 256 keys 9 bits at any length, and 14 bits a frame at 16 M
/// keys. An Elias-Fano list would take as much, but reading it takes select operations; here it is two packed numbers.
/// Uneven lists take wider numbers, never more than 64 bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NearLinearList {
    /// Minimum distance from the line of each 32 numbers, plus `bias`.
    frames: PackedInts,
    /// The excess of each distance over its frame.
    rests: PackedInts,
    bias: u64,
    slope: u128,
    last: u64,
}

impl NearLinearList {
    /// The list of `values`: `count` numbers, the last of which is `last`.
    pub(crate) fn new(values: impl Iterator<Item = u64> + Clone, count: u64, last: u64) -> Self {
        let slope = slope(last, count.saturating_sub(1));
        let lines = (0..).map(|index| line(slope, index));
        let bias = values.clone().zip(lines.clone()).map(|(value, line)| line.saturating_sub(value)).max();
        let bias = bias.unwrap_or(0);
        let distances = values.zip(lines).map(|(value, line)| value + bias - line);
        let mut least = Vec::with_capacity((count >> FRAME_LOG2) as usize + 1);
        let (mut frame_max, mut rest_max) = (0, 0);
        let mut rest = distances.clone().peekable();
        while rest.peek().is_some() {
            let (min, max) = rest
                .by_ref()
                .take(1 << FRAME_LOG2)
                .fold((u64::MAX, 0), |(min, max), distance| (distance.min(min), distance.max(max)));
            least.push(min);
            frame_max = min.max(frame_max);
            rest_max = (max - min).max(rest_max);
        }
        let width = |max: u64| u64::BITS - max.leading_zeros();
        let mut frames = PackedInts::with_capacity(width(frame_max), least.len() as u64);
        least.iter().for_each(|frame| frames.push(*frame));
        let mut rests = PackedInts::with_capacity(width(rest_max), count);
        for (index, distance) in distances.enumerate() {
            rests.push(distance - least[index >> FRAME_LOG2]);
        }
        Self { frames, rests, bias, slope, last }
    }

    /// Numbers `index` and `index + 1`, in order and at most [`last`](Self::last). For an index beyond the end, the
    /// last pair.
    #[inline(always)]
    pub(crate) fn pair(&self, index: u64) -> (u64, u64) {
        (self.get(index), self.get(index + 1))
    }

    /// The last number.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    /// Number `index`; unspecified beyond the end.
    #[inline(always)]
    pub(crate) fn get(&self, index: u64) -> u64 {
        let distance = self.frames.get(index >> FRAME_LOG2).wrapping_add(self.rests.get(index));
        line(self.slope, index).wrapping_add(distance).wrapping_sub(self.bias)
    }

    /// Bytes of memory that the list owns.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.frames.memory_bytes() + self.rests.memory_bytes()
    }

    /// Appends last number, bias, the two widths and the packed frames and rests.
    pub(crate) fn write(&self, writer: &mut WireWriter) {
        writer.word(self.last);
        writer.word(self.bias);
        writer.word(u64::from(self.frames.width()));
        writer.word(u64::from(self.rests.width()));
        writer.words(self.frames.words());
        writer.words(self.rests.words());
    }

    /// Reads a list of `pairs + 1` numbers and checks that it starts at 0, ends at its stored last number, and never
    /// decreases nor grows by more than `step_max`.
    pub(crate) fn read(pairs: u64, step_max: u64, reader: &mut WireReader<'_>) -> Result<Self, Corruption> {
        let last = reader.word()?;
        let bias = reader.word()?;
        let widths = [reader.word_up_to(64, "a width")? as u32, reader.word_up_to(64, "a width")? as u32];
        let count = pairs + 1;
        let frames = packed(widths[0], count.div_ceil(1 << FRAME_LOG2), reader)?;
        let rests = packed(widths[1], count, reader)?;
        let list = Self { frames, rests, bias, slope: slope(last, pairs), last };
        if widths == [0, 0] {
            // A straight line takes no bytes, so the input does not bound its length: check it without iterating.
            let step_most = list.slope.div_ceil(1 << SLOPE_LOG2);
            if bias != 0 || list.get(pairs) != last || step_most > u128::from(step_max) {
                return Err(
                    reader.corruption(format!("a straight line from 0 to {last}"), format!("bias {bias}"))
                );
            }
            return Ok(list);
        }
        let mut before = 0;
        for index in 0..count {
            let value = list.get(index);
            let sound = if index == 0 { value == 0 } else { value >= before && value - before <= step_max };
            if !sound || value > last {
                return Err(reader.corruption(
                    format!("number {index} of a list from 0 to {last}, {before} or more"),
                    value.to_string(),
                ));
            }
            before = value;
        }
        if before != last {
            return Err(reader.corruption(format!("last number {last}"), before.to_string()));
        }
        Ok(list)
    }
}

fn packed(width: u32, count: u64, reader: &mut WireReader<'_>) -> Result<PackedInts, Corruption> {
    let words = reader.words(PackedInts::word_count(width, count).unwrap_or(usize::MAX))?;
    PackedInts::from_words(words, width, count)
        .ok_or_else(|| reader.corruption("zeros after the last number", "other bits"))
}

fn slope(last: u64, pairs: u64) -> u128 {
    (u128::from(last) << SLOPE_LOG2) / u128::from(pairs.max(1))
}

#[inline(always)]
fn line(slope: u128, index: u64) -> u64 {
    ((slope * u128::from(index)) >> SLOPE_LOG2) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elias_fano::Differences;
    use proptest::prelude::*;

    const KIND: u64 = 1;

    fn list(steps: &[u64]) -> (NearLinearList, Vec<u64>) {
        let mut differences = Differences::default();
        let mut values = vec![0];
        differences.push(0);
        for step in steps {
            values.push(values[values.len() - 1] + step);
            differences.push(values[values.len() - 1]);
        }
        (NearLinearList::new(differences.iter(), differences.len(), differences.last()), values)
    }

    proptest! {
        #[test]
        fn pairs_agree_with_the_numbers(
            steps in prop::collection::vec(prop_oneof![200u64..300, Just(0), 0u64..1 << 50], 1..200),
        ) {
            let (list, values) = list(&steps);
            for (index, pair) in values.windows(2).enumerate() {
                prop_assert_eq!(list.pair(index as u64), (pair[0], pair[1]));
            }
            prop_assert_eq!(Some(&list.last()), values.last());
            let mut writer = WireWriter::new(KIND, 0);
            list.write(&mut writer);
            let bytes = writer.finish();
            let step_max = steps.iter().max().copied().unwrap_or(0);
            let read = |pairs, step_max| {
                NearLinearList::read(pairs, step_max, &mut WireReader::new("list", KIND, &bytes)?)
            };
            prop_assert_eq!(read(steps.len() as u64, step_max.max(1)), Ok(list));
            prop_assert!(step_max < 2 || read(steps.len() as u64, step_max / 2).is_err());
        }
    }

    #[test]
    fn even_numbers_take_no_space() {
        let (list, _) = list(&[256; 100]);
        assert_eq!(list.memory_bytes(), 0);
        let mut writer = WireWriter::new(KIND, 0);
        list.write(&mut writer);
        let bytes = writer.finish();
        let read =
            |step_max| NearLinearList::read(100, step_max, &mut WireReader::new("list", KIND, &bytes)?);
        assert_eq!(read(256).as_ref(), Ok(&list));
        assert!(read(255).is_err());
        assert_eq!(list.pair(99), (99 * 256, 100 * 256));
    }
}
