//! The value that a lookup with few instructions returns.

use std::mem::MaybeUninit;

/// Longest value that is copied to the stack: a frame of less than a page needs no stack probe.
const SHORT_BYTES: usize = 2048;

/// Room for a short value.
pub(crate) type Room = [MaybeUninit<u8>; SHORT_BYTES];

/// Uninitialized room, which costs next to nothing.
#[inline(always)]
pub(crate) fn room() -> Room {
    [MaybeUninit::uninit(); SHORT_BYTES]
}

/// The result of a glance.
pub(crate) enum Glance<'a> {
    /// The value.
    Hit(&'a [u8]),
    /// The key has no item.
    Miss,
    /// A case that a glance does not handle.
    Unusual,
}
