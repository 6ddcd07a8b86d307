//! The first word of an item.

use crate::memory::UNIT_BYTES;

const WORDS_BITS: u32 = 24;
const KEY_BITS: u32 = 17;
const HAS_EXPIRY: u64 = 1 << (WORDS_BITS + KEY_BITS);
const HAS_FLAGS: u64 = HAS_EXPIRY << 1;
const SLACK_SHIFT: u32 = WORDS_BITS + KEY_BITS + 2;
const SLACK_BITS: u32 = 20;

/// Longest key: 64 KiB.
pub const KEY_BYTES_MAX: usize = 64 << 10;
/// Words of the largest item, header included: 128 MiB.
pub(crate) const ITEM_WORDS_MAX: usize = (1 << WORDS_BITS) - 1;
/// Bytes at the end of an item that an update in place may leave unused.
const SLACK_BYTES_MAX: usize = (1 << SLACK_BITS) - 1;

const _: () = assert!(KEY_BYTES_MAX < 1 << KEY_BITS && SLACK_SHIFT + SLACK_BITS <= 64);

/// Sizes of an item, and which optional words it has.
///
/// A reader beside the writer may read any 64 bits as a header, so all numbers that come from one are checked against
/// each other in [`is_sound`](Self::is_sound) before they are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header(pub u64);

impl Header {
    /// The header of a new item; `None` if it is too large.
    #[inline]
    pub fn new(key_len: usize, value_len: usize, has_expiry: bool, has_flags: bool) -> Option<Self> {
        let fixed = UNIT_BYTES * (1 + usize::from(has_expiry) + usize::from(has_flags));
        let bytes = value_len.checked_add(fixed + key_len)?;
        let words = bytes.div_ceil(UNIT_BYTES);
        if key_len > KEY_BYTES_MAX || words > ITEM_WORDS_MAX {
            return None;
        }
        let slack = (words * UNIT_BYTES - bytes) as u64;
        Some(Self(
            words as u64
                | (key_len as u64) << WORDS_BITS
                | if has_expiry { HAS_EXPIRY } else { 0 }
                | if has_flags { HAS_FLAGS } else { 0 }
                | slack << SLACK_SHIFT,
        ))
    }

    /// The same item with a value of another length; `None` if the value does not fit or would leave too many bytes
    /// unused.
    #[inline]
    pub fn with_value_len(self, value_len: usize) -> Option<Self> {
        let room = self.words() * UNIT_BYTES - self.value_start();
        let slack = room.checked_sub(value_len).filter(|&slack| slack <= SLACK_BYTES_MAX)?;
        // The highest bit belongs to the region.
        Some(Self(self.0 & !((SLACK_BYTES_MAX as u64) << SLACK_SHIFT) | (slack as u64) << SLACK_SHIFT))
    }

    /// Whether the header can account for [two more words](Self::grown_to).
    pub fn can_grow(self) -> bool {
        self.slack() + 2 * UNIT_BYTES <= SLACK_BYTES_MAX
    }

    /// The same item in a block of `words` words, at most two more than it has.
    pub fn grown_to(self, words: usize) -> Self {
        let more = (words - self.words()) as u64;
        Self(self.0 + more + ((more * UNIT_BYTES as u64) << SLACK_SHIFT))
    }

    /// Words of the item as it was first written, this one included.
    #[inline(always)]
    pub fn words(self) -> usize {
        (self.0 & ((1 << WORDS_BITS) - 1)) as usize
    }

    #[inline(always)]
    pub fn key_len(self) -> usize {
        (self.0 >> WORDS_BITS & ((1 << KEY_BITS) - 1)) as usize
    }

    #[inline(always)]
    pub fn has_expiry(self) -> bool {
        self.0 & HAS_EXPIRY != 0
    }

    #[inline(always)]
    pub fn has_flags(self) -> bool {
        self.0 & HAS_FLAGS != 0
    }

