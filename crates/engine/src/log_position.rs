//! [`LogPosition`]: where a record is in the log, counted from the birth of the database.

use std::fmt;

use alluvium_base::SegmentId;

/// Bytes of a position that was exported.
const POSITION_BYTES: usize = 24;

/// The position of a record in the log, or the log's end. Later records have greater positions, over all openings of
/// the database; no position is used twice, also after a crash that lost the end of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPosition {
    /// Number of the opening for writing that wrote the record; 0 for records older than version 3 of the log.
    pub(crate) opening: u64,
    pub(crate) segment: SegmentId,
    pub(crate) offset: u64,
}

impl LogPosition {
    /// Before all records.
    pub(crate) const BIRTH: Self = Self { opening: 0, segment: SegmentId(0), offset: 0 };

    /// The position as bytes, which compare like positions.
    pub fn to_bytes(self) -> [u8; POSITION_BYTES] {
        let mut bytes = [0; POSITION_BYTES];
        let fields = [self.opening, self.segment.0, self.offset];
        bytes
            .chunks_exact_mut(8)
            .zip(fields)
            .for_each(|(to, field)| to.copy_from_slice(&field.to_be_bytes()));
        bytes
    }

    /// The position that [`LogPosition::to_bytes`] exported.
    pub fn from_bytes(bytes: [u8; POSITION_BYTES]) -> Self {
        let field = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        Self { opening: field(0), segment: SegmentId(field(8)), offset: field(16) }
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}.{}", self.opening, self.segment, self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn exported_positions_come_back_and_keep_their_order(one: (u64, u64, u64), other: (u64, u64, u64)) {
            let position =
                |(opening, segment, offset)| LogPosition { opening, segment: SegmentId(segment), offset };
            let (one, other) = (position(one), position(other));
            prop_assert_eq!(LogPosition::from_bytes(one.to_bytes()), one);
            prop_assert_eq!(one.cmp(&other), one.to_bytes().cmp(&other.to_bytes()));
        }
    }
}
