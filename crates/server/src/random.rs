//! Random numbers for commands that pick members. Not for secrets.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

thread_local! {
    static STATE: Cell<u64> = Cell::new(RandomState::new().hash_one(0));
}

/// A random number below `end`, which must not be 0: SplitMix64 of a seed for each thread.
pub(crate) fn below(end: u64) -> u64 {
    let state = STATE.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    STATE.set(state);
    let mut mixed = state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    ((u128::from(mixed) * u128::from(end)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    #[test]
    fn all_numbers_come_about_equally_often() {
        let mut counts = [0; 7];
        for _ in 0..70_000 {
            counts[super::below(7) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }
}
