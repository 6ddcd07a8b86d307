//! Keys of items.

use std::fmt;

use super::base64;

/// A key as it stands in a request: text, or base64 of any bytes. Copying it copies a slice.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key<'a> {
    text: &'a [u8],
    is_base64: bool,
}

/// Room for the bytes of a decoded key.
#[derive(Clone, Debug)]
pub struct KeyBuffer([u8; Key::BYTES_MAX / 4 * 3]);

impl<'a> Key<'a> {
    /// Maximum length of a key as it stands in a request, in bytes; its bytes are fewer when it is base64.
    pub const BYTES_MAX: usize = 250;

    /// The key with this text; `None` if it is empty, longer than [`Key::BYTES_MAX`], or holds a space or control
    /// characters.
    #[inline]
    pub fn from_text(text: &'a [u8]) -> Option<Self> {
        // All bytes are looked at, without a branch for each: nearly all keys are valid.
        let has_control = text.iter().fold(false, |found, byte| found | (*byte <= b' ') | (*byte == 0x7f));
        let is_valid = (1..=Self::BYTES_MAX).contains(&text.len()) && !has_control;
        is_valid.then_some(Self { text, is_base64: false })
    }

    /// The key with these bytes in base64; `None` if it is not [`Key::from_text`], or no base64 of at least one byte.
    pub fn from_base64(text: &'a [u8]) -> Option<Self> {
        Self::from_text(text)?.decoded()
    }

    /// The same text read as base64.
    pub(super) fn decoded(self) -> Option<Self> {
        base64::decode(self.text, &mut KeyBuffer::default().0)?;
        Some(Self { is_base64: true, ..self })
    }

    /// The key as it stands in the request.
    #[inline]
    pub fn text(&self) -> &'a [u8] {
        self.text
    }

    /// Whether the text is base64 (flag `b`).
    #[inline]
    pub fn is_base64(&self) -> bool {
        self.is_base64
    }

    /// The bytes that name the item: the text itself, or what it decodes to, which is written to `buffer`.
    #[inline]
    pub fn bytes<'b>(&self, buffer: &'b mut KeyBuffer) -> &'b [u8]
    where
        'a: 'b,
    {
        if !self.is_base64 {
            return self.text;
        }
        // The constructors have decoded it before.
        let bytes = base64::decode(self.text, &mut buffer.0).unwrap_or(0);
        &buffer.0[..bytes]
    }

    /// Appends the key as a reply names it: base64 in its canonical form.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        if self.is_base64 {
            base64::encode(self.bytes(&mut KeyBuffer::default()), out);
        } else {
            out.extend_from_slice(self.text);
        }
    }
}

impl Default for KeyBuffer {
    fn default() -> Self {
        Self([0; Key::BYTES_MAX / 4 * 3])
    }
}

impl fmt::Debug for Key<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encoding = if self.is_base64 { "base64:" } else { "" };
        write!(out, "\"{encoding}{}\"", self.text.escape_ascii())
    }
}
