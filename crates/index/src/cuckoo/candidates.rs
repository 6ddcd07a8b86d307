//! The result of a lookup: the entries whose tag is the key's.

/// The position of an entry: bucket times four plus way.
///
/// Identifies an entry only until the writer's next `insert` or `remove`, which may move it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub(super) u32);

impl Slot {
    /// The slot number, in `0..slots()`.
    #[inline]
    pub fn index(self) -> u32 {
        self.0
    }
}

/// The entries that may be the key's: up to eight pairs of slot and offset, in no particular order.
///
/// A tag match is no proof: the caller compares the key stored at the offset. One absent key in about 4300 has a
/// candidate. An entry that the writer is moving may appear twice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Candidates {
    /// Bit `16 * way + side` is set for a match in `buckets[side]`.
    pub(super) lanes: u64,
    pub(super) buckets: [u32; 2],
    /// At `2 * way + side`; meaningless where `lanes` is clear.
    pub(super) offsets: [u32; 8],
}

impl Iterator for Candidates {
    type Item = (Slot, u32);

    #[inline(always)]
    fn next(&mut self) -> Option<(Slot, u32)> {
        if self.lanes == 0 {
            return None;
        }
        let (way, side) = lowest_lane(self.lanes);
        self.lanes &= self.lanes - 1;
        Some((Slot(self.buckets[side] * 4 + way), self.offsets[offset_index(way, side)]))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.lanes.count_ones() as usize;
        (count, Some(count))
    }
}

impl ExactSizeIterator for Candidates {}

/// Way and side of the lowest bit of a non-zero `lanes`.
#[inline(always)]
pub(super) fn lowest_lane(lanes: u64) -> (u32, usize) {
    let bit = lanes.trailing_zeros();
    (bit >> 4, (bit & 1) as usize)
}

/// Index of a lane's offset.
#[inline(always)]
pub(super) fn offset_index(way: u32, side: usize) -> usize {
    (way as usize * 2 + side) & 7
}
