//! What a meta request wants to have returned.

use std::fmt;

use super::words::Words;

/// The flags of a meta request in its order, for the reply. Borrows the line.
#[derive(Clone, Copy)]
pub struct Echo<'a> {
    words: Words<'a>,
    is_quiet: bool,
}

impl<'a> Echo<'a> {
    /// `words` are the flags.
    pub(super) fn new(words: Words<'a>, is_quiet: bool) -> Self {
        Self { words, is_quiet }
    }

    /// The flags with their tokens, in the order of the request.
    #[inline]
    pub fn flags(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        self.words.map(|word| (word[0], &word[1..]))
    }

    /// Whether flag `q` hides the outcome that the client expects.
    #[inline]
    pub fn is_quiet(&self) -> bool {
        self.is_quiet
    }
}

impl PartialEq for Echo<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.is_quiet == other.is_quiet && self.words.eq(other.words)
    }
}

impl Eq for Echo<'_> {}

impl fmt::Debug for Echo<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags =
            self.flags().map(|(flag, token)| format!("{}{}", flag.escape_ascii(), token.escape_ascii()));
        out.debug_list().entries(flags).finish()
    }
}
