//! What a lookup in few instructions returns, and where it copies a value.

use std::mem::MaybeUninit;

use super::stored::Value;

/// The result of a lookup that handles only the common case.
pub(crate) enum Fast<T, M = ()> {
    /// The key's item.
    Hit(T),
    /// The key has no item.
    Miss(M),
    /// A case that needs the general lookup, or a writer interfered.
    Retry,
}

/// Where a lookup copies a value.
pub(crate) trait Target {
    /// What the caller gets.
    type Copied;

    /// Copies a value; `None` if there is no room for it.
    fn copy(self, value: Value<'_>) -> Option<Self::Copied>;
}

/// Longest value that is copied to the stack: a frame of less than a page needs no stack probe.
const SHORT_BYTES: usize = 2048;

/// Room for a short value.
pub(crate) type Room = [MaybeUninit<u8>; SHORT_BYTES];

/// Uninitialized room, which costs next to nothing.
#[inline(always)]
pub(crate) fn room() -> Room {
    [MaybeUninit::uninit(); SHORT_BYTES]
}

impl<'a> Target for &'a mut Room {
    /// The value.
    type Copied = &'a [u8];

    #[inline(always)]
    fn copy(self, value: Value<'_>) -> Option<&'a [u8]> {
        let room = self.get_mut(..value.len)?;
        Some(value.ring.copy_into(value.start, room))
    }
}

impl Target for &mut Vec<u8> {
    /// The first byte of the value in its ring.
    type Copied = usize;

    #[inline(always)]
    fn copy(self, value: Value<'_>) -> Option<usize> {
        self.resize(value.len, 0);
        value.copy_out(self);
        Some(value.start)
    }
}
