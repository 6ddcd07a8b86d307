//! The keys of one request.

use std::fmt;

use super::Key;
use super::words::Words;

/// The keys of a `get`, in order; a key may occur twice. Borrows the line; copying it copies a slice.
#[derive(Clone, Copy)]
pub struct Keys<'a> {
    words: Words<'a>,
    count: usize,
}

impl<'a> Keys<'a> {
    /// The keys that `words` are; `None` if one of them is no key.
    pub(super) fn of(words: Words<'a>) -> Option<Self> {
        let mut count = 0;
        for word in words {
            Key::from_text(word)?;
            count += 1;
        }
        Some(Self { words, count })
    }

    /// Number of keys. 0 is possible: `gat 0` asks for nothing and gets `END`.
    #[inline]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no keys.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The keys in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Key<'a>> + use<'a> {
        self.words.filter_map(Key::from_text)
    }
}

impl PartialEq for Keys<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Keys<'_> {}

impl fmt::Debug for Keys<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.iter()).finish()
    }
}