    /// Whether this is the header of an item with a key of `key_len` bytes and neither expiry nor flags.
    #[inline(always)]
    pub fn is_plain(self, key_len: usize) -> bool {
        const EXTRAS_BITS: u32 = 2;
        // A greater length would overlap the flags above a key's length.
        key_len <= KEY_BYTES_MAX
            && self.0 >> WORDS_BITS & ((1 << (KEY_BITS + EXTRAS_BITS)) - 1) == key_len as u64
    }

    /// Bytes of the value of such an item; `None` if its parts exceed the whole.
    #[inline(always)]
    pub fn plain_value_len(self, key_len: usize) -> Option<usize> {
        (self.words() * UNIT_BYTES).checked_sub(UNIT_BYTES + key_len + self.slack())
    }

    /// Whether there are words between the header and the key.
    #[inline(always)]
    pub fn has_extras(self) -> bool {
        self.0 & (HAS_EXPIRY | HAS_FLAGS) != 0
    }

    /// Words before the key.
    #[inline(always)]
    pub fn fixed_words(self) -> usize {
        1 + usize::from(self.has_expiry()) + usize::from(self.has_flags())
    }

    /// Byte offset of the key within the item.
    #[inline(always)]
    pub fn key_start(self) -> usize {
        self.fixed_words() * UNIT_BYTES
    }

    /// Byte offset of the value within the item.
    #[inline(always)]
    pub fn value_start(self) -> usize {
        self.key_start() + self.key_len()
    }

    #[inline(always)]
    fn slack(self) -> usize {
        (self.0 >> SLACK_SHIFT & ((1 << SLACK_BITS) - 1)) as usize
    }

    /// Bytes of the value.
    #[inline(always)]
    pub fn value_len(self) -> usize {
        (self.words() * UNIT_BYTES).wrapping_sub(self.value_start() + self.slack())
    }

    /// Whether the parts fit in the whole, which holds for every header that was written as one.
    #[inline(always)]
    pub fn is_sound(self) -> bool {
        self.words() * UNIT_BYTES >= self.value_start() + self.slack()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back() {
        for (key_len, value_len, expiry, flags) in
            [(0, 0, false, false), (8, 8, false, false), (65_536, 1 << 20, true, true), (3, 6, true, false)]
        {
            let header = Header::new(key_len, value_len, expiry, flags).unwrap();
            assert!(header.is_sound());
            assert_eq!((header.key_len(), header.value_len()), (key_len, value_len));
            assert_eq!((header.has_expiry(), header.has_flags()), (expiry, flags));
        }
        assert_eq!(Header::new(8, 8, false, false).unwrap().words(), 3);
    }

    #[test]
    fn values_change_in_place_within_bounds() {
        let header = Header::new(8, 8, false, false).unwrap();
        assert_eq!(header.with_value_len(3).map(Header::value_len), Some(3));
        assert_eq!(header.with_value_len(3).and_then(|header| header.with_value_len(8)), Some(header));
        assert_eq!(header.with_value_len(9), None);
        assert_eq!(Header::new(0, 2 << 20, false, false).unwrap().with_value_len(0), None);
    }

    #[test]
    fn oversized_items_are_refused() {
        assert_eq!(Header::new(KEY_BYTES_MAX + 1, 0, false, false), None);
        assert_eq!(Header::new(0, ITEM_WORDS_MAX * 8, false, false), None);
        assert_eq!(Header::new(0, usize::MAX, true, true), None);
        assert!(Header::new(0, ITEM_WORDS_MAX * 8 - 8, false, false).is_some());
    }

    #[test]
    fn no_length_of_a_key_is_taken_for_flags() {
        for (expiry, flags) in [(true, false), (false, true), (true, true)] {
            let header = Header::new(8, 8, expiry, flags).unwrap();
            for key_len in [8, 8 | 1 << KEY_BITS, 8 | 2 << KEY_BITS, 8 | 3 << KEY_BITS] {
                assert!(!header.is_plain(key_len), "{expiry} {flags} {key_len}");
            }
        }
        assert!(Header::new(8, 8, false, false).unwrap().is_plain(8));
    }

    #[test]
    fn nonsense_is_noticed() {
        assert!(!Header(1 | 9 << WORDS_BITS).is_sound());
        assert!(!Header(0).is_sound());
    }
}
