//! A value as a lookup that needs few instructions hands it on.

use std::mem::MaybeUninit;

/// Longest value that is copied to the stack: a frame of less than a page, which needn't be probed.
const SHORT_BYTES: usize = 2048;

/// Room for a short value.
pub(crate) type Room = [MaybeUninit<u8>; SHORT_BYTES];

/// Room without contents, which costs next to nothing.
#[inline(always)]
pub(crate) fn room() -> Room {
    [MaybeUninit::uninit(); SHORT_BYTES]
}

/// What was seen at a glance.
pub(crate) enum Glance<'a> {
    /// The value.
    Hit(&'a [u8]),
    /// The key has no item.
    Miss,
    /// Something that a glance doesn't tell.
    Unusual,
}
