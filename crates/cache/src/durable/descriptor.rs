//! What a bucket says of an item: sixteen bytes.
//!
//! ```text
//!  word 0   [ offset:21 | version:23 | zone:20 ]     where the item is, and in which life of its zone
//!  word 1   [ checksum:32 | tag:16 | size:16 ]       offset and size in units of 16 bytes
//! ```
//!
//! Two words of zeros are no descriptor. The paper's descriptor has the same size, but 16 bits for the version, which
//! wraps after 65,536 cleanings of a zone (Wu's thesis, §5.2); here it does after 8 million.

/// Unit of offsets and sizes.
pub(crate) const UNIT: usize = 16;
/// Bits of an offset: a zone has at most 32 MiB.
pub(crate) const OFFSET_BITS: u32 = 21;
/// Most bits of a version.
pub(crate) const VERSION_BITS: u32 = 23;
/// Bits of the number of a zone.
pub(crate) const ZONE_BITS: u32 = 20;
/// Units of the largest item.
pub(crate) const UNITS_MAX: usize = (1 << 16) - 1;

/// Where an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Number of the zone in the file.
    pub zone: usize,
    /// The zone's version when the item was written.
    pub version: u32,
    /// In units from the zone's beginning.
    pub offset: usize,
}

impl Place {
    /// As word 0.
    #[inline(always)]
    pub fn word(self) -> u64 {
        (self.offset as u64) << (ZONE_BITS + VERSION_BITS)
            | u64::from(self.version) << ZONE_BITS
            | self.zone as u64
    }
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub words: [u64; 2],
}

impl Descriptor {
    /// No item.
    pub const NONE: Self = Self { words: [0, 0] };

    /// The descriptor of an item of `units` units with this tag, without its checksum.
    #[inline(always)]
    pub fn new(place: Place, tag: u16, units: usize) -> Self {
        Self { words: [place.word(), u64::from(tag) << 16 | units as u64] }
    }

    /// The same with a checksum.
    #[inline(always)]
    pub fn with_checksum(self, checksum: u32) -> Self {
        Self { words: [self.words[0], u64::from(checksum) << 32 | self.words[1] & u64::from(u32::MAX)] }
    }

    #[inline(always)]
    pub fn is_none(self) -> bool {
        self.words == [0, 0]
    }

    #[inline(always)]
    pub fn place(self) -> Place {
        let [word, _] = self.words;
        Place {
            zone: (word & ((1 << ZONE_BITS) - 1)) as usize,
            version: (word >> ZONE_BITS) as u32 & ((1 << VERSION_BITS) - 1),
            offset: (word >> (ZONE_BITS + VERSION_BITS)) as usize,
        }
    }

    #[inline(always)]
    pub fn tag(self) -> u16 {
        (self.words[1] >> 16) as u16
    }

    #[inline(always)]
    pub fn units(self) -> usize {
        (self.words[1] & 0xffff) as usize
    }

    #[inline(always)]
    pub fn checksum(self) -> u32 {
        (self.words[1] >> 32) as u32
    }

    /// The seed of the checksum: all of the descriptor but the checksum itself, so that two words of different
    /// descriptors fail together.
    #[inline(always)]
    pub fn seed(self) -> u64 {
        self.words[0] ^ (self.words[1] << 32).rotate_left(11).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back() {
        let place =
            Place { zone: (1 << ZONE_BITS) - 1, version: 1 << 22 | 1, offset: (1 << OFFSET_BITS) - 3 };
        let descriptor = Descriptor::new(place, 0xabcd, UNITS_MAX).with_checksum(0x1234_5678);
        assert_eq!(descriptor.place(), place);
        assert_eq!((descriptor.tag(), descriptor.units()), (0xabcd, UNITS_MAX));
        assert_eq!(descriptor.checksum(), 0x1234_5678);
        assert!(!descriptor.is_none() && Descriptor::NONE.is_none());
    }

    #[test]
    fn the_seed_depends_on_everything_but_the_checksum() {
        let place = Place { zone: 3, version: 4, offset: 5 };
        let descriptor = Descriptor::new(place, 6, 7);
        assert_eq!(descriptor.seed(), descriptor.with_checksum(8).seed());
        for other in [
            Descriptor::new(Place { zone: 2, ..place }, 6, 7),
            Descriptor::new(Place { version: 5, ..place }, 6, 7),
            Descriptor::new(Place { offset: 6, ..place }, 6, 7),
            Descriptor::new(place, 7, 7),
            Descriptor::new(place, 6, 8),
        ] {
            assert_ne!(other.seed(), descriptor.seed());
        }
    }
}
