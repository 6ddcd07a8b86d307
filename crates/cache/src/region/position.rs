//! An item's position in a log, wide enough to detect that the item is gone.

/// Bits of a position in an index entry.
pub(crate) const POSITION_BITS: u32 = 47;

/// The lap of the log in which an item was appended, above its word's number in the ring. It is monotone, and a mask
/// yields the word. It is MICA's 48-bit offset (Figure 5.7) with laps instead of multiples of a power of two, so that a
/// log may have any size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position(pub u64);

/// How positions of one log are composed, and how to compute distances between them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Words in the ring.
    capacity: u64,
    unit_bits: u32,
    unit_mask: u64,
    lap_mask: u64,
}

impl Layout {
    /// Positions in a ring of `capacity` words. They are `bits` wide, but at least as wide as four laps need, and at
    /// most as wide as an entry has room for.
    pub fn new(capacity: u64, bits: u32) -> Self {
        let unit_bits = u64::BITS - (capacity - 1).leading_zeros();
        let bits = bits.clamp((unit_bits + 2).min(POSITION_BITS), POSITION_BITS);
        debug_assert!(unit_bits + 2 <= bits, "{capacity} words leave no room for laps in {bits} bits");
        let unit_mask = (1 << unit_bits) - 1;
        Self { capacity, unit_bits, unit_mask, lap_mask: (1 << (bits - unit_bits)) - 1 }
    }

    /// Words in the ring.
    #[inline(always)]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Number of laps after which positions repeat.
    pub fn laps(&self) -> u64 {
        self.lap_mask + 1
    }

    /// Number of the position's word.
    #[inline(always)]
    pub fn unit(&self, position: Position) -> usize {
        (position.0 & self.unit_mask) as usize
    }

    /// The position `words` words later.
    #[inline(always)]
    pub fn after(&self, position: Position, words: u64) -> Position {
        debug_assert!(words <= self.capacity);
        let unit = self.unit(position) as u64 + words;
        let lap = position.0 >> self.unit_bits;
        let (lap, unit) = if unit >= self.capacity {
            ((lap + 1) & self.lap_mask, unit - self.capacity)
        } else {
            (lap, unit)
        };
        Position(lap << self.unit_bits | unit)
    }

    /// Words from `from` to `to`; a large number if `to` is before `from`.
    #[inline(always)]
    pub fn distance(&self, from: Position, to: Position) -> u64 {
        let laps = (to.0 >> self.unit_bits).wrapping_sub(from.0 >> self.unit_bits) & self.lap_mask;
        (laps * self.capacity).wrapping_add(self.unit(to) as u64).wrapping_sub(self.unit(from) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_advance_wrap_and_keep_their_distance() {
        let layout = Layout::new(10, 6);
        assert_eq!(layout.laps(), 4);
        let start = Position(0);
        let mut position = start;
        for step in 1..=13 {
            position = layout.after(position, 3);
            assert_eq!(layout.unit(position), step * 3 % 10);
            assert_eq!(layout.distance(start, position), step as u64 * 3 % 40);
        }
        // A position before the head looks farther away than anything in the log.
        assert!(layout.distance(layout.after(start, 5), start) > 10);
    }
}
