//! The keys of one request.

use std::fmt;

use super::Key;
use super::words::Words;

/// The keys of a `get`, in order; a key may occur twice. Borrows the line; copying it copies a slice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Keys<'a> {
    line: &'a [u8],
    count: usize,
}

impl<'a> Keys<'a> {
    /// The keys that the words of `line` are; `None` if one of them is no key.
    pub(super) fn of(line: &'a [u8]) -> Option<Self> {
        let mut count = 0;
        for word in Words::of(line) {
            Key::from_text(word)?;
            count += 1;
        }
        Some(Self { line, count })
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
        Words::of(self.line).filter_map(Key::from_text)
    }
}

impl fmt::Debug for Keys<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.iter()).finish()
    }
}
