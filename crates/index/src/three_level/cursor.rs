//! [`Cursor`]: reads a bit string from some position upwards.

/// A position in words of bits, as [`BitWriter`](crate::trie::bits::BitWriter) wrote them. Beyond the end there are
/// zeros.
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

    /// Moves over `length` bits.
    #[inline(always)]
    pub(super) fn skip(&mut self, length: u64) {
        self.position = self.position.saturating_add(length);
    }

    /// Takes a number of `length` bits, at most 63.
    #[inline(always)]
    pub(super) fn take(&mut self, length: u32) -> u64 {
        let value = self.peek() & !(u64::MAX << (length & 63));
        self.skip(u64::from(length));
        value
    }
}
