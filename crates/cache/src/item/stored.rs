//! Items where they are stored, and their values. Beside a writer the bytes may be anything until the read is
//! validated.

use crate::memory::{Ring, UNIT_BYTES};
use crate::sync::Ordering;

use super::header::Header;
use super::view::Metadata;

/// The memory of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value<'a> {
    pub ring: &'a Ring,
    /// Its first byte.
    pub start: usize,
    pub len: usize,
}

impl Value<'_> {
    /// Copies the value.
    ///
    /// # Panics
    /// If `out` extends beyond the memory, counted from the start of the value.
    #[inline(always)]
    pub fn copy_out(&self, out: &mut [u8]) {
        self.ring.copy_out(self.start, out);
    }

    /// A copy of the value.
    pub fn to_vec(self) -> Vec<u8> {
        let mut out = vec![0; self.len];
        self.copy_out(&mut out);
        out
    }
}

/// An item in a region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stored<'a> {
    pub ring: &'a Ring,
    /// Its first word.
    pub unit: usize,
    pub header: Header,
}

impl<'a> Stored<'a> {
    /// The value.
    #[inline(always)]
    pub fn value(&self) -> Value<'a> {
        let start = self.unit * UNIT_BYTES + self.header.value_start();
        Value { ring: self.ring, start, len: self.header.value_len() }
    }

    /// As [`value`](Self::value), for an item without expiry and flags whose key has `key_len` bytes; `None` if its
    /// parts exceed the whole.
    #[inline(always)]
    pub fn plain_value(&self, key_len: usize) -> Option<Value<'a>> {
        let len = self.header.plain_value_len(key_len)?;
        Some(Value { ring: self.ring, start: (self.unit + 1) * UNIT_BYTES + key_len, len })
    }

    /// Copies the key.
    pub fn copy_key(&self, out: &mut [u8]) {
        self.ring.copy_out(self.unit * UNIT_BYTES + self.header.key_start(), out);
    }

    /// Expiry and flags.
    #[inline(always)]
    pub fn metadata(&self) -> Metadata {
        if self.header.has_extras() { self.extras() } else { Metadata::default() }
    }

    #[inline(never)]
    fn extras(&self) -> Metadata {
        let mut metadata = Metadata::default();
        if self.header.has_expiry() {
            metadata.expires_at_ms = self.ring.word(self.unit + 1).load(Ordering::Relaxed);
        }
        if self.header.has_flags() {
            let word = self.unit + self.header.fixed_words() - 1;
            metadata.flags = self.ring.word(word).load(Ordering::Relaxed) as u32;
        }
        metadata
    }
}
