//! Bit strings: written from the lowest bit of the first word up, read from either end.

/// Appends codes to words.
#[derive(Clone, Debug, Default)]
pub(super) struct BitWriter {
    words: Vec<u64>,
    last: u64,
    last_bits: u32,
}

impl BitWriter {
    /// An empty string with room for `bits`.
    pub(super) fn with_capacity(bits: u64) -> Self {
        Self { words: Vec::with_capacity((bits / 64 + 2) as usize), last: 0, last_bits: 0 }
    }

    /// Bits so far.
    #[inline]
    pub(super) fn len(&self) -> u64 {
        self.words.len() as u64 * 64 + u64::from(self.last_bits)
    }

    /// Bytes held now.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.words.capacity() * size_of::<u64>()) as u64
    }

    /// Appends the low `length` bits of `code`, at most 64; the bits above them are clear.
    #[inline]
    pub(super) fn put(&mut self, code: u64, length: u32) {
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
    pub(super) fn append(&mut self, other: &mut Self) {
        for word in other.words.drain(..) {
            self.put(word, 64);
        }
        self.put(other.last, other.last_bits);
        other.last = 0;
        other.last_bits = 0;
    }

    /// Appends all bits of `other`, last bit first, and empties it.
    pub(super) fn append_reversed(&mut self, other: &mut Self) {
        if other.last_bits > 0 {
            self.put(other.last.reverse_bits() >> (64 - other.last_bits), other.last_bits);
        }
        for word in other.words.drain(..).rev() {
            self.put(word.reverse_bits(), 64);
        }
        other.last = 0;
        other.last_bits = 0;
    }

    /// The words, of which the last may be partly used.
    pub(super) fn finish(mut self) -> Vec<u64> {
        if self.last_bits > 0 {
            self.words.push(self.last);
        }
        self.words.shrink_to_fit();
        self.words
    }
}

/// A bit string that is read from position 0 on.
pub(super) trait BitSource: Copy {
    /// Bits of the string.
    fn len(&self) -> u64;

    /// The 64 bits from `position` on, the first one lowest; beyond the end they have no meaning.
    fn peek(&self, position: u64) -> u64;
}

/// Bits `start..end` of `words`.
#[derive(Clone, Copy)]
pub(super) struct Forward<'words> {
    pub(super) words: &'words [u64],
    pub(super) start: u64,
    pub(super) end: u64,
}

impl BitSource for Forward<'_> {
    #[inline]
    fn len(&self) -> u64 {
        self.end - self.start
    }

    #[inline]
    fn peek(&self, position: u64) -> u64 {
        read(self.words, self.start + position)
    }
}

/// Bits `start..end` of `words`, the last one first.
#[derive(Clone, Copy)]
pub(super) struct Backward<'words> {
    pub(super) words: &'words [u64],
    pub(super) start: u64,
    pub(super) end: u64,
}

impl BitSource for Backward<'_> {
    #[inline]
    fn len(&self) -> u64 {
        self.end - self.start
    }

    #[inline]
    fn peek(&self, position: u64) -> u64 {
        let end = self.end.saturating_sub(position);
        match end.checked_sub(64) {
            Some(start) => read(self.words, start).reverse_bits(),
            None if end == 0 => 0,
            None => (read(self.words, 0) << (64 - end)).reverse_bits(),
        }
    }
}

#[inline]
fn read(words: &[u64], bit: u64) -> u64 {
    let word = (bit / 64) as usize;
    let shift = (bit % 64) as u32;
    let low = words.get(word).copied().unwrap_or(0);
    let high = words.get(word + 1).copied().unwrap_or(0);
    low >> shift | high << 1 << (63 - shift)
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
            let (forward, backward) =
                (Forward { words: &forward, start: 0, end }, Backward { words: &backward, start: 0, end });
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
