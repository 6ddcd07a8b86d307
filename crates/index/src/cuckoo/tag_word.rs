//! Four 16-bit tags in one 64-bit word, compared all at once.
//!
//! Invariant: a lane is a tag or 0, so its top bit is clear. That spare bit makes the comparison exact in three
//! operations: `0x8000 - (lane ^ tag)` keeps its top bit only where lane and tag agree, and no lane borrows from the
//! next.

/// One in each lane.
const ONES: u64 = 0x0001_0001_0001_0001;

/// The top bit of each lane: the form of a lane set.
const TOPS: u64 = ONES << 15;

/// The lanes that hold `tag`, as their top bits.
#[inline(always)]
pub(crate) fn matches(word: u64, tag: u16) -> u64 {
    (TOPS - (word ^ (u64::from(tag) * ONES))) & TOPS
}

/// The lanes that are empty, as their top bits.
#[inline(always)]
pub(crate) fn empties(word: u64) -> u64 {
    (TOPS - word) & TOPS
}

/// The lowest way of a non-empty lane set.
#[inline(always)]
pub(crate) fn first_way(lanes: u64) -> u32 {
    lanes.trailing_zeros() >> 4
}

/// The tag in `way`, 0 if empty.
#[inline(always)]
pub(crate) fn tag_at(word: u64, way: u32) -> u16 {
    (word >> (16 * way)) as u16
}

/// `word` with `tag` in `way`, where 0 empties it.
#[inline(always)]
pub(crate) fn with_tag(word: u64, way: u32, tag: u16) -> u64 {
    let shift = 16 * way;
    word & !(0xffff << shift) | u64::from(tag) << shift
}

/// Whether every lane is a tag or 0.
#[inline]
pub(crate) fn is_valid(word: u64) -> bool {
    word & TOPS == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lane() -> impl Strategy<Value = u16> {
        prop_oneof![Just(0u16), Just(1), Just(2), Just(0x7fff), Just(0x4000), 0..=0x7fffu16]
    }

    proptest! {
        #[test]
        fn lanes_compare_as_single_tags_do(lanes: [u16; 4], drawn in [lane(), lane(), lane(), lane()], tag in lane()) {
            for lanes in [lanes.map(|lane| lane & 0x7fff), drawn] {
                let mut word = 0;
                for way in 0..4 {
                    word = with_tag(word, way, lanes[way as usize]);
                }
                prop_assert!(is_valid(word));
                for way in 0..4 {
                    let lane = lanes[way as usize];
                    let bit = 0x8000u64 << (16 * way);
                    prop_assert_eq!(tag_at(word, way), lane);
                    prop_assert_eq!(matches(word, tag) & bit != 0, lane == tag);
                    prop_assert_eq!(empties(word) & bit != 0, lane == 0);
                }
                prop_assert_eq!(matches(word, tag) & !TOPS, 0);
                if empties(word) != 0 {
                    let first = lanes.iter().position(|&lane| lane == 0).unwrap();
                    prop_assert_eq!(first_way(empties(word)) as usize, first);
                }
            }
        }
    }
}
