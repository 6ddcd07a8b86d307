//! The words of a line.

/// Number of words that memcached splits a line into, except where a line is a list of keys; more are not looked at.
pub(super) const WORDS_MAX: usize = 23;

/// The words of a line, which one or more spaces part; no other byte does.
#[derive(Clone, Copy)]
pub(super) struct Words<'a> {
    rest: &'a [u8],
}

impl<'a> Words<'a> {
    /// The words of `line`, a line without its end.
    #[inline]
    pub(super) fn of(line: &'a [u8]) -> Self {
        Self { rest: line }
    }

    /// The first words, as far as there are, and their number; `N + 1` if there are more than `N`.
    #[inline]
    pub(super) fn first<const N: usize>(mut self) -> ([&'a [u8]; N], usize) {
        let mut words: [&[u8]; N] = [&[]; N];
        for (position, word) in words.iter_mut().enumerate() {
            match self.next() {
                Some(found) => *word = found,
                None => return (words, position),
            }
        }
        let more = usize::from(self.next().is_some());
        (words, N + more)
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.rest.iter().position(|byte| *byte != b' ')?;
        let rest = &self.rest[start..];
        let end = position_of::<b' '>(rest).unwrap_or(rest.len());
        self.rest = &rest[end..];
        Some(&rest[..end])
    }
}

/// Position of the first `BYTE` in `bytes`, eight bytes at a time.
#[inline]
pub(super) fn position_of<const BYTE: u8>(bytes: &[u8]) -> Option<usize> {
    const LOW: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = LOW << 7;
    let mut chunks = bytes.chunks_exact(8);
    let mut position = 0;
    for chunk in &mut chunks {
        // A byte of `differing` is zero where the chunk has `BYTE`, and the lowest bit found marks the first.
        let differing = u64::from_le_bytes(chunk.try_into().expect("eight bytes")) ^ (LOW * u64::from(BYTE));
        let zeros = differing.wrapping_sub(LOW) & !differing & HIGH;
        if zeros != 0 {
            return Some(position + zeros.trailing_zeros() as usize / 8);
        }
        position += 8;
    }
    chunks.remainder().iter().position(|byte| *byte == BYTE).map(|found| position + found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_spaces_part_words() {
        let words: Vec<&[u8]> = Words::of(b"  a\tb  c \r ").collect();
        assert_eq!(words, [&b"a\tb"[..], b"c", b"\r"]);
        assert_eq!(Words::of(b"   ").next(), None);
        assert_eq!(Words::of(b"a b c").first::<3>(), ([&b"a"[..], b"b", b"c"], 3));
        assert_eq!(Words::of(b"a b c d e").first::<3>().1, 4);
        assert_eq!(Words::of(b"a").first::<3>(), ([&b"a"[..], b"", b""], 1));
    }

    proptest! {
        #[test]
        fn the_first_byte_is_found(bytes in prop::collection::vec(prop_oneof![
            10 => any::<u8>(), 1 => Just(b'\n'), 1 => Just(0x0b), 1 => Just(0x8a)
        ], 0..64)) {
            prop_assert_eq!(position_of::<b'\n'>(&bytes), bytes.iter().position(|byte| *byte == b'\n'));
        }
    }
}
