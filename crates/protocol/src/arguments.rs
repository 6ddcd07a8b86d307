//! A parsed request: slices of the bytes it came in.

use std::fmt;
use std::ops::Index;

/// The position of an argument in its frame. 32 bits suffice because frames are limited to
/// [`Limits::FRAME_BYTES_MAX`](crate::Limits::FRAME_BYTES_MAX).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    start: u32,
    bytes: u32,
}

impl Span {
    /// `bytes` bytes from `start`; both below the frame limit, which the parser checks first.
    #[inline]
    pub(crate) fn new(start: usize, bytes: usize) -> Self {
        debug_assert!(start + bytes <= crate::Limits::FRAME_BYTES_MAX);
        Self { start: start as u32, bytes: bytes as u32 }
    }
}

/// The arguments of one request, the command's name first. Borrows the frame; copying it copies two slices.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Arguments<'a> {
    pub(crate) fn new(bytes: &'a [u8], spans: &'a [Span]) -> Self {
        Self { bytes, spans }
    }

    /// Number of arguments, the command's name included. 0 for an empty frame (`*0`, or a blank line), which asks for
    /// nothing and gets no reply.
    #[inline]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether the frame was empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The argument at `position`, if there are that many.
    #[inline]
    pub fn get(&self, position: usize) -> Option<&'a [u8]> {
        self.spans.get(position).map(|span| self.slice(*span))
    }

    /// The arguments from `position` on; none if there are fewer.
    #[inline]
    pub fn from(&self, position: usize) -> Arguments<'a> {
        Arguments { bytes: self.bytes, spans: self.spans.get(position..).unwrap_or_default() }
    }

    /// The arguments at these positions; none if there are fewer.
    pub fn range(&self, positions: std::ops::Range<usize>) -> Arguments<'a> {
        Arguments { bytes: self.bytes, spans: self.spans.get(positions).unwrap_or_default() }
    }

    /// All arguments in order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let this = *self;
        this.spans.iter().map(move |span| this.slice(*span))
    }

    #[inline]
    fn slice(&self, span: Span) -> &'a [u8] {
        &self.bytes[span.start as usize..][..span.bytes as usize]
    }
}

impl Index<usize> for Arguments<'_> {
    type Output = [u8];

    /// The argument at `position`.
    ///
    /// # Panics
    /// When there are fewer arguments: check the arity first.
    #[inline]
    fn index(&self, position: usize) -> &[u8] {
        self.slice(self.spans[position])
    }
}

impl fmt::Debug for Arguments<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.iter().map(|argument| argument.escape_ascii().to_string())).finish()
    }
}
