//! Bit strings: written from the lowest bit of the first word up, read from either end.

/// Appends codes to words.
#[derive(Clone, Debug, Default)]
pub(crate) struct BitWriter {
    words: Vec<u64>,
    last: u64,
    last_bits: u32,
}

impl BitWriter {
    /// An empty string with room for `bits`.
    pub(crate) fn with_capacity(bits: u64) -> Self {
        Self { words: Vec::with_capacity((bits / 64 + 2) as usize), last: 0, last_bits: 0 }
    }

    /// Bits so far.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.words.len() as u64 * 64 + u64::from(self.last_bits)
    }

    /// Bytes held now.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.words.capacity() * size_of::<u64>()) as u64
    }

    /// Appends the low `length` bits of `code`, at most 64; the bits above them must be clear.
    #[inline(always)]
    pub(crate) fn put(&mut self, code: u64, length: u32) {
        self.last |= code << self.last_bits;
        let bits = self.last_bits + length;
        if bits >= 64 {
            self.words.push(self.last);
            self.last = if self.last_bits == 0 { 0 } else { code >> (64 - self.last_bits) };
            self.last_bits = bits - 64;
        } else {
            self.last_bits = bits;
        }
    }

    /// Appends all bits of `other` and empties it.
    pub(crate) fn append(&mut self, other: &mut Self) {
        for word in other.words.drain(..) {
            self.put(word, 64);
        }
        self.put(other.last, other.last_bits);
        other.last = 0;
        other.last_bits = 0;
    }

    /// Appends all bits of `other`, last bit first, and empties it.
    pub(crate) fn append_reversed(&mut self, other: &mut Self) {
        if other.last_bits > 0 {
            self.put(other.last.reverse_bits() >> (64 - other.last_bits), other.last_bits);
        }
        for word in other.words.drain(..).rev() {
            self.put(word.reverse_bits(), 64);
        }
        other.last = 0;
        other.last_bits = 0;
    }

    /// The words; the last may be partly used.
    pub(crate) fn finish(mut self) -> Vec<u64> {
        if self.last_bits > 0 {
            self.words.push(self.last);
        }
        self.words.shrink_to_fit();
        self.words
    }
}

/// A part of `words` that is read from one of its ends: from bit `origin` upwards, or from the bit before it downwards.
#[derive(Clone, Copy)]
pub(super) struct Frame<'words> {
    pub(super) words: &'words [u64],
    pub(super) origin: u64,
    /// Number of bits in the part.
    pub(super) length: u64,
    pub(super) downwards: bool,
}

impl<'words> Frame<'words> {
    /// The 64 bits from `position` on, the first one lowest; unspecified beyond the end.
    ///
    /// The direction is unpredictable, so it decides no branch.
    #[inline(always)]
    fn peek(&self, position: u64) -> u64 {
        let upwards = self.origin.wrapping_add(position);
        let downwards = self.origin.wrapping_sub(position).wrapping_sub(64);
        let start = select(self.downwards, downwards, upwards);
        let bits = if start > u64::MAX - 64 {
            // The first bits of all words, read downwards.
            self.words.first().map_or(0, |word| word << (start.wrapping_neg() & 63))
        } else {
            let (word, shift) = ((start / 64) as usize, start % 64);
            let low = self.words.get(word).copied().unwrap_or(0);
            let high = self.words.get(word.wrapping_add(1)).copied().unwrap_or(0);
            low >> shift | high << 1 << (63 - shift)
        };
        select(self.downwards, bits.reverse_bits(), bits)
    }

    /// Splits off one of two parts: the `length` bits from `position` on, read in the same direction, or those after
    /// them, read from their end.
    #[inline(always)]
    pub(super) fn part(&self, position: u64, length: u64, second: bool) -> Frame<'words> {
        let near = self.at(position);
        let far = self.at(self.length);
        Frame {
            words: self.words,
            origin: select(second, far, near),
            length: select(second, self.length.saturating_sub(position + length), length),
            downwards: self.downwards ^ second,
        }
    }

    #[inline(always)]
    fn at(&self, position: u64) -> u64 {
        select(self.downwards, self.origin.wrapping_sub(position), self.origin.wrapping_add(position))
    }
}

/// Selects one of two numbers without a branch.
#[inline(always)]
pub(super) fn select(condition: bool, yes: u64, no: u64) -> u64 {
    let mask = u64::from(condition).wrapping_neg();
    no ^ (no ^ yes) & mask
}

/// Reads a [`Frame`] from a position on, 64 bits at a time.
pub(super) struct BitReader<'words> {
    frame: Frame<'words>,
    /// Position of the window's first bit.
    position: u64,
    /// The bits at `position`; consumed bits are shifted out.
    window: u64,
    taken: u32,
}

/// Minimum number of bits that [`BitReader::bits`] shows.
pub(super) const SHOWN: u32 = 40;

impl<'words> BitReader<'words> {
    #[inline(always)]
    pub(super) fn new(frame: Frame<'words>, position: u64) -> Self {
        Self { frame, position, window: frame.peek(position), taken: 0 }
    }

    /// The next bits, at least [`SHOWN`] of them, or `None` if the frame ended before. So every loop that consumes bits
    /// ends, whatever they are.
    #[inline(always)]
    pub(super) fn bits(&mut self) -> Option<u64> {
        if self.taken > 64 - SHOWN { self.refill() } else { Some(self.window) }
    }

    /// The next 64 bits, or `None` if the frame ended before.
    #[inline(always)]
    pub(super) fn refill(&mut self) -> Option<u64> {
        self.position += u64::from(self.taken);
        self.taken = 0;
        self.window = self.frame.peek(self.position);
        (self.position <= self.frame.length).then_some(self.window)
    }

    /// Skips `length` bits, at most 64.
    #[inline(always)]
    pub(super) fn take(&mut self, length: u32) {
        self.window = self.window >> (length >> 1) >> (length - (length >> 1));
        self.taken += length;
    }

    /// Skips `length` bits, less than 64.
    #[inline(always)]
    pub(super) fn take_short(&mut self, length: u32) {
        self.window >>= length & 63;
        self.taken += length;
    }

    /// The position after the consumed bits.
    #[inline(always)]
    pub(super) fn position(&self) -> u64 {
        self.position + u64::from(self.taken)
    }

    #[inline(always)]
    pub(super) fn frame(&self) -> Frame<'words> {
        self.frame
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn codes_come_back_from_both_ends(codes in prop::collection::vec((any::<u64>(), 0u32..=64), 0..60)) {
            let (mut forward, mut mirrored, mut backward) =
                (BitWriter::default(), BitWriter::default(), BitWriter::default());
            let cut = |(code, length): (u64, u32)| if length == 0 { 0 } else { code << (64 - length) >> (64 - length) };
            for &pair in &codes {
                forward.put(cut(pair), pair.1);
                mirrored.put(cut(pair), pair.1);
            }
            backward.append_reversed(&mut mirrored);
            prop_assert_eq!(mirrored.len(), 0);
            prop_assert_eq!(forward.len(), backward.len());
            let end = forward.len();
            let (forward, backward) = (forward.finish(), backward.finish());
            let forward = Frame { words: &forward, origin: 0, length: end, downwards: false };
            let backward = Frame { words: &backward, origin: end, length: end, downwards: true };
            let mut position = 0;
            for &pair in &codes {
                let mask = cut((u64::MAX, pair.1));
                prop_assert_eq!(forward.peek(position) & mask, cut(pair));
                prop_assert_eq!(backward.peek(position) & mask, cut(pair));
                position += u64::from(pair.1);
            }
        }
    }
}
