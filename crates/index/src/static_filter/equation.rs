//! [`Equation`]: the constraint of a key on the slots.

use alluvium_base::KeyHash;

/// Number of consecutive slots that a key's coefficients cover.
pub(super) const BAND: u64 = 128;

/// The golden ratio as a fraction of 2^64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The sum of the slots from `start` on at which `coefficients` has ones, lowest first, is `fingerprint`. Part of the
/// format.
#[derive(Clone, Copy, Debug)]
pub(super) struct Equation {
    pub(super) start: u64,
    /// The lowest one is 1.
    pub(super) coefficients: u128,
    /// Its number of low bits in use is the width of a slot.
    pub(super) fingerprint: u32,
}

impl Equation {
    /// The equation of the key with `hash` in a filter of `slots` slots, at least [`BAND`].
    ///
    /// Its numbers are outputs of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) from a state that depends on all bits of
    /// hash and seed.
    #[inline(always)]
    pub(super) fn new(hash: KeyHash, seed: u64, slots: u64) -> Self {
        let state = hash.high() ^ mix(hash.low().wrapping_add(STEP.wrapping_mul(seed + 1)));
        let draw = |number: u64| mix(state.wrapping_add(STEP.wrapping_mul(number)));
        let starts = slots.saturating_sub(BAND - 1).max(1);
        Self {
            start: ((u128::from(draw(1)) * u128::from(starts)) >> 64) as u64,
            coefficients: u128::from(draw(2)) << 64 | u128::from(draw(3)) | 1,
            fingerprint: draw(4) as u32,
        }
    }
}

/// SplitMix64's output function.
#[inline(always)]
fn mix(state: u64) -> u64 {
    let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}
