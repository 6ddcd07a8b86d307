//! [`Cursor`]: reads a bit string upwards from a position.

/// A position in words of bits that [`BitWriter`](crate::trie::bits::BitWriter) wrote. Bits beyond the end are zeros.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'words> {
    words: &'words [u64],
    position: u64,
}

impl<'words> Cursor<'words> {
    /// At bit `position` of `words`.
    #[inline(always)]
    pub(super) fn new(words: &'words [u64], position: u64) -> Self {
        Self { words, position }
    }

    /// The next 64 bits, the first one lowest.
    #[inline(always)]
    pub(super) fn peek(&self) -> u64 {
        let (word, shift) = ((self.position / 64) as usize, self.position % 64);
        let low = self.words.get(word).copied().unwrap_or(0);
        let high = self.words.get(word.wrapping_add(1)).copied().unwrap_or(0);
        low >> shift | high << 1 << (63 - shift)
    }

    /// Skips `length` bits.
    #[inline(always)]
    pub(super) fn skip(&mut self, length: u64) {
        self.position = self.position.saturating_add(length);
    }

    /// Reads a number of `length` bits, at most 63.
    #[inline(always)]
    pub(super) fn take(&mut self, length: u32) -> u64 {
        let value = self.peek() & !(u64::MAX << (length & 63));
        self.skip(u64::from(length));
        value
    }
}
