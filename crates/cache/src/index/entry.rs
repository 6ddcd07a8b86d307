//! One entry of a bucket.

use crate::region::{POSITION_BITS, Position};

/// Tag, log and position in 64 bits; 0 means no entry, since a tag is never 0.
///
/// ```text
///  63      48  47   46                         0
/// [   tag    | log |         position           ]
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry(pub u64);

impl Entry {
    pub const EMPTY: Self = Self(0);
    /// Number of the tag's lowest bit.
    pub const TAG_SHIFT: u32 = 48;

    /// An entry for the item at `position` of log number `log`, 0 or 1.
    #[inline(always)]
    pub fn new(tag: u16, log: usize, position: Position) -> Self {
        debug_assert!(tag != 0 && log < 2 && position.0 < 1 << POSITION_BITS);
        Self(u64::from(tag) << Self::TAG_SHIFT | (log as u64) << POSITION_BITS | position.0)
    }

    #[inline(always)]
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[inline(always)]
    pub fn tag(self) -> u16 {
        (self.0 >> Self::TAG_SHIFT) as u16
    }

    /// Number of the log.
    #[inline(always)]
    pub fn log(self) -> usize {
        (self.0 >> POSITION_BITS & 1) as usize
    }

    #[inline(always)]
    pub fn position(self) -> Position {
        Position(self.0 & ((1 << POSITION_BITS) - 1))
    }
}
