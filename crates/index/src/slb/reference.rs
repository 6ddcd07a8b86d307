//! [`Reference`]: where an index keeps an item, in 48 bits.

/// Where an index keeps an item: a slot, an offset or whatever the index makes of it. At most 2⁴⁸ - 1; the buffer only
/// stores and returns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reference(u64);

impl Reference {
    /// Bits of a reference.
    pub const BITS: u32 = 48;

    /// The reference with this number, or `None` if the number has more than 48 bits.
    #[inline(always)]
    pub const fn new(number: u64) -> Option<Self> {
        if number >> Self::BITS == 0 { Some(Self(number)) } else { None }
    }

    /// The number of the reference.
    #[inline(always)]
    pub const fn number(self) -> u64 {
        self.0
    }

    #[inline(always)]
    pub(super) const fn from_entry(entry: u64) -> Self {
        Self(entry & ((1 << Self::BITS) - 1))
    }
}

impl From<u32> for Reference {
    #[inline(always)]
    fn from(number: u32) -> Self {
        Self(u64::from(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_have_48_bits() {
        assert_eq!(Reference::new((1 << 48) - 1).map(Reference::number), Some((1 << 48) - 1));
        assert_eq!(Reference::new(1 << 48), None);
        assert_eq!(Reference::from(u32::MAX).number(), u64::from(u32::MAX));
    }
}
