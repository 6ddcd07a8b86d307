//! [`ScanOrder`]: the order in which a scan visits items, and the *places* between which a cursor may be.
//!
//! A cursor has 64 bits, hashes have 128. With hashed keys, the place of an item is the leading 64 bits of its hash:
//! two items have the same place only by chance. In a semi-sorted keyspace, these bits are the same for all items of a
//! prefix, even if there are very many. There a place consists of 40 leading bits of the prefix's hash, called a
//! *group*, and 24 leading bits of the suffix's. So a cursor may be within a prefix, and of 10⁹ items of one prefix,
//! about 60 have the same place. A group usually has one prefix; items of several prefixes of a group are visited in
//! the order of their suffixes' hashes.

use alluvium_base::{HashRange, KeyHash, KeyHasher};

/// Bits of a place that come from the hash of the suffix.
const SUFFIX_BITS: u32 = 24;

/// The order of a keyspace's places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScanOrder {
    /// By the leading bits of the hash.
    Hashes,
    /// By the leading bits of the hash of the prefix, then by those of the suffix.
    Groups,
}

impl ScanOrder {
    pub fn of(hasher: &KeyHasher) -> Self {
        if hasher.is_semi_sorted() { Self::Groups } else { Self::Hashes }
    }

    /// The place of items of this hash.
    pub fn place(self, hash: KeyHash) -> u64 {
        match self {
            Self::Hashes => hash.high(),
            Self::Groups => first_place(group(hash.high())) | hash.low() >> (64 - SUFFIX_BITS),
        }
    }

    /// The place behind all hashes up to `last`, which must be the end of a place or of a group; `None` at the end.
    pub fn place_behind(self, last: u128) -> Option<u64> {
        last.checked_add(1).map(|next| self.place(KeyHash(next)))
    }
}

/// The group of a place, or of the hash of a prefix.
pub(super) fn group(place: u64) -> u64 {
    place >> SUFFIX_BITS
}

/// The first place of a group.
pub(super) fn first_place(group: u64) -> u64 {
    group << SUFFIX_BITS
}

/// The hashes of a group.
pub(super) fn hashes_of_group(group: u64) -> HashRange {
    let low = u128::from(first_place(group)) << 64;
    HashRange::new(low, low | (u128::MAX >> (64 - SUFFIX_BITS)))
}

/// The first hash of a suffix at a place within a group.
pub(super) fn first_suffix(place: u64) -> u64 {
    place << (64 - SUFFIX_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_hashes_are_their_leading_bits() {
        let order = ScanOrder::Hashes;
        assert_eq!(order.place(KeyHash::from_halves(7, u64::MAX)), 7);
        assert_eq!(order.place_behind(u128::MAX), None);
        assert_eq!(order.place_behind((8 << 64) - 1), Some(8));
    }

    #[test]
    fn places_of_groups_tell_prefix_and_suffix() {
        let order = ScanOrder::Groups;
        let hash = KeyHash::from_halves(0xabcd_ef01_2345_6789, 0x1234_5678_9abc_def0);
        let place = order.place(hash);
        assert_eq!(place, 0xabcd_ef01_2312_3456);
        assert_eq!((group(place), group(hash.high())), (0xab_cdef_0123, 0xab_cdef_0123));
        let hashes = hashes_of_group(group(place));
        assert_eq!(hashes, HashRange::new(0xabcd_ef01_2300_0000 << 64, (0xabcd_ef01_2400_0000 << 64) - 1));
        assert_eq!(first_suffix(place), 0x1234_5600_0000_0000);
        assert_eq!(order.place_behind(hashes.high), Some(first_place(group(place) + 1)));
        assert_eq!(order.place_behind(u128::MAX), None);
    }
}
