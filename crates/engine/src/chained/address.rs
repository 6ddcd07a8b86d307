//! [`Address`]: where a record with a link is, over all segments of the log.

use alluvium_base::SegmentId;

use crate::log::linked_record::LINK_UNIT;

/// log2 of the maximum bytes of a segment in which records have links.
const SEGMENT_BITS: u32 = 26;
/// Maximum bytes of a segment in which records have links.
pub(crate) const SEGMENT_BYTES_MAX: u64 = 1 << SEGMENT_BITS;
/// log2 of the units in a segment.
const UNIT_BITS: u32 = SEGMENT_BITS - LINK_UNIT.ilog2();

/// The place of a record, in units of [`LINK_UNIT`] bytes, as if all segments were of the maximum size. Younger records
/// have higher addresses.
///
/// A pointer is the low 32 or 40 bits of an address. It stands for the youngest place with these bits that is not
/// younger than what names it, so it is unambiguous as long as the log is shorter than 256 or 65,536 segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Address(u64);

impl Address {
    /// Behind all records that there will ever be.
    pub const NEVER: Self = Self(u64::MAX);

    /// The record at `offset` of a segment, a multiple of [`LINK_UNIT`] below [`SEGMENT_BYTES_MAX`].
    pub fn new(segment: SegmentId, offset: u64) -> Self {
        debug_assert!(offset <= SEGMENT_BYTES_MAX && offset.is_multiple_of(LINK_UNIT as u64));
        Self((segment.0 << UNIT_BITS) + offset / LINK_UNIT as u64)
    }

    /// In front of all records of a segment.
    pub fn start_of(segment: SegmentId) -> Self {
        Self::new(segment, 0)
    }

    /// Behind all records of a segment.
    pub fn end_of(segment: SegmentId) -> Self {
        Self::start_of(segment.next())
    }

    /// The raw value, for a place in memory that threads share.
    pub fn to_raw(self) -> u64 {
        self.0
    }

    /// The address of a raw value.
    pub fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    pub fn segment(self) -> SegmentId {
        SegmentId(self.0 >> UNIT_BITS)
    }

    /// The offset in the segment, in bytes.
    pub fn offset(self) -> u64 {
        (self.0 & ((1 << UNIT_BITS) - 1)) * LINK_UNIT as u64
    }

    /// The pointer of this number of bytes. Never 0: no record is in the first block of a segment.
    pub fn pointer(self, bytes: usize) -> u64 {
        self.0 & pointer_mask(bytes)
    }

    /// The youngest address up to `self` with this pointer. `None` if there is none.
    pub fn before(self, pointer: u64, bytes: usize) -> Option<Self> {
        self.0.checked_sub(self.0.wrapping_sub(pointer) & pointer_mask(bytes)).map(Self)
    }

    /// Whether a pointer of this number of bytes in `self` or up to a segment behind leads to `older`.
    pub fn reaches(self, older: Self, bytes: usize) -> bool {
        self.0.saturating_sub(older.0) + (2 << UNIT_BITS) < pointer_mask(bytes)
    }
}

fn pointer_mask(bytes: usize) -> u64 {
    (1 << (8 * bytes)) - 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_pointer_leads_back(
            segment in 1..1_u64 << 30,
            back in 0..200_u64,
            offset in 1024..1_u64 << 24,
            at in 1024..1_u64 << 24,
        ) {
            let young = Address::new(SegmentId(segment), 4 * offset);
            let old = Address::new(SegmentId(segment.saturating_sub(back).max(1)), 4 * at);
            prop_assert_eq!((young.segment(), young.offset()), (SegmentId(segment), 4 * offset));
            for bytes in [4, 5] {
                prop_assert!(old.pointer(bytes) != 0);
                if old <= young {
                    prop_assert!(young.reaches(old, bytes));
                    prop_assert_eq!(young.before(old.pointer(bytes), bytes), Some(old));
                }
            }
        }
    }
}
