//! A byte vector that devices can read into and write from without a copy.

use std::ops::{Deref, DerefMut};

use crate::memory::Memory;
use crate::memory_pool;

/// A growable byte buffer whose memory starts at a multiple of [`crate::ALIGNMENT`], as direct I/O requires.
///
/// Works like a `Vec<u8>`. Buffers of 4–32 KiB come from a pool of the thread and return to it (a few nanoseconds and
/// no allocation in steady state). Buffers of 64 KiB and more are mappings, populated on first touch and returned to
/// the system at once unless [`crate::KeptBuffers`] keeps them; those of 2 MiB and more ask for huge pages. Like `Vec`,
/// growing panics or aborts when the system has no memory.
#[derive(Debug)]
pub struct AlignedBuffer {
    memory: Memory,
    len: usize,
}

impl AlignedBuffer {
    /// An empty buffer without memory.
    pub const fn new() -> Self {
        Self { memory: Memory::empty(), len: 0 }
    }

    /// An empty buffer with room for at least `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { memory: allocate(capacity), len: 0 }
    }

    /// A buffer of `len` bytes of unspecified content (zeros, or what an earlier buffer of this process held): for
    /// reading into, where clearing would be wasted.
    pub fn with_len(len: usize) -> Self {
        Self { memory: allocate(len), len }
    }

    /// A buffer of `len` zeros.
    pub fn zeroed(len: usize) -> Self {
        let mut buffer = Self::with_capacity(len);
        buffer.resize(len);
        buffer
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory that the buffer occupies, a multiple of [`crate::ALIGNMENT`].
    pub fn capacity(&self) -> usize {
        self.memory.capacity()
    }

    /// Cuts to `len` bytes or extends with zeros.
    pub fn resize(&mut self, len: usize) {
        let old = self.len;
        self.resize_unspecified(len);
        if len > old {
            self[old..].fill(0);
        }
    }

    /// Cuts to `len` bytes or extends with bytes of unspecified content, as in [`AlignedBuffer::with_len`].
    pub fn resize_unspecified(&mut self, len: usize) {
        self.reserve(len.saturating_sub(self.len));
        self.len = len;
    }

    /// Cuts to `len` bytes; does nothing if there are fewer.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Removes all bytes and keeps the memory.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends `bytes`; amortised O(1) per byte.
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        let old = self.len;
        self.resize_unspecified(old + bytes.len());
        self[old..].copy_from_slice(bytes);
    }

    /// Extends with zeros to a multiple of `alignment` bytes, for example [`crate::ALIGNMENT`], so that the whole can
    /// be written without a bounce copy.
    ///
    /// # Panics
    /// When `alignment` is 0.
    pub fn pad_to(&mut self, alignment: usize) {
        self.resize(self.len.next_multiple_of(alignment));
    }

    /// Makes room for `additional` more bytes without further allocation.
    pub fn reserve(&mut self, additional: usize) {
        let needed = self.len.checked_add(additional).expect("a buffer is smaller than the address space");
        if needed <= self.memory.capacity() {
            return;
        }
        let doubled = if self.len == 0 { 0 } else { self.memory.capacity() * 2 };
        let mut larger = allocate(needed.max(doubled));
        larger.bytes_mut()[..self.len].copy_from_slice(self);
        memory_pool::give(std::mem::replace(&mut self.memory, larger));
    }
}

/// Pooled where possible; the content is unspecified.
fn allocate(bytes: usize) -> Memory {
    memory_pool::take(bytes).unwrap_or_else(|bytes| {
        Memory::zeroed(bytes).unwrap_or_else(|error| panic!("cannot allocate a buffer: {error}"))
    })
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        memory_pool::give(std::mem::replace(&mut self.memory, Memory::empty()));
    }
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory.bytes()[..self.len]
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory.bytes_mut()[..self.len]
    }
}

impl AsRef<[u8]> for AlignedBuffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Default for AlignedBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl Clone for AlignedBuffer {
    fn clone(&self) -> Self {
        Self::from(&**self)
    }
}

impl From<&[u8]> for AlignedBuffer {
    fn from(bytes: &[u8]) -> Self {
        let mut buffer = Self::with_len(bytes.len());
        buffer.copy_from_slice(bytes);
        buffer
    }
}

impl PartialEq for AlignedBuffer {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for AlignedBuffer {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ALIGNMENT;
    use proptest::prelude::*;

    #[derive(Clone, Debug)]
    enum Step {
        Extend(Vec<u8>),
        Resize(usize),
        Truncate(usize),
        Clear,
        Pad(usize),
        Reserve(usize),
        Clone,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..5000).prop_map(Step::Extend),
            (0usize..20_000).prop_map(Step::Resize),
            (0usize..20_000).prop_map(Step::Truncate),
            Just(Step::Clear),
            (1usize..9000).prop_map(Step::Pad),
            (0usize..9000).prop_map(Step::Reserve),
            Just(Step::Clone),
        ];
        prop::collection::vec(step, 0..30)
    }

    proptest! {
        #[test]
        fn behaves_like_a_vector_and_stays_aligned(steps in steps()) {
            let mut model: Vec<u8> = Vec::new();
            let mut buffer = AlignedBuffer::new();
            for step in steps {
                match step {
                    Step::Extend(bytes) => { model.extend_from_slice(&bytes); buffer.extend_from_slice(&bytes); }
                    Step::Resize(len) => { model.resize(len, 0); buffer.resize(len); }
                    Step::Truncate(len) => { model.truncate(len); buffer.truncate(len); }
                    Step::Clear => { model.clear(); buffer.clear(); }
                    Step::Pad(unit) => { model.resize(model.len().next_multiple_of(unit), 0); buffer.pad_to(unit); }
                    Step::Reserve(more) => buffer.reserve(more),
                    Step::Clone => { let copy = buffer.clone(); buffer = copy; }
                }
                prop_assert_eq!(&*buffer, &*model);
                prop_assert_eq!(buffer.as_ptr().align_offset(ALIGNMENT), 0);
                prop_assert!(buffer.capacity() >= buffer.len());
            }
        }
    }

    #[test]
    fn large_buffers_grow_through_the_mapped_size() {
        let mut buffer = AlignedBuffer::new();
        let piece: Vec<u8> = (0..100_003u32).map(|i| i as u8).collect();
        for _ in 0..60 {
            buffer.extend_from_slice(&piece);
        }
        assert!(buffer.chunks(piece.len()).all(|chunk| chunk == piece));
    }
}
